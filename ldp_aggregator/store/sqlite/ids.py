"""The ids of reports in a SQLite store, as its tables list them: recent ones in blobs, one a commit; others in runs.

A blob (``recent_ids``) is part of the commit that counted its reports. Runs (:mod:`ldp_aggregator.store.runs`) are
files in a folder beside the database, and belong to the store from the commit on that lists them (``runs``).
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from ldp_aggregator.store.contract import StoreError
from ldp_aggregator.store.runs.files import open_run, publish_run, remove_leftovers, write_run
from ldp_aggregator.store.runs.filters import filter_bits, new_secret
from ldp_aggregator.store.runs.keys import RECORD_BYTES, Keys, keys_of, merged

FOLDER_SUFFIX: Final = ".ids"

_RECENT: Final = "CREATE TABLE recent_ids (place INTEGER PRIMARY KEY, records BLOB NOT NULL)"
_RUNS: Final = (
    "CREATE TABLE runs "
    "(name TEXT PRIMARY KEY, campaign INTEGER NOT NULL REFERENCES campaigns (number), ids INTEGER NOT NULL)"
)

_NUMBERS: Final = 1 << 40
"""Commits of a campaign that have a place: the key says both, and a campaign's blobs follow each other."""
_SLICE: Final = 1 << 17

_PLACES: Final = "place > ? AND place <= ?"


def folder_of(file: Path) -> Path:
    """Where the runs of a database file are."""
    return file.with_name(file.name + FOLDER_SUFFIX)


def folder(db: sqlite3.Connection, schema: str = "main") -> Path:
    """Where the runs of an open (or attached) database are."""
    for row in db.execute("PRAGMA database_list").fetchall():
        if row["name"] == schema:
            return folder_of(Path(row["file"]))
    raise StoreError(f"no database is attached as {schema}")


def drop(db: sqlite3.Connection, number: int) -> None:
    """Forget all ids of a campaign; :func:`sweep`, after the commit, removes the files."""
    drop_recent(db, number, _NUMBERS - 1)
    db.execute("DELETE FROM runs WHERE campaign = ?", (number,))


def sweep(db: sqlite3.Connection) -> None:
    """Remove what no table lists. Inside a write transaction, so that nobody lists anything meanwhile."""
    remove_leftovers(folder(db), listed(db), time.time())


def stored(db: sqlite3.Connection, number: int, schema: str = "main") -> int:
    """How many there are."""
    recent = recent_bytes(db, number, _NUMBERS - 1, schema)
    return recent // RECORD_BYTES + sum(run_sizes(db, number, schema).values())


def listed(db: sqlite3.Connection) -> set[str]:
    """The runs of all campaigns; none in a store of an older version."""
    if db.execute("SELECT 1 FROM sqlite_schema WHERE name = 'runs'").fetchone() is None:
        return set()
    return {row["name"] for row in db.execute("SELECT name FROM runs").fetchall()}


def run_sizes(db: sqlite3.Connection, number: int, schema: str = "main") -> dict[str, int]:
    """Name and number of ids of every run of a campaign."""
    rows = db.execute(f"SELECT name, ids FROM {schema}.runs WHERE campaign = ? ORDER BY name", (number,))
    return {row["name"]: row["ids"] for row in rows.fetchall()}


def add_recent(db: sqlite3.Connection, campaign: int, number: int, records: bytes) -> None:
    """Keep what a commit has counted: sorted records of :data:`RECORD_BYTES`."""
    db.execute("INSERT INTO recent_ids (place, records) VALUES (?, ?)", (campaign * _NUMBERS + number, records))


def recent_after(
    db: sqlite3.Connection, campaign: int, number: int = 0, schema: str = "main"
) -> list[tuple[int, bytes]]:
    """Number and records of what was added after ``number``."""
    rows = db.execute(
        f"SELECT place, records FROM {schema}.recent_ids WHERE {_PLACES} ORDER BY place",
        (campaign * _NUMBERS + number, (campaign + 1) * _NUMBERS - 1),
    )
    return [(row["place"] % _NUMBERS, row["records"]) for row in rows.fetchall()]


def recent_bytes(db: sqlite3.Connection, campaign: int, until: int, schema: str = "main") -> int:
    """Bytes of the records up to number ``until``."""
    places = (campaign * _NUMBERS, campaign * _NUMBERS + until)
    row = db.execute(f"SELECT coalesce(sum(length(records)), 0) FROM {schema}.recent_ids WHERE {_PLACES}", places)
    return int(row.fetchone()[0])


def drop_recent(db: sqlite3.Connection, campaign: int, until: int) -> None:
    """Those up to number ``until``: they are in a run, or of no use any more."""
    db.execute(f"DELETE FROM recent_ids WHERE {_PLACES}", (campaign * _NUMBERS, campaign * _NUMBERS + until))


def list_run(db: sqlite3.Connection, campaign: int, draft: Path, ids: int) -> str:
    """Make a draft a run of a campaign; it is one if the transaction commits."""
    name = publish_run(draft)
    db.execute("INSERT INTO runs (name, campaign, ids) VALUES (?, ?, ?)", (name, campaign, ids))
    return name


def copy(db: sqlite3.Connection, number: int, schema: str, source: int) -> int:
    """Add those of a campaign in an attached store; returns how many of them were here already."""
    here = _sorted(db, number, "main")
    there = _sorted(db, source, schema)
    overlap = 0
    for part in there:
        fresh = sum(len(piece) for piece in _unknown(part, here))
        overlap += len(part) - fresh
        if fresh:
            bits = filter_bits(stored(db, number) + fresh)
            list_run(db, number, write_run(folder(db), fresh, _unknown(part, here), new_secret(), bits), fresh)
    return overlap


def _sorted(db: sqlite3.Connection, number: int, schema: str) -> list[Keys]:
    """All ids of a campaign, in a few sorted parts."""
    recent = [keys_of(records) for _, records in recent_after(db, number, schema=schema)]
    runs = [open_run(folder(db, schema) / name).keys for name in run_sizes(db, number, schema)]
    return ([merged(recent)] if recent else []) + runs


def _unknown(part: Keys, others: Sequence[Keys]) -> Iterator[Keys]:
    """The ids of a part that no other one has, slice by slice."""
    for start in range(0, len(part), _SLICE):
        piece = part.slice(start, start + _SLICE)
        new = np.ones(len(piece), dtype=bool)
        for other in others:
            new[other.find(piece)[0]] = False
        yield Keys(piece.high[new], piece.low[new], piece.digest[new])


def make_tables(db: sqlite3.Connection) -> None:
    """A step of the schema: the ids of each campaign were the keys of a table of its own, and become a run."""
    db.execute(_RECENT)
    db.execute(_RUNS)
    for (number,) in db.execute("SELECT number FROM campaigns").fetchall():
        name = f"ids_{int(number)}"
        if db.execute("SELECT 1 FROM sqlite_schema WHERE name = ?", (name,)).fetchone() is None:
            continue
        size = int(db.execute(f"SELECT count(*) FROM {name}").fetchone()[0])
        if size:
            draft = write_run(folder(db), size, _of_table(db, name), new_secret(), filter_bits(size))
            list_run(db, number, draft, size)
        db.execute(f"DROP TABLE {name}")


def _of_table(db: sqlite3.Connection, name: str) -> Iterator[Keys]:
    cursor = db.execute(f"SELECT id, digest FROM {name} ORDER BY id")
    while rows := cursor.fetchmany(_SLICE):
        yield keys_of(b"".join(row["id"] + row["digest"] for row in rows))


def problems(db: sqlite3.Connection, number: int) -> list[str]:
    """What is wrong with the ids of a campaign: every file is read whole."""
    found = []
    for name, size in run_sizes(db, number).items():
        try:
            run = open_run(folder(db) / name)
        except StoreError as error:
            found.append(str(error))
            continue
        found += run.problems()
        if len(run) != size:
            found.append(f"{name}: {size} ids are listed, {len(run)} are in it")
    for place, records in recent_after(db, number):
        if len(records) % RECORD_BYTES:
            found.append(f"the ids of commit {place} end within an id")
    return found
