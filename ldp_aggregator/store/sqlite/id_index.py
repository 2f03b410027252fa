"""The ids of all campaigns as the writer of a store holds them: who is new is decided here, without reading a file.

What is inserted is staged until its transaction has committed. Where another process has written to the database since,
what is held is compared with the tables before it is used. Recent ids become runs, and runs larger ones: written by a
thread of their own, listed by the writer.
"""

from __future__ import annotations

import contextlib
import ctypes
import sqlite3
import threading
import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np

from ldp_aggregator.store.contract import CLOSING, DAMAGED, LOG, StoreError, told_of
from ldp_aggregator.store.decisions import Batch, Settlement
from ldp_aggregator.store.sqlite import database, run_files
from ldp_aggregator.store.sqlite.database import transaction
from ldp_aggregator.store.sqlite.keys import RECORD_BYTES, Hashes, Keys, Recent, keys_of, new_secret
from ldp_aggregator.store.sqlite.run_files import Draft, Run, merge_runs, open_run, write_run

BEHIND_SECONDS: Final = 1.0
"""How long a commit waits for a run at most."""
PAUSE_SECONDS: Final = 30.0
"""After a run that could not be written; its ids stay where they are."""


@dataclass
class Held:
    """The ids of one campaign. ``flushing`` are those that a run is being made of: all up to number ``flushed``."""

    campaign: str
    runs: dict[str, Run] = field(default_factory=dict)
    flushing: Recent | None = None
    flushed: int = 0
    recent: Recent = field(default_factory=Recent)
    last: int = 0
    """Number of the last blob that is in here."""
    fresh_secret: int = field(default_factory=new_secret)

    @property
    def secret(self) -> int:
        """The number to hash the next run's filter with."""
        return next((run.filter.secret for run in self.runs.values()), self.fresh_secret)

    @property
    def is_due(self) -> bool:
        """The recent ones are enough for a run."""
        stored = sum(map(len, self.runs.values()))
        enough = max(run_files.LEAST_RUN, stored * stored // run_files.FLUSH_SCALE)
        return len(self.recent) >= min(enough, run_files.LARGEST_FLUSH)

    @property
    def backlog(self) -> int:
        return len(self.recent) + (0 if self.flushing is None else len(self.flushing))

    def known(self, wanted: Keys) -> dict[int, bytes]:
        """Position to digest of the ids that are in here."""
        found = self.recent.find(wanted)
        if self.flushing is not None:
            found += self.flushing.find(wanted)
        hashes = Hashes(wanted)
        found += [run.find(hashes) for run in self.runs.values()]
        return {
            position: digest
            for positions, digests in found
            if len(positions)
            for position, digest in zip(
                positions.tolist(), map(bytes, digests.astype("<u8")[:, None].view(np.uint8)), strict=True
            )
        }


class IdSets:
    """Belongs to the thread that writes."""

    def __init__(self) -> None:
        self.known: dict[int, Held] = {}
        """By the campaign's number, those that were asked for."""
        self._stale: set[int] = set()
        self.staged: dict[int, Keys] = {}
        """Ids that wait for their transaction, by campaign."""
        self._seen_version: int | None = None

    def insert(
        self, db: sqlite3.Connection, number: int, batch: Batch, room: int | None, bar: str | None = None
    ) -> Settlement:
        """Store the ids that are new and in time, ``room`` of them at most, inside a write transaction; ``bar`` is the
        code of the others where there is no room for any, by default that of a full campaign.
        """
        records = batch.candidates
        bar = bar or (CLOSING if room == 0 else None)
        held = self.held(db, number)
        known = held.known(wanted := keys_of(records.tobytes()))
        if known or batch.untimely or (room is not None and len(records) > room):
            inserted = batch.earliest(known, len(records) if room is None else room)
            settlement = batch.settle(known, inserted if len(inserted) < len(records) - len(known) else None, bar)
            records = records[inserted]
            wanted = Keys(wanted.high[inserted], wanted.low[inserted], wanted.digest[inserted])
        else:
            settlement = batch.settle({})
        if len(records):
            database.add_recent(db, number, held.last + 1, records.tobytes())
            self.staged[number] = wanted
        return settlement

    def keep(self) -> None:
        """The transaction has committed."""
        for number, staged in self.staged.items():
            held = self.known[number]
            held.recent.add(staged)
            held.last += 1
        self.staged.clear()

    def forget(self, keep: Collection[int] = ()) -> None:
        """The transaction did not commit, or nobody knows (but for those to ``keep``): the tables say what is in."""
        for number in self.staged.keys() - set(keep):
            self._stale.add(number)
            del self.staged[number]

    def held(self, db: sqlite3.Connection, number: int) -> Held:
        """The ids of a campaign, as the tables have them inside the transaction."""
        version = db.execute("PRAGMA data_version").fetchone()[0]
        if version != self._seen_version:
            self._stale |= set(self.known)
            self._seen_version = version
        held = self.known.get(number)
        if held is None or (number in self._stale and not _refresh(db, number, held)):
            held = self.known[number] = _load(db, number)
        self._stale.discard(number)
        return held

    def reload(self, number: int) -> None:
        """Give whoever asks next what the tables have."""
        self.known.pop(number, None)


def _load(db: sqlite3.Connection, number: int) -> Held:
    """Everything, from the tables."""
    name = database.campaign_id(db, number)
    held = Held(name, {run: open_run(database.runs_folder(db) / run, name) for run in database.run_sizes(db, number)})
    _read_recent(db, number, held)
    return held


def _refresh(db: sqlite3.Connection, number: int, held: Held) -> bool:
    """Add what somebody else has written; False where that is not all that has changed."""
    same_runs = database.run_sizes(db, number).keys() == held.runs.keys()
    if not same_runs or database.recent_bytes(db, number, held.last) != RECORD_BYTES * held.backlog:
        return False
    _read_recent(db, number, held)
    return True


def _read_recent(db: sqlite3.Connection, number: int, held: Held) -> None:
    for place, records in database.recent_after(db, number, held.last):
        held.recent.add(keys_of(records))
        held.last = place


@dataclass(frozen=True)
class _Job:
    """A draft in the making. ``merged`` are the runs that it takes the place of; none for recent ids."""

    campaign: int
    held: Held
    merged: tuple[str, ...]
    draft: Future[Draft]


class Tidier:
    """Belongs to the thread that writes; makes one run at a time."""

    def __init__(self, folder: Path, sets: IdSets) -> None:
        self._folder = folder
        self._sets = sets
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="store-tidier")
        self._job: _Job | None = None
        self._removal: Future[None] | None = None
        self._flushed = False
        self._pause_until = 0.0
        self._stopping = threading.Event()
        self._damaged: dict[int, tuple[str, ...]] = {}
        """Runs of a campaign that could not be merged, because one of them is damaged."""

    @property
    def busy(self) -> bool:
        """A run is being made, or is made and not listed yet, or runs that were merged are being removed."""
        return self._job is not None or not (self._removal is None or self._removal.done())

    @property
    def damaged(self) -> set[int]:
        """Campaigns whose runs are not merged until the damaged one was taken out, or until the next start."""
        known = {number: self._sets.known.get(number) for number in tuple(self._damaged)}
        return {number for number, held in known.items() if not held or held.runs.keys() >= set(self._damaged[number])}

    def step(self, db: sqlite3.Connection) -> None:
        """List what is done, start what is due. Outside of any transaction; cheap where there is nothing to do.

        Raises StoreError, and has changed nothing, where the database does.
        """
        if self._job is None:
            if time.monotonic() >= self._pause_until:
                self._start()
            return
        if any(held.backlog >= run_files.BACKLOG for held in self._sets.known.values()):
            # Ids come faster than runs are made: wait for this one, and not so long that nobody is counted.
            with contextlib.suppress(TimeoutError):
                self._job.draft.exception(BEHIND_SECONDS)
        if self._job.draft.done():
            job, self._job = self._job, None
            self._finish(db, job)

    def close(self) -> None:
        """Give up what is being made, between two blocks of it; the next start makes it again."""
        self._stopping.set()
        self._thread.shutdown()
        if self._job is not None and self._job.draft.exception() is None:
            self._job.draft.result().discard()

    def _go_on(self) -> None:
        if self._stopping.is_set():
            raise StoreError("the store is being closed")

    def _start(self) -> None:
        """Write ids and merge runs in turn where both are due: bulk uploads would leave no time for merging."""
        first, second = (self._merge, self._flush) if self._flushed else (self._flush, self._merge)
        if not first():
            second()

    def _flush(self) -> bool:
        number, held = next(((n, held) for n, held in self._sets.known.items() if held.is_due), (0, None))
        if held is None:
            return False
        recent, secret, folder = held.recent, held.secret, self._folder
        held.flushing, held.flushed, held.recent = recent, held.last, Recent()
        self._submit(number, held, (), lambda: write_run(folder, held.campaign, len(recent), [recent.all()], secret))
        return True

    def _merge(self) -> bool:
        for number, held in self._sets.known.items():
            names = run_files.crowded({name: len(run) for name, run in held.runs.items()})
            if names and number not in self.damaged:
                runs = [held.runs[name] for name in names]
                work = partial(merge_runs, self._folder, held.campaign, runs, self._go_on)
                self._submit(number, held, tuple(names), work)
                return True
        return False

    def _submit(self, campaign: int, held: Held, merged: tuple[str, ...], work: Callable[[], Draft]) -> None:
        self._flushed = not merged
        self._job = _Job(campaign, held, merged, self._thread.submit(_tidily, work))

    def _finish(self, db: sqlite3.Connection, job: _Job) -> None:
        error = job.draft.exception()
        if error is not None:
            LOG.error("a run of ids could not be written", extra=told_of(error), exc_info=error)
            if isinstance(error, StoreError) and error.code == DAMAGED:
                self._damaged[job.campaign] = job.merged
            self._sets.reload(job.campaign)
            self._pause_until = time.monotonic() + PAUSE_SECONDS
            return
        draft, name = job.draft.result(), None
        try:
            with transaction(db):
                listed = self._list(db, job, draft)
            name = listed
        finally:
            # That failed, with its commit, or the campaign was sealed meanwhile, or another process has tidied up.
            if name is None:
                draft.discard()
                self._sets.reload(job.campaign)
        if name is None:
            return
        for old in job.merged:
            del job.held.runs[old]
        if not job.merged:
            job.held.flushing = None
        job.held.runs[name] = open_run(self._folder / name, job.held.campaign)
        if job.merged:
            self._removal = self._thread.submit(_remove, [self._folder / old for old in job.merged])

    def _list(self, db: sqlite3.Connection, job: _Job, draft: Draft) -> str | None:
        """Put a draft in the place of what it was made of; None where that is not there (any more)."""
        if self._sets.held(db, job.campaign) is not job.held:
            return None
        if job.merged:
            sizes = database.run_sizes(db, job.campaign)
            if not set(job.merged) <= sizes.keys():
                return None
            db.executemany("DELETE FROM runs WHERE name = ?", [(name,) for name in job.merged])
        else:
            recent, found = job.held.flushing, database.recent_bytes(db, job.campaign, job.held.flushed)
            if recent is None or found != RECORD_BYTES * len(recent):
                return None
            database.drop_recent(db, job.campaign, job.held.flushed)
        return database.list_run(db, job.campaign, draft)


def _remove(runs: Sequence[Path]) -> None:
    """Remove the runs that no table lists any more, beside the counting: to free a large file's blocks takes a while.
    A process that ends before leaves them to the next start (:func:`ldp_aggregator.store.sqlite.database.sweep_runs`).
    """
    try:
        for run in runs:
            run.unlink(missing_ok=True)
    except OSError as error:
        LOG.error("merged runs of ids could not be removed", extra=told_of(error), exc_info=error)


def _tidily(work: Callable[[], Draft]) -> Draft:
    """Work that takes and frees many arrays, whose memory the C library would keep; glibc can be told to return it."""
    try:
        return work()
    finally:
        with contextlib.suppress(OSError, AttributeError, TypeError):
            ctypes.CDLL(None).malloc_trim(0)
