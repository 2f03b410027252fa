"""The statements of the SQLite store: connections, transactions, and what is asked inside them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Final

from ldp_aggregator.counting.digest import DIGEST_BYTES
from ldp_aggregator.counting.parts import part_of_tally, tally_of_parts
from ldp_aggregator.counting.rows import Rows
from ldp_aggregator.store.batch import RECORD_BYTES
from ldp_aggregator.store.clock import from_text, to_text
from ldp_aggregator.store.contract import CLOSED, CampaignState, Life, StoreError, UnknownCampaignError
from ldp_aggregator.store.sqlite import schema
from protocols import Campaign
from protocols.wire.reports import ID_BYTES

LEAST_SQLITE: Final = (3, 35)
"""The first with RETURNING."""
BUSY_SECONDS: Final = 20.0
"""How long a transaction waits for another process's."""

CACHE_KIBIBYTES: Final = 64 << 10
CHECKPOINT_PAGES: Final = 8_000
"""Pages of the write-ahead log after which a commit copies them into the database file."""

_RECORDS: Final = (
    "WITH RECURSIVE record(at) AS "
    f"(SELECT 0 UNION ALL SELECT at + {RECORD_BYTES} FROM record WHERE at + {RECORD_BYTES} < length(:records))"
)
"""Cuts a blob of records into rows inside SQLite: one statement takes the interpreter's lock once, not once a row."""


@contextmanager
def transaction(db: sqlite3.Connection, begin: str = "BEGIN IMMEDIATE") -> Iterator[sqlite3.Connection]:
    """Commit what the block did, or nothing of it. A failure of the database is a StoreError."""
    try:
        db.execute(begin)
        try:
            yield db
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise
    except sqlite3.Error as error:
        raise StoreError(f"the database answered: {error}") from error


def open_connection(path: Path) -> sqlite3.Connection:
    """A connection in autocommit mode; transactions are written out."""
    if sqlite3.sqlite_version_info < LEAST_SQLITE:
        wanted = ".".join(map(str, LEAST_SQLITE))
        raise StoreError(f"SQLite {sqlite3.sqlite_version} is too old; the embedded store needs {wanted} or newer")
    try:
        db = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        db.row_factory = sqlite3.Row
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        db.execute("PRAGMA foreign_keys = ON")
        db.execute(f"PRAGMA cache_size = -{CACHE_KIBIBYTES}")
        db.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
    except sqlite3.Error as error:
        raise StoreError(f"{path} cannot be opened as a store: {error}") from error
    return db


_COLUMNS: Final = "number, id, title, opens, closes, created, closed, max_reports, salt"


def rows(db: sqlite3.Connection) -> list[sqlite3.Row]:
    return db.execute(f"SELECT {_COLUMNS} FROM campaigns ORDER BY number").fetchall()


def row(db: sqlite3.Connection, campaign_id: str) -> sqlite3.Row:
    row: sqlite3.Row | None = db.execute(
        f"SELECT {_COLUMNS} FROM campaigns WHERE id = ?",
        (campaign_id,),
    ).fetchone()
    if row is None:
        raise UnknownCampaignError(campaign_id)
    return row


def document(db: sqlite3.Connection, campaign_id: str) -> bytes:
    row = db.execute("SELECT document FROM campaigns WHERE id = ?", (campaign_id,)).fetchone()
    if row is None:
        raise UnknownCampaignError(campaign_id)
    return bytes(row["document"])


def life(row: sqlite3.Row) -> Life:
    return Life(*(row[name] and from_text(row[name]) for name in ("opens", "closes", "closed")))


def state(db: sqlite3.Connection, row: sqlite3.Row) -> CampaignState:
    version = db.execute("SELECT max(version) FROM models WHERE campaign = ?", (row["number"],)).fetchone()[0]
    return CampaignState(
        id=row["id"],
        title=row["title"],
        created=from_text(row["created"]),
        life=life(row),
        max_reports=row["max_reports"],
        reports=reports(db, row["number"]),
        model_version=version,
        federated=row["salt"] is not None,
        shares=db.execute("SELECT count(*) FROM shares WHERE campaign = ?", (row["number"],)).fetchone()[0],
    )


def is_over(db: sqlite3.Connection, row: sqlite3.Row, now: datetime) -> bool:
    full = row["max_reports"] is not None and reports(db, row["number"]) >= row["max_reports"]
    return full or life(row).refusal(now) == CLOSED


def reports(db: sqlite3.Connection, number: int) -> int:
    return int(db.execute("SELECT coalesce(sum(reports), 0) FROM parts WHERE campaign = ?", (number,)).fetchone()[0])


def parts(db: sqlite3.Connection, number: int) -> list[bytes]:
    return [bytes(row[0]) for row in db.execute("SELECT sums FROM parts WHERE campaign = ?", (number,)).fetchall()]


def compact(db: sqlite3.Connection, campaign: Campaign, number: int) -> None:
    """Replace the parts of a campaign by their sum."""
    tally = tally_of_parts(campaign, parts(db, number))
    db.execute("DELETE FROM parts WHERE campaign = ?", (number,))
    db.execute(
        "INSERT INTO parts (campaign, reports, sums) VALUES (?, ?, ?)",
        (number, int(tally.n.sum()), part_of_tally(tally)),
    )


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


def text_or_none(moment: datetime | None) -> str | None:
    return None if moment is None else to_text(moment)
