"""The ids of reports in a SQLite store, as its tables list them: recent ones in blobs, one a commit; others in runs.

A blob (``recent_ids``) is part of the commit that counted its reports. Runs (:mod:`ldp_aggregator.store.runs`) are
files in a folder beside the database, and belong to the store from the commit on that lists them (``runs``).
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from ldp_aggregator.store.contract import StoreError
from ldp_aggregator.store.runs.filters import Hashes, new_secret
from ldp_aggregator.store.runs.keys import RECORD_BYTES, Keys, Recent, keys_of
from ldp_aggregator.store.runs.run_files import Draft, Run, open_run, remove_leftovers, write_run

FOLDER_SUFFIX: Final = ".ids"

_NUMBERS: Final = 1 << 40
"""Commits of a campaign that have a place: the key says both, and a campaign's blobs follow each other."""

_PLACES: Final = "place > ? AND place <= ?"


def folder_of(file: Path) -> Path:
    """Return the folder of a database file's runs."""
    return file.with_name(file.name + FOLDER_SUFFIX)


def folder(db: sqlite3.Connection) -> Path:
    return folder_of(Path(db.execute("PRAGMA database_list").fetchone()["file"]))


def drop(db: sqlite3.Connection, number: int) -> None:
    """Forget all ids of a campaign; :func:`sweep`, after the commit, removes the files."""
    drop_recent(db, number, _NUMBERS - 1)
    db.execute("DELETE FROM runs WHERE campaign = ?", (number,))


def sweep(db: sqlite3.Connection) -> None:
    """Remove what no table lists. Inside a write transaction, so that nobody lists anything meanwhile."""
    remove_leftovers(folder(db), listed(db))


def stored(db: sqlite3.Connection, number: int) -> int:
    recent = recent_bytes(db, number, _NUMBERS - 1)
    return recent // RECORD_BYTES + sum(run_sizes(db, number).values())


def listed(db: sqlite3.Connection) -> dict[str, str]:
    """The runs of all campaigns: name, and id of the campaign."""
    rows = db.execute("SELECT runs.name, campaigns.id FROM runs JOIN campaigns ON campaigns.number = runs.campaign")
    return {row["name"]: row["id"] for row in rows.fetchall()}


def campaign_id(db: sqlite3.Connection, number: int) -> str:
    """The id of a campaign."""
    return str(db.execute("SELECT id FROM campaigns WHERE number = ?", (number,)).fetchone()["id"])


def run_sizes(db: sqlite3.Connection, number: int) -> dict[str, int]:
    """Name and number of ids of every run of a campaign."""
    rows = db.execute("SELECT name, ids FROM runs WHERE campaign = ? ORDER BY name", (number,))
    return {row["name"]: row["ids"] for row in rows.fetchall()}


def add_recent(db: sqlite3.Connection, campaign: int, number: int, records: bytes) -> None:
    """Keep what a commit has counted: sorted records of :data:`RECORD_BYTES`."""
    db.execute("INSERT INTO recent_ids (place, records) VALUES (?, ?)", (campaign * _NUMBERS + number, records))


def recent_after(db: sqlite3.Connection, campaign: int, number: int = 0) -> list[tuple[int, bytes]]:
    """Number and records of what was added after ``number``."""
    rows = db.execute(
        f"SELECT place, records FROM recent_ids WHERE {_PLACES} ORDER BY place",
        (campaign * _NUMBERS + number, (campaign + 1) * _NUMBERS - 1),
    )
    return [(row["place"] % _NUMBERS, row["records"]) for row in rows.fetchall()]


def recent_bytes(db: sqlite3.Connection, campaign: int, until: int) -> int:
    """Bytes of the records up to number ``until``."""
    places = (campaign * _NUMBERS, campaign * _NUMBERS + until)
    row = db.execute(f"SELECT coalesce(sum(length(records)), 0) FROM recent_ids WHERE {_PLACES}", places)
    return int(row.fetchone()[0])


def drop_recent(db: sqlite3.Connection, campaign: int, until: int) -> None:
    """Those up to number ``until``: they are in a run, or of no use any more."""
    db.execute(f"DELETE FROM recent_ids WHERE {_PLACES}", (campaign * _NUMBERS, campaign * _NUMBERS + until))


def list_run(db: sqlite3.Connection, campaign: int, draft: Draft) -> str:
    """Make a draft a run of a campaign; it is one if the transaction commits."""
    name = draft.publish()
    db.execute("INSERT INTO runs (name, campaign, ids) VALUES (?, ?, ?)", (name, campaign, draft.ids))
    return name


def copy(db: sqlite3.Connection, number: int, source: sqlite3.Connection, source_number: int) -> int:
    """Add those of a campaign in another store; returns how many of them were here already. Raises StoreError where a
    run is damaged.
    """
    name = campaign_id(db, number)
    recent = Recent()
    for _, records in recent_after(source, source_number):
        recent.add(keys_of(records))
    there = [open_run(folder(source) / found, name) for found in run_sizes(source, source_number)]
    parts = [(len(recent), iter([recent.all()]))] if len(recent) else []
    parts += [(len(run), run.blocks()) for run in there]
    here = [open_run(folder(db) / found, name) for found in run_sizes(db, number)]
    overlap = 0
    for size, blocks in parts:
        draft = write_run(folder(db), name, size, (_unknown(block, here) for block in blocks), new_secret())
        overlap += size - draft.ids
        if draft.ids:
            list_run(db, number, draft)
        else:
            draft.discard()
    return overlap


def _unknown(block: Keys, runs: list[Run]) -> Keys:
    """The ids of a block that no run has."""
    new = np.ones(len(block), dtype=bool)
    hashes = Hashes(block)
    for run in runs:
        new[run.find(hashes)[0]] = False
    return Keys(block.high[new], block.low[new], block.digest[new])


def problems(db: sqlite3.Connection, number: int) -> list[str]:
    """Look for what is wrong with the ids of a campaign: every file is read whole."""
    found = [problem for name in run_sizes(db, number) if (problem := _problem(db, number, name))]
    found += [
        f"the ids of commit {place} end within an id"
        for place, records in recent_after(db, number)
        if len(records) % RECORD_BYTES
    ]
    return found


def _problem(db: sqlite3.Connection, number: int, name: str) -> str | None:
    try:
        run = open_run(folder(db) / name, campaign_id(db, number))
        run.verify()
    except StoreError as error:
        return str(error)
    size = run_sizes(db, number)[name]
    return None if len(run) == size else f"{name}: {size} ids are listed, {len(run)} are in it"


@dataclass(frozen=True)
class TakenOut:
    """A damaged run that was taken out of a campaign: ``ids`` that it had, and the ``saved`` ones, of sound pages."""

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
        saved = 0
        try:
            damaged = open_run(folder(db) / run, name)
            draft = write_run(folder(db), name, len(damaged), damaged.sound_blocks(), new_secret())
            saved = draft.ids
            if saved:
                list_run(db, number, draft)
            else:
                draft.discard()
        except StoreError:  # It is missing, or nobody can tell where its pages are.
            saved = 0
        db.execute("DELETE FROM runs WHERE name = ?", (run,))
        lost = size - saved
        change = "UPDATE campaigns SET lost_ids = lost_ids + ?1, unchecked = unchecked + ?1 WHERE number = ?2"
        db.execute(change, (lost, number))
        taken.append(TakenOut(name, run, problem, size, saved))
    return taken
