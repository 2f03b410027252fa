"""The ids of reports in a SQLite store: the statements that tell a retry from a new report."""

from __future__ import annotations

import sqlite3
from typing import Final

from ldp_aggregator.counting.digest import DIGEST_BYTES
from ldp_aggregator.counting.rows import Rows
from ldp_aggregator.store.batch import RECORD_BYTES, Batch, Settlement
from ldp_aggregator.store.sqlite import schema
from protocols.wire.reports import ID_BYTES

_RECORDS: Final = (
    "WITH RECURSIVE record(at) AS "
    f"(SELECT 0 UNION ALL SELECT at + {RECORD_BYTES} FROM record WHERE at + {RECORD_BYTES} < length(:records))"
)
"""Cuts a blob of records into rows inside SQLite: one statement takes the interpreter's lock once, not once a row."""


def insert(db: sqlite3.Connection, number: int, batch: Batch, room: int | None) -> Settlement:
    """Store the ids that are new, ``room`` of them at most.

    What is there already is looked up first: that costs a tenth of an insertion, which comes to the same pages, and an
    insertion that meets an old id would have to be taken back and made again.
    """
    records = batch.candidates
    known = known_digests(db, number, records)
    if not known and (room is None or len(records) <= room):
        insert_records(db, number, records)
        return batch.settle(known)
    inserted = batch.earliest(known, len(records) if room is None else room)
    insert_records(db, number, records[inserted])
    return batch.settle(known, inserted)


def insert_records(db: sqlite3.Connection, number: int, records: Rows) -> int:
    """Insert ids, in increasing order, where they are new; returns how many were."""
    if not len(records):
        return 0
    before = db.total_changes
    db.execute(
        f"{_RECORDS} INSERT OR IGNORE INTO {schema.ids_table(number)} "
        f"SELECT substr(:records, at + 1, {ID_BYTES}), substr(:records, at + {ID_BYTES + 1}, {DIGEST_BYTES}) "
        "FROM record",
        {"records": records.tobytes()},
    )
    return db.total_changes - before


def known_digests(db: sqlite3.Connection, number: int, records: Rows) -> dict[int, bytes]:
    """Position to stored digest of the records whose id is in the store."""
    if not len(records):
        return {}
    rows = db.execute(
        f"{_RECORDS} SELECT at / {RECORD_BYTES}, ids.digest FROM record "
        f"CROSS JOIN {schema.ids_table(number)} AS ids ON ids.id = substr(:records, at + 1, {ID_BYTES})",
        {"records": records.tobytes()},
    )
    return dict(rows.fetchall())
