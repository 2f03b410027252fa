"""The statements of the SQLite store about where it comes from, and what a store that was restored leaves behind."""

from __future__ import annotations

import sqlite3
from datetime import datetime

from ldp_aggregator.store.clock import from_text, to_text
from ldp_aggregator.store.origin import Origin, floor_of_versions


def read(db: sqlite3.Connection, name: str = "main") -> Origin:
    """Of the store, or of one that is attached under ``name``."""
    found = db.execute(f"SELECT generation, version_floor, is_copy FROM {name}.origin").fetchone()
    return Origin(found["generation"], found["version_floor"], bool(found["is_copy"]))


def newest(db: sqlite3.Connection) -> datetime | None:
    """When the last campaign, model or token was made, None where there is none."""
    tables = " UNION ALL ".join(f"SELECT created FROM {table}" for table in ("campaigns", "models", "tokens"))
    return max((from_text(row[0]) for row in db.execute(tables).fetchall()), default=None)


def mark_copy(db: sqlite3.Connection) -> None:
    """Files of versions without an origin are no stores any more before they are migrated."""
    if db.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'origin'").fetchone()[0]:
        db.execute("UPDATE origin SET is_copy = 1")


def renew(db: sqlite3.Connection, now: datetime, *floors: int) -> None:
    """Make it another store: a new name, and versions above all of its own and the ``floors``."""
    published = db.execute("SELECT coalesce(max(version), 0) FROM models").fetchone()[0]
    floor = floor_of_versions(now, published, read(db).version_floor, *floors)
    db.execute(
        "UPDATE origin SET generation = lower(hex(randomblob(16))), version_floor = ?, is_copy = 0",
        (floor,),
    )


def forget_rights(db: sqlite3.Connection, now: datetime, *, keep_shares: bool) -> tuple[int, int]:
    """Revoke every token and drop every share: some may have been revoked or withdrawn since. Returns how many."""
    revoked = db.execute("UPDATE tokens SET revoked = ? WHERE revoked IS NULL", (to_text(now),)).rowcount
    dropped = 0 if keep_shares else db.execute("DELETE FROM shares").rowcount
    return revoked, dropped
