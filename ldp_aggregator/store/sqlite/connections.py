"""Connections to the file of an embedded store, and transactions on them."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import quote

from ldp_aggregator.store.contract import StoreError

LEAST_SQLITE: Final = (3, 35)
"""The first with RETURNING."""
BUSY_SECONDS: Final = 20.0
"""How long a transaction waits for another process's."""

CACHE_KIBIBYTES: Final = 64 << 10
CHECKPOINT_PAGES: Final = 8_000
"""Pages of the write-ahead log after which a commit copies them into the database file."""


def make_file(path: Path) -> None:
    """An empty file that its owner alone can read, where there is none. SQLite's files beside it get the same mode."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    except OSError as error:
        raise StoreError(f"{path} cannot be opened as a store: {error.strerror}") from error


def open_connection(path: Path, *, read_only: bool = False) -> sqlite3.Connection:
    """A connection in autocommit mode; transactions are written out."""
    if sqlite3.sqlite_version_info < LEAST_SQLITE:
        wanted = ".".join(map(str, LEAST_SQLITE))
        raise StoreError(f"SQLite {sqlite3.sqlite_version} is too old; the embedded store needs {wanted} or newer")
    address = f"file:{quote(str(path.absolute()))}?mode={'ro' if read_only else 'rw'}"
    try:
        db = sqlite3.connect(address, BUSY_SECONDS, uri=True, isolation_level=None, check_same_thread=False)
        db.row_factory = sqlite3.Row
        db.execute(f"PRAGMA cache_size = -{CACHE_KIBIBYTES}")
        db.execute("PRAGMA synchronous = FULL")
        db.execute("PRAGMA foreign_keys = ON")
        # Debian's SQLite writes zeros over whatever is deleted: ids that have become a run would be written once more.
        db.execute("PRAGMA secure_delete = FAST")
        db.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
    except sqlite3.Error as error:
        raise StoreError(f"{path} cannot be opened as a store: {error}") from error
    return db


def keep_log(db: sqlite3.Connection) -> None:
    """Commit to a log beside the file from now on, whoever opens it. A backup never gets there: it stays one file."""
    try:
        db.execute("PRAGMA journal_mode = WAL")
    except sqlite3.Error as error:
        raise StoreError(f"the store cannot be written: {error}") from error


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
