"""The storage of a device: one SQLite file.

A connection lives as long as one transaction. That costs a fraction of a millisecond a few times a day, and leaves
nothing open for a fork, another thread or another process to trip over.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Final

from ldp_client.errors import StorageError
from ldp_client.policy import CHECKED_STORAGE_BYTES, STORAGE_CHECK, STORAGE_WAIT
from ldp_client.runtime import ONE_TRANSACTION, seconds_left
from ldp_client.storage.contract import DictTransaction, Transaction, problem_of

SCHEMA_VERSION: Final = 1
_PROBLEMS: Final = (
    ("full", "storage-full"),
    ("readonly", "storage-read-only"),
    ("malformed", "storage-corrupt"),
    ("not a database", "storage-corrupt"),
    ("already exists", "storage-corrupt"),
    ("no such table", "storage-corrupt"),
    ("locked", "storage-busy"),
)
"""Part of SQLite's message, and our code."""


_ROOM_BYTES: Final = 1 << 16
"""More than a contribution writes, with its journal."""
_SHORTEST_PAUSE: Final = 0.001
_LONGEST_PAUSE: Final = 0.05
"""Seconds between two looks at a file that another process holds."""


class SqliteStorage:
    """A file for its owner only, shared by threads and processes; a relative path is fixed to the folder of now."""

    __slots__ = ("_checked", "_path")

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path).absolute()
        self._checked = -STORAGE_CHECK

    @contextmanager
    def transaction(self, *, write: bool) -> Iterator[Transaction]:
        """See :class:`ldp_client.storage.contract.Storage`."""
        until, pause = time.monotonic() + min(STORAGE_WAIT, seconds_left(STORAGE_WAIT)), _SHORTEST_PAUSE
        try:
            while True:
                with _alone(until):
                    if not write and not self._path.exists():
                        yield DictTransaction({})
                        return
                    with closing(self._connect()) as connection:
                        version = _begin(connection, write, until)
                        if version is not None:
                            yield from self._run(connection, version, write, until)
                            return
                # Not inside: what this process does elsewhere must not wait for another process.
                time.sleep(min(pause, max(0.0, until - time.monotonic())))
                pause = min(2 * pause, _LONGEST_PAUSE)
        except UnicodeDecodeError:
            # SQLite quotes what it found in a damaged schema.
            raise StorageError("storage-corrupt") from None
        except (sqlite3.Error, OSError) as error:
            raise StorageError(_problem(error)) from error

    def check_room(self) -> None:
        """See :class:`ldp_client.storage.contract.Storage`."""
        tried = self._path.with_name(self._path.name + ".room")
        try:
            if self._path.exists():
                with self.transaction(write=True):
                    pass
            tried.write_bytes(bytes(_ROOM_BYTES))
        except OSError as error:
            raise StorageError(problem_of(error)) from error
        finally:
            with suppress(OSError):
                tried.unlink()

    def discard(self) -> None:
        """See :class:`ldp_client.storage.contract.Storage`. What the file held is overwritten, as far as the disk does
        that in place.
        """
        try:
            for name in (self._path.name, self._path.name + "-journal"):
                with suppress(FileNotFoundError):
                    path = self._path.with_name(name)
                    with path.open("r+b") as file:
                        file.write(bytes(path.stat().st_size))
                        os.fsync(file.fileno())
                    path.unlink()
        except OSError as error:
            raise StorageError(problem_of(error)) from error

    def _connect(self) -> sqlite3.Connection:
        if not self._path.exists():
            # SQLite would create it readable by everybody that the umask lets in.
            os.close(os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600))
        return sqlite3.connect(self._path, timeout=0, isolation_level=None, cached_statements=8)

    def _run(self, connection: sqlite3.Connection, version: int, write: bool, until: float) -> Iterator[Transaction]:
        try:
            if version > SCHEMA_VERSION:
                raise StorageError("storage-newer")
            if version and write and self._must_be_checked():
                (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
                if verdict != "ok":
                    raise StorageError("storage-corrupt")
                self._checked = time.monotonic()
            if not version and write:
                connection.execute("CREATE TABLE entries (key TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID")
                connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
            # Version 0 and a table is damage, and reading it says so.
            empty = not (version or write or connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0])
            yield DictTransaction({}) if empty else _SqliteTransaction(connection)
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        # The file is ours; those who still read it need a moment.
        connection.execute(f"PRAGMA busy_timeout = {max(0, int(1000 * (until - time.monotonic())))}")
        connection.execute("COMMIT")

    def _must_be_checked(self) -> bool:
        small = self._path.stat().st_size <= CHECKED_STORAGE_BYTES
        return small or time.monotonic() - self._checked >= STORAGE_CHECK


@contextmanager
def _alone(until: float) -> Iterator[None]:
    """The turn of a thread of this process. Raises StorageError where it does not come in time."""
    if not ONE_TRANSACTION.acquire(timeout=max(0.0, until - time.monotonic())):
        raise StorageError("storage-busy")
    try:
        yield
    finally:
        ONE_TRANSACTION.release()


def _begin(connection: sqlite3.Connection, write: bool, until: float) -> int | None:
    """Take the file's lock; its version, or None where another process has the lock and there is time to ask again."""
    try:
        # EXTRA: after a loss of power the rollback journal must not come back and undo a commit. A report sent from an
        # undone commit would be drawn a second time.
        connection.execute("PRAGMA synchronous = EXTRA")
        if sys.platform == "darwin":
            # There fsync leaves the data in the drive's own cache.
            connection.execute("PRAGMA fullfsync = ON")
        # What is deleted (a withdrawn report) is overwritten in the file too.
        connection.execute("PRAGMA secure_delete = ON")
        connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
        version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    except sqlite3.OperationalError as error:
        if "locked" not in str(error) or time.monotonic() >= until:
            raise
        return None
    return version


class _SqliteTransaction:
    __slots__ = ("_connection",)

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def get(self, key: str) -> bytes | None:
        row = self._connection.execute("SELECT value FROM entries WHERE key = ?", (key,)).fetchone()
        return None if row is None else _bytes(row[0])

    def put(self, key: str, value: bytes) -> None:
        self._connection.execute("INSERT OR REPLACE INTO entries VALUES (?, ?)", (key, value))

    def delete(self, key: str) -> None:
        self._connection.execute("DELETE FROM entries WHERE key = ?", (key,))

    def items(self, prefix: str, limit: int | None = None) -> list[tuple[str, bytes]]:
        rows = self._connection.execute(
            "SELECT key, value FROM entries WHERE key >= ? AND key < ? ORDER BY key LIMIT ?",
            (prefix, prefix + "\x7f", -1 if limit is None else limit),
        )
        return [(str(key), _bytes(value)) for key, value in rows]


def _bytes(value: object) -> bytes:
    if not isinstance(value, bytes):
        raise StorageError("storage-corrupt")
    return value


def _problem(error: Exception) -> str:
    if isinstance(error, OSError):
        return problem_of(error)
    return next((code for part, code in _PROBLEMS if part in str(error)), "storage-unavailable")
