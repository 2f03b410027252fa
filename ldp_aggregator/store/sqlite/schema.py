"""The tables of the SQLite store, and the check that a file is one."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from ldp_aggregator.store.contract import StoreError
from ldp_aggregator.store.origin import wrong_version
from ldp_aggregator.store.sqlite import ids

APPLICATION: Final = 0x6C647062
"""SQLite's ``application_id``: "ldpb" in ASCII. Tells our files from other programs'."""

_FIRST: Final = """
CREATE TABLE campaigns (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    title TEXT NOT NULL,
    opens TEXT,
    closes TEXT,
    created TEXT NOT NULL,
    closed TEXT,
    max_reports INTEGER,
    document BLOB NOT NULL
);
CREATE TABLE parts (
    number INTEGER PRIMARY KEY,
    campaign INTEGER NOT NULL REFERENCES campaigns (number),
    reports INTEGER NOT NULL,
    sums BLOB NOT NULL
);
CREATE INDEX parts_of_campaign ON parts (campaign);
CREATE TABLE models (
    campaign INTEGER NOT NULL REFERENCES campaigns (number),
    version INTEGER NOT NULL,
    document TEXT NOT NULL,
    created TEXT NOT NULL,
    PRIMARY KEY (campaign, version)
);
CREATE TABLE tokens (
    name TEXT PRIMARY KEY,
    scope TEXT NOT NULL,
    digest BLOB NOT NULL UNIQUE,
    created TEXT NOT NULL,
    revoked TEXT
);
"""
_SHARES: Final = """
ALTER TABLE campaigns ADD COLUMN salt BLOB;
CREATE TABLE shares (
    campaign INTEGER NOT NULL REFERENCES campaigns (number),
    node TEXT NOT NULL,
    share BLOB NOT NULL,
    digest BLOB NOT NULL,
    received TEXT NOT NULL,
    PRIMARY KEY (campaign, node)
);
"""
"""A campaign has a salt if and only if it is federated."""

_RELEASES: Final = """
CREATE TABLE releases (
    campaign INTEGER NOT NULL REFERENCES campaigns (number),
    node TEXT NOT NULL,
    digest BLOB NOT NULL,
    other_rows INTEGER NOT NULL,
    PRIMARY KEY (campaign, node, digest)
) WITHOUT ROWID;
INSERT INTO releases SELECT campaign, node, digest, 0 FROM shares;
"""
"""Every share that a node ever sent, by its digest, and whether it is of rows that none before it had."""

_PUBLICATIONS: Final = """
CREATE TABLE publications (
    campaign INTEGER PRIMARY KEY REFERENCES campaigns (number),
    reports INTEGER NOT NULL,
    sums BLOB NOT NULL
);
"""
"""What was last published of a campaign whose document fixes when."""

_OPERATION: Final = """
ALTER TABLE parts ADD COLUMN vouched INTEGER NOT NULL DEFAULT 0;
ALTER TABLE parts ADD COLUMN least_batch INTEGER;
ALTER TABLE campaigns ADD COLUMN over_since TEXT;
ALTER TABLE campaigns ADD COLUMN sealed TEXT;
ALTER TABLE campaigns ADD COLUMN overlap INTEGER NOT NULL DEFAULT 0;
ALTER TABLE campaigns ADD COLUMN unchecked INTEGER NOT NULL DEFAULT 0;
UPDATE campaigns SET sealed = closed;
CREATE TABLE deleted (id TEXT PRIMARY KEY, deleted TEXT NOT NULL);
CREATE TABLE origin (generation TEXT NOT NULL, version_floor INTEGER NOT NULL, is_copy INTEGER NOT NULL);
INSERT INTO origin VALUES (lower(hex(randomblob(16))), 0, 0);
"""
"""How reports came; what a campaign's end leaves; and where the store comes from: a name drawn for it, the version that
its models are above (a restored store cannot know what was published since), and whether it is a backup.

Until then closing dropped the ids.
"""

_RIGHTS: Final = """
ALTER TABLE campaigns ADD COLUMN uploads_need TEXT;
ALTER TABLE tokens ADD COLUMN expires TEXT;
ALTER TABLE tokens ADD COLUMN campaigns TEXT;
ALTER TABLE tokens ADD COLUMN speaks_for TEXT;
CREATE TABLE acts (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    moment TEXT NOT NULL,
    actor TEXT NOT NULL,
    act TEXT NOT NULL,
    campaign TEXT,
    detail TEXT NOT NULL,
    outcome TEXT NOT NULL
);
CREATE TABLE directories (
    key TEXT PRIMARY KEY,
    version INTEGER NOT NULL,
    document BLOB NOT NULL
);
"""
"""``tokens.campaigns`` are ids with blanks between them. An act outlives its campaign, and names it by its id."""

STEPS: Final[tuple[str | Callable[[sqlite3.Connection], None], ...]] = (
    _FIRST,
    _SHARES,
    _RELEASES,
    _PUBLICATIONS,
    _OPERATION,
    _RIGHTS,
    ids.make_tables,
)
"""What brings a file from each version to the next; an empty file has version 0. Steps are added, never changed."""
VERSION: Final = len(STEPS)


def check_version(db: sqlite3.Connection, name: str = "main") -> None:
    """Refuse a file (attached as ``name``) that is not ours or not of this version."""
    try:
        application = db.execute(f"PRAGMA {name}.application_id").fetchone()[0]
        version = db.execute(f"PRAGMA {name}.user_version").fetchone()[0]
    except sqlite3.Error as error:
        raise StoreError(f"the file cannot be read as a store: {error}") from error
    if application != APPLICATION:
        raise StoreError("the file is a database of another program")
    if version != VERSION:
        raise wrong_version("store", version, VERSION)


def prepare(db: sqlite3.Connection) -> None:
    """Make the tables in an empty file; refuse one that is not ours or of another version."""
    with _changing(db):
        if not db.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]:
            _take_steps(db, 0)
        check_version(db)


def migrate(db: sqlite3.Connection) -> int:
    """Bring the tables of an older version up to date, all or nothing; returns the version that it was.

    Refuses a file that is not ours or of a later version.
    """
    with _changing(db):
        version = int(db.execute("PRAGMA user_version").fetchone()[0])
        if db.execute("PRAGMA application_id").fetchone()[0] == APPLICATION and version < VERSION:
            _take_steps(db, version)
        check_version(db)
    return version


def _take_steps(db: sqlite3.Connection, version: int) -> None:
    for step in STEPS[version:]:
        if callable(step):
            step(db)
            continue
        for statement in filter(str.strip, step.split(";")):
            db.execute(statement)
    db.execute(f"PRAGMA application_id = {APPLICATION}")
    db.execute(f"PRAGMA user_version = {VERSION}")


@contextmanager
def _changing(db: sqlite3.Connection) -> Iterator[None]:
    try:
        db.execute("BEGIN IMMEDIATE")
        yield
        db.execute("COMMIT")
    except sqlite3.Error as error:
        raise StoreError(f"the store cannot be prepared: {error}") from error
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")
