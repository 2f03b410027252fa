"""The ids of reports in a SQLite store: what tells a retry from a new report, and all that knows how they are kept."""

from __future__ import annotations

import sqlite3
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.counting.digest import DIGEST_BYTES
from ldp_aggregator.counting.rows import Rows
from ldp_aggregator.store.batch import RECORD_BYTES, Batch, Settlement
from protocols.wire.reports import ID_BYTES

_RECORDS: Final = (
    "WITH RECURSIVE record(at) AS "
    f"(SELECT 0 UNION ALL SELECT at + {RECORD_BYTES} FROM record WHERE at + {RECORD_BYTES} < length(:records))"
)
"""Cuts a blob of records into rows inside SQLite: one statement takes the interpreter's lock once, not once a row."""

SMALL: Final = 256
"""Up to so many records the database names those that were new, which costs next to nothing; for more it only counts
them, and looks them up where some were not."""
PROBES: Final = 64
"""Of more records so many are looked up before: an upload that was counted as a whole is not inserted to find out."""


def table(number: int) -> str:
    """The name of the table that holds the ids of campaign ``number``."""
    return f"ids_{int(number)}"


def create(db: sqlite3.Connection, number: int) -> None:
    """Without rowid: the id is the key of the only tree there is."""
    db.execute(f"CREATE TABLE {table(number)} (id BLOB PRIMARY KEY, digest BLOB NOT NULL) WITHOUT ROWID")


def drop(db: sqlite3.Connection, number: int) -> None:
    db.execute(f"DROP TABLE IF EXISTS {table(number)}")


def stored(db: sqlite3.Connection, number: int, schema: str = "main") -> int:
    """How many there are."""
    return int(db.execute(f"SELECT count(*) FROM {schema}.{table(number)}").fetchone()[0])


def copy(db: sqlite3.Connection, number: int, schema: str, source: int) -> None:
    """Add those of a campaign in an attached store."""
    db.execute(f"INSERT OR IGNORE INTO main.{table(number)} SELECT id, digest FROM {schema}.{table(source)}")


def insert(db: sqlite3.Connection, number: int, batch: Batch, room: int | None) -> Settlement:
    """Store the ids that are new, ``room`` of them at most."""
    records = batch.candidates
    if room is not None and len(records) > room:
        return _insert_unknown(db, number, batch, records, room)
    if len(records) <= SMALL:
        old = np.setdiff1d(np.arange(len(records)), insert_records(db, number, records))
        known = known_digests(db, number, records[old])
        return batch.settle({int(old[position]): digest for position, digest in known.items()})
    if known_digests(db, number, records[:: -(-len(records) // PROBES)]):
        if _is_repeated(db, number, records):
            return batch.settle_repeated()
        return _insert_unknown(db, number, batch, records, len(records))
    db.execute("SAVEPOINT ids")
    if _insert_and_count(db, number, records) == len(records):
        db.execute("RELEASE ids")
        return batch.settle({})
    db.execute("ROLLBACK TO ids")
    db.execute("RELEASE ids")
    return _insert_unknown(db, number, batch, records, len(records))


def _insert_unknown(db: sqlite3.Connection, number: int, batch: Batch, records: Rows, room: int) -> Settlement:
    known = known_digests(db, number, records)
    inserted = batch.earliest(known, room)
    _insert_and_count(db, number, records[inserted])
    return batch.settle(known, inserted)


def insert_records(db: sqlite3.Connection, number: int, records: Rows) -> NDArray[np.int64]:
    """Insert ids, in increasing order, where they are new; returns the positions of those that were."""
    if not len(records):
        return np.zeros(0, dtype=np.int64)
    inserted = db.execute(f"{_inserting(number)} RETURNING id", {"records": records.tobytes()}).fetchall()
    if len(inserted) == len(records):
        return np.arange(len(records))
    position_of = {record[:ID_BYTES].tobytes(): position for position, record in enumerate(records)}
    return np.array([position_of[row[0]] for row in inserted], dtype=np.int64)


def _insert_and_count(db: sqlite3.Connection, number: int, records: Rows) -> int:
    """Insert ids, in increasing order, where they are new; returns how many were."""
    if not len(records):
        return 0
    before = db.total_changes
    db.execute(_inserting(number), {"records": records.tobytes()})
    return db.total_changes - before


def _inserting(number: int) -> str:
    return (
        f"{_RECORDS} INSERT OR IGNORE INTO {table(number)} "
        f"SELECT substr(:records, at + 1, {ID_BYTES}), substr(:records, at + {ID_BYTES + 1}, {DIGEST_BYTES}) "
        "FROM record"
    )


def _is_repeated(db: sqlite3.Connection, number: int, records: Rows) -> bool:
    """Whether every record is stored as it is."""
    found = db.execute(
        f"{_RECORDS} SELECT count(*) FROM record CROSS JOIN {table(number)} AS ids "
        f"ON ids.id = substr(:records, at + 1, {ID_BYTES}) "
        f"WHERE ids.digest = substr(:records, at + {ID_BYTES + 1}, {DIGEST_BYTES})",
        {"records": records.tobytes()},
    )
    return int(found.fetchone()[0]) == len(records)


def known_digests(db: sqlite3.Connection, number: int, records: Rows) -> dict[int, bytes]:
    """Position to stored digest of the records whose id is in the store."""
    if not len(records):
        return {}
    rows = db.execute(
        f"{_RECORDS} SELECT at / {RECORD_BYTES}, ids.digest FROM record "
        f"CROSS JOIN {table(number)} AS ids ON ids.id = substr(:records, at + 1, {ID_BYTES})",
        {"records": records.tobytes()},
    )
    return dict(rows.fetchall())
