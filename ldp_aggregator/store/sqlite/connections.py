"""Connections to the file of an embedded store, and transactions on them, in whatever thread has them."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import quote

from ldp_aggregator.store.contract import Clock, StoreError, from_text, to_text, utc_now
from ldp_aggregator.store.sql import schema
from ldp_aggregator.store.sql.connection import Row, for_sqlite

FILE_NAME: Final = "aggregator.sqlite3"
APPLICATION: Final = 0x6C647062
"""SQLite's ``application_id``: "ldpb" in ASCII. Tells our files from other programs'."""
LEAST_SQLITE: Final = (3, 35)
"""The first with RETURNING."""
BUSY_SECONDS: Final = 20.0
"""Seconds that a transaction waits for another process's."""
CACHE_KIBIBYTES: Final = 64 << 10
CHECKPOINT_PAGES: Final = 8_000
"""Pages of the write-ahead log after which a commit copies them into the database file."""

IDS: Final = """
CREATE TABLE recent_ids (place INTEGER PRIMARY KEY, records BLOB NOT NULL);
CREATE TABLE runs (
    name text PRIMARY KEY, campaign bigint NOT NULL REFERENCES campaigns (number), ids bigint NOT NULL
)
"""
"""The tables of :mod:`ldp_aggregator.store.sqlite.id_tables`."""

Result = TypeVar("Result")

sqlite3.register_converter("timestamptz", lambda text: from_text(text.decode()))


class SqliteConnection:
    """See :class:`ldp_aggregator.store.sql.connection.Connection`. No method ever waits: :func:`finish` runs what is
    written with them to its end, in the thread that it is called in.
    """

    def __init__(self, raw: sqlite3.Connection, clock: Clock = utc_now) -> None:
        self.raw = raw
        self._clock = clock

    async def fetch(self, statement: str, *values: Any) -> Sequence[Row]:
        return self._run(statement, values).fetchall()

    async def fetchrow(self, statement: str, *values: Any) -> Row | None:
        return next(iter(self._run(statement, values).fetchall()), None)

    async def execute(self, statement: str, *values: Any) -> int:
        return self._run(statement, values).rowcount

    @asynccontextmanager
    async def savepoint(self) -> AsyncIterator[None]:
        self.raw.execute("SAVEPOINT block")
        try:
            yield
        except BaseException:
            if self.raw.in_transaction:
                self.raw.execute("ROLLBACK TO block")
                self.raw.execute("RELEASE block")
            raise
        self.raw.execute("RELEASE block")

    async def now(self) -> datetime:
        return self._clock()

    def _run(self, statement: str, values: Sequence[Any]) -> sqlite3.Cursor:
        return self.raw.execute(
            for_sqlite(statement), [to_text(value) if isinstance(value, datetime) else value for value in values]
        )


def finish(work: Awaitable[Result]) -> Result:
    """Run what waits for nothing but a :class:`SqliteConnection`, which never waits."""
    steps = work.__await__()
    try:
        next(steps)
    except StopIteration as end:
        result: Result = end.value
        return result
    raise RuntimeError("a statement of the embedded store waited for something")


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
        db = sqlite3.connect(
            address,
            BUSY_SECONDS,
            uri=True,
            isolation_level=None,
            check_same_thread=False,
            detect_types=sqlite3.PARSE_DECLTYPES,
        )
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


def check_file(db: sqlite3.Connection) -> None:
    """Refuse a file that is not ours or not of this version. Raises StoreError."""
    try:
        application = db.execute("PRAGMA application_id").fetchone()[0]
        version = db.execute("PRAGMA user_version").fetchone()[0]
    except sqlite3.Error as error:
        raise StoreError(f"the file cannot be read as a store: {error}") from error
    if application != APPLICATION:
        raise StoreError("the file is a database of another program")
    schema.check_version(version)


def prepare_file(db: sqlite3.Connection) -> None:
    """Make the tables in an empty file; refuse one that is not ours or of another version. Raises StoreError."""
    with transaction(db):
        if not db.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]:
            finish(schema.make_tables(SqliteConnection(db), "sqlite", IDS))
            db.execute(f"PRAGMA application_id = {APPLICATION}")
            db.execute(f"PRAGMA user_version = {schema.VERSION}")
        check_file(db)
