"""The file of an embedded store: connections to it, transactions on them, in whatever thread has them, and the ids of
reports as its tables list them: recent ones in blobs, one a commit; others in runs.

A blob (``recent_ids``) is part of the commit that counted its reports. Runs (:mod:`ldp_aggregator.store.sqlite`) are
files in a folder beside the database, and belong to the store from the commit on that lists them (``runs``).
"""

from __future__ import annotations

import functools
import os
import sqlite3
import zlib
from collections.abc import AsyncIterator, Awaitable, Iterator, Sequence
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import numpy as np

from ldp_aggregator.store.clocks import Moment, SteadyClock
from ldp_aggregator.store.contract import DAMAGED, LOG, StoreError, from_text, kind_of, to_text
from ldp_aggregator.store.sql.checks import insert, sound
from ldp_aggregator.store.sql.published import begin_origin
from ldp_aggregator.store.sql.tables import VERSION, Result, Row, check_version, for_sqlite, make_tables
from ldp_aggregator.store.sqlite.keys import RECORD_BYTES, Hashes, Keys, UnsortedIds, keys_of, new_secret
from ldp_aggregator.store.sqlite.run_files import Run, RunFile, open_run, remove_leftovers, write_run

FILE_NAME: Final = "aggregator.sqlite3"
APPLICATION: Final = 0x6C647062
"""SQLite's ``application_id``: "ldpb" in ASCII. Tells our files from other programs'."""
LEAST_SQLITE: Final = (3, 35)
"""Oldest SQLite that has RETURNING."""
BUSY_SECONDS: Final = 20.0
"""Seconds that a transaction waits for another process's."""
CACHE_KIBIBYTES: Final = 64 << 10
CHECKPOINT_PAGES: Final = 8_000
"""Pages of the write-ahead log after which a commit copies them into the database file."""

FAILURES: Final = (sqlite3.Error, UnicodeDecodeError)
"""Failures of SQLite's module; the second if its message would quote damaged text."""

IDS: Final = """
CREATE TABLE recent_ids (place INTEGER PRIMARY KEY, checked bigint NOT NULL, records BLOB NOT NULL);
CREATE TABLE runs (
    name text PRIMARY KEY, campaign bigint NOT NULL REFERENCES campaigns (number), ids bigint NOT NULL,
    checked bigint NOT NULL
)
"""
"""The tables that list the ids, beside those of :mod:`ldp_aggregator.store.sql.tables`."""


def _time(text: bytes) -> datetime | bytes:
    """A damaged time comes as it stands there, and never agrees with its row's check."""
    try:
        return from_text(text.decode())
    except ValueError:
        return text


sqlite3.register_converter("timestamptz", _time)


class SqliteConnection:
    """See :class:`ldp_aggregator.store.sql.tables.SqlConnection`. No method ever waits: :func:`finish` runs what is
    written with them to its end, in the thread that it is called in.
    """

    def __init__(self, raw: sqlite3.Connection, clock: SteadyClock | None = None) -> None:
        self.raw = raw
        self._clock = clock or SteadyClock()

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

    async def moment(self) -> Moment:
        return self._clock.read()

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
    """An empty file that its owner alone can read, if there is none. SQLite's files beside it get the same mode."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    except OSError as error:
        raise StoreError(f"{path} cannot be opened as a store: {error.strerror}") from error


def _text(found: bytes) -> str:
    """Text of a column, damaged bytes escaped: one damaged text fails no statement that reads a hundred."""
    return found.decode(errors="surrogateescape")


def open_connection(path: Path, *, read_only: bool = False) -> sqlite3.Connection:
    """A connection in autocommit mode; transactions are written out."""
    if sqlite3.sqlite_version_info < LEAST_SQLITE:
        wanted = ".".join(map(str, LEAST_SQLITE))
        raise StoreError(f"SQLite {sqlite3.sqlite_version} is too old; the embedded store needs {wanted} or newer")
    address = f"file:{quote(str(path.absolute()))}?mode={'ro' if read_only else 'rw'}"
    try:
        types = sqlite3.PARSE_DECLTYPES
        db = sqlite3.connect(
            address, timeout=BUSY_SECONDS, uri=True, isolation_level=None, check_same_thread=False, detect_types=types
        )
        try:
            db.row_factory = sqlite3.Row
            db.text_factory = _text
            db.execute(f"PRAGMA cache_size = -{CACHE_KIBIBYTES}")
            db.execute("PRAGMA synchronous = FULL")
            db.execute("PRAGMA foreign_keys = ON")
            # Debian's SQLite writes zeros over what is deleted: ids that have become a run would be written once more.
            db.execute("PRAGMA secure_delete = FAST")
            db.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
        except FAILURES:
            db.close()
            raise
    except FAILURES as error:
        raise StoreError(f"{path} cannot be opened as a store: {error}") from error
    return db


def keep_log(db: sqlite3.Connection) -> None:
    """Commit to a log beside the file from now on, whoever opens it. A backup never gets there: it stays one file."""
    try:
        db.execute("PRAGMA journal_mode = WAL")
    except FAILURES as error:
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
    except FAILURES as error:
        raise StoreError(f"the database answered: {error}") from error


def write_a_page(db: sqlite3.Connection) -> None:
    """Write, and change nothing: an empty transaction would succeed on a full disk, and at once."""
    version = db.execute("PRAGMA user_version").fetchone()[0]
    db.execute(f"PRAGMA user_version = {version}")


def check_file(db: sqlite3.Connection) -> None:
    """Refuse a file that is not ours or not of this version. Raises StoreError."""
    try:
        application = db.execute("PRAGMA application_id").fetchone()[0]
        version = db.execute("PRAGMA user_version").fetchone()[0]
    except FAILURES as error:
        raise StoreError(f"the file cannot be read as a store: {error}") from error
    if application != APPLICATION:
        raise StoreError("the file is a database of another program")
    check_version(version)
    if _schema(db) != _own_schema():
        raise StoreError("the store is damaged: its tables are not those of this version; restore a backup", DAMAGED)


def _schema(db: sqlite3.Connection) -> list[tuple[str, ...]]:
    found = db.execute("SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_schema").fetchall()
    return sorted(tuple(map(str, row)) for row in found)


@functools.cache
def _own_schema() -> list[tuple[str, ...]]:
    """Schema of a new store."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        finish(make_tables(SqliteConnection(db), "sqlite", IDS))
        return _schema(db)


def prepare_file(db: sqlite3.Connection) -> None:
    """Make the tables in an empty file; refuse one that is not ours or of another version. Raises StoreError."""
    with transaction(db):
        if not db.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]:
            finish(make_tables(SqliteConnection(db), "sqlite", IDS))
            finish(begin_origin(SqliteConnection(db)))
            db.execute(f"PRAGMA application_id = {APPLICATION}")
            db.execute(f"PRAGMA user_version = {VERSION}")
        check_file(db)


FOLDER_SUFFIX: Final = ".ids"

_NUMBERS: Final = 1 << 40
"""Commits of a campaign that have a place: the key says both, and a campaign's blobs follow each other."""

_RUN: Final = "runs.name, runs.ids, runs.checked"

_PLACES: Final = "place > ? AND place <= ?"


def folder_of(file: Path) -> Path:
    """The folder of a database file's runs."""
    return file.with_name(file.name + FOLDER_SUFFIX)


def runs_folder(db: sqlite3.Connection) -> Path:
    return folder_of(Path(db.execute("PRAGMA database_list").fetchone()["file"]))


def drop_ids(db: sqlite3.Connection, number: int) -> None:
    """Forget all ids of a campaign; :func:`sweep_runs`, after the commit, removes the files."""
    drop_recent(db, number, _NUMBERS - 1)
    db.execute("DELETE FROM runs WHERE campaign = ?", (number,))


def sweep_runs(db: sqlite3.Connection) -> None:
    """Remove what no table lists. Inside a write transaction, so that nobody lists anything meanwhile.

    If the list is damaged nothing is removed: a name that cannot be read may be that of a run.
    """
    try:
        damage = db.execute("PRAGMA integrity_check(runs)").fetchone()[0]
        if damage != "ok":
            raise StoreError(f"the store is damaged: {damage}", DAMAGED)
        remove_leftovers(runs_folder(db), listed_runs(db))
    except StoreError as error:
        LOG.error("runs of ids were not swept", extra={"reason": kind_of(error)})


def stored_ids(db: sqlite3.Connection, number: int) -> int:
    recent = recent_bytes(db, number, _NUMBERS - 1)
    return recent // RECORD_BYTES + sum(run_sizes(db, number).values())


def listed_runs(db: sqlite3.Connection) -> dict[str, str]:
    """The runs of all campaigns: name, and id of the campaign. Raises StoreError if the list is damaged."""
    rows = db.execute(f"SELECT {_RUN}, campaigns.id FROM runs LEFT JOIN campaigns ON number = campaign").fetchall()
    return {_sound_run(row, row["id"])["name"]: row["id"] for row in rows}


def campaign_id(db: sqlite3.Connection, number: int) -> str:
    """The id of a campaign."""
    return str(db.execute("SELECT id FROM campaigns WHERE number = ?", (number,)).fetchone()["id"])


def run_sizes(db: sqlite3.Connection, number: int) -> dict[str, int]:
    """Name and number of ids of every run of a campaign. Raises StoreError if the list is damaged."""
    rows = db.execute(f"SELECT {_RUN} FROM runs WHERE campaign = ? ORDER BY name", (number,)).fetchall()
    owner = campaign_id(db, number) if rows else ""
    return {_sound_run(row, owner)["name"]: row["ids"] for row in rows}


def _sound_run(row: sqlite3.Row, campaign: str | None) -> sqlite3.Row:
    sound("runs", {name: row[name] for name in ("name", "ids", "checked")}, campaign or "")
    return row


def add_recent(db: sqlite3.Connection, campaign: int, number: int, records: bytes) -> None:
    """Keep what a commit has counted: sorted records of :data:`RECORD_BYTES`."""
    place = campaign * _NUMBERS + number
    statement = "INSERT INTO recent_ids (place, checked, records) VALUES (?, ?, ?)"
    db.execute(statement, (place, _check_of_recent(place, records), records))


def _check_of_recent(place: int, records: bytes) -> int:
    return zlib.crc32(records, zlib.crc32(b"recent_ids %d" % place))


def recent_after(db: sqlite3.Connection, campaign: int, number: int = 0) -> list[tuple[int, bytes]]:
    """Number and records of what was added after ``number``. Raises StoreError if something of it is damaged."""
    found = []
    for place, records, damage in _recent_after(db, campaign, number):
        if damage is not None:
            raise StoreError(
                f"campaign {campaign_id(db, campaign)} is damaged: {damage}; "
                "'ldp-aggregator fsck --take-out-damaged' takes them out",
                DAMAGED,
            )
        found.append((place, records))
    return found


def _recent_after(db: sqlite3.Connection, campaign: int, number: int = 0) -> list[tuple[int, bytes, str | None]]:
    """Number, records, and what is wrong with them."""
    rows = db.execute(
        f"SELECT place, checked, records FROM recent_ids WHERE {_PLACES} ORDER BY place",
        (campaign * _NUMBERS + number, (campaign + 1) * _NUMBERS - 1),
    ).fetchall()
    found = []
    for place, checked, records in rows:
        stored = records if isinstance(records, bytes) else b""
        sound_ones = stored and len(stored) % RECORD_BYTES == 0 and _check_of_recent(place, stored) == checked
        damage = None if sound_ones else f"the ids of commit {place % _NUMBERS} do not agree with their check"
        found.append((place % _NUMBERS, stored, damage))
    return found


def recent_bytes(db: sqlite3.Connection, campaign: int, until: int) -> int:
    """Bytes of the records up to number ``until``."""
    places = (campaign * _NUMBERS, campaign * _NUMBERS + until)
    row = db.execute(f"SELECT coalesce(sum(length(records)), 0) FROM recent_ids WHERE {_PLACES}", places)
    return int(row.fetchone()[0])


def drop_recent(db: sqlite3.Connection, campaign: int, until: int) -> None:
    """Drop the recent ids up to number ``until``, which are in a run, or of no use any more."""
    db.execute(f"DELETE FROM recent_ids WHERE {_PLACES}", (campaign * _NUMBERS, campaign * _NUMBERS + until))


def list_run(db: sqlite3.Connection, campaign: int, run_file: RunFile) -> str:
    """Make a run file a run of a campaign; it is one if the transaction commits."""
    name = run_file.publish()
    values = {"name": name, "ids": run_file.ids}
    finish(insert(SqliteConnection(db), "runs", values, (campaign, campaign_id(db, campaign))))
    return name


def copy_ids(db: sqlite3.Connection, number: int, source: sqlite3.Connection, source_number: int) -> int:
    """Add those of a campaign in another store; returns how many of them were here already. Raises StoreError if a
    run is damaged.
    """
    name = campaign_id(db, number)
    recent = UnsortedIds()
    for _, records in recent_after(source, source_number):
        recent.add(keys_of(records))
    there = [open_run(runs_folder(source) / found, name) for found in run_sizes(source, source_number)]
    parts = [(len(recent), iter([recent.all()]))] if len(recent) else []
    parts += [(len(run), run.blocks()) for run in there]
    here = [open_run(runs_folder(db) / found, name) for found in run_sizes(db, number)]
    overlap = 0
    for size, blocks in parts:
        run_file = write_run(runs_folder(db), name, size, (_unknown(block, here) for block in blocks), new_secret())
        overlap += size - run_file.ids
        if run_file.ids:
            list_run(db, number, run_file)
        else:
            run_file.discard()
    return overlap


def _unknown(block: Keys, runs: list[Run]) -> Keys:
    """The ids of a block that no run has."""
    new = np.ones(len(block), dtype=bool)
    hashes = Hashes(block)
    for run in runs:
        new[run.find(hashes)[0]] = False
    return Keys(block.high[new], block.low[new], block.digest[new])


def problems_of_ids(db: sqlite3.Connection, number: int) -> list[str]:
    """Look for what is wrong with the ids of a campaign: every file is read whole."""
    found = [problem for name in run_sizes(db, number) if (problem := _problem(db, number, name))]
    return found + [damage for _, _, damage in _recent_after(db, number) if damage is not None]


def strays(db: sqlite3.Connection) -> list[str]:
    """Look for what belongs to no campaign: its number is damaged, or the campaign's."""
    tables = [row["table"] for row in db.execute("PRAGMA foreign_key_check").fetchall()]
    lost = db.execute("SELECT 1 FROM recent_ids WHERE place / ? NOT IN (SELECT number FROM campaigns)", (_NUMBERS,))
    tables += ["recent_ids" for _ in lost.fetchall()]
    return [f"a row of {table} belongs to no campaign" for table in tables]


def _problem(db: sqlite3.Connection, number: int, name: str) -> str | None:
    try:
        run = open_run(runs_folder(db) / name, campaign_id(db, number))
        run.verify()
    except StoreError as error:
        return str(error)
    size = run_sizes(db, number)[name]
    return None if len(run) == size else f"{name}: {size} ids are listed, {len(run)} are in it"


@dataclass(frozen=True)
class TakenOut:
    """A damaged run, or the ids of a commit, taken out of a campaign: ``ids`` that it had, and the ``saved`` ones, of
    sound pages.
    """

    campaign: str
    run: str
    problem: str
    ids: int
    saved: int


def take_out_damaged(db: sqlite3.Connection, number: int) -> list[TakenOut]:
    """Take the damaged runs out of a campaign and put what is sound of them into new ones, inside a transaction that
    writes. Reports whose ids are lost stay counted; they may be counted once more, and that is noted.
    """
    taken = []
    name = campaign_id(db, number)
    for run, size in run_sizes(db, number).items():
        problem = _problem(db, number, run)
        if problem is None:
            continue
        try:
            damaged = open_run(runs_folder(db) / run, name)
            run_file = write_run(runs_folder(db), name, len(damaged), damaged.sound_blocks(), new_secret())
            saved = run_file.ids
            if saved:
                list_run(db, number, run_file)
            else:
                run_file.discard()
        except StoreError:  # It is missing, or nobody can tell where its pages are.
            saved = 0
        db.execute("DELETE FROM runs WHERE name = ?", (run,))
        taken.append(TakenOut(name, run, problem, size, saved))
    for place, records, damage in _recent_after(db, number):
        if damage is not None:
            db.execute("DELETE FROM recent_ids WHERE place = ?", (number * _NUMBERS + place,))
            taken.append(TakenOut(name, f"commit {place}", damage, len(records) // RECORD_BYTES, 0))
    return taken
