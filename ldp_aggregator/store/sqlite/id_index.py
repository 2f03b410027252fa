"""The ids of all campaigns as the writer of a store holds them. They decide from memory which ids are new.

What is inserted is staged until its transaction has committed. If another process has written to the database since,
the ids in memory are compared with the tables first. Recent ids become runs, and runs larger ones: written by a
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
from ldp_aggregator.store.sqlite.keys import RECORD_BYTES, Hashes, Keys, UnsortedIds, keys_of, new_secret
from ldp_aggregator.store.sqlite.run_files import Run, RunFile, merge_runs, open_run, write_run

BEHIND_SECONDS: Final = 1.0
"""Seconds that a commit waits for a run at most."""
PAUSE_SECONDS: Final = 30.0
"""Seconds without a try after a run that could not be written; its ids stay where they are."""


@dataclass
class CampaignIds:
    """The ids of one campaign. ``flushing`` are those that a run is being made of: all up to number ``flushed``."""

    campaign: str
    runs: dict[str, Run] = field(default_factory=dict)
    flushing: UnsortedIds | None = None
    flushed: int = 0
    recent: UnsortedIds = field(default_factory=UnsortedIds)
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

    def digests_of(self, wanted: Keys) -> dict[int, bytes]:
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
    """Ids of all campaigns in memory, for the writer's thread alone."""

    def __init__(self) -> None:
        self.by_campaign: dict[int, CampaignIds] = {}
        """Ids of each campaign that was asked for, by its number."""
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
        ids = self.ids_of(db, number)
        stored = ids.digests_of(wanted := keys_of(records.tobytes()))
        if stored or batch.untimely or (room is not None and len(records) > room):
            inserted = batch.earliest(stored, len(records) if room is None else room)
            settlement = batch.settle(stored, inserted if len(inserted) < len(records) - len(stored) else None, bar)
            records = records[inserted]
            wanted = Keys(wanted.high[inserted], wanted.low[inserted], wanted.digest[inserted])
        else:
            settlement = batch.settle({})
        if len(records):
            database.add_recent(db, number, ids.last + 1, records.tobytes())
            self.staged[number] = wanted
        return settlement

    def keep(self) -> None:
        """The transaction has committed."""
        for number, staged in self.staged.items():
            ids = self.by_campaign[number]
            ids.recent.add(staged)
            ids.last += 1
        self.staged.clear()

    def forget(self, keep: Collection[int] = ()) -> None:
        """The transaction did not commit, or nobody knows (but for those to ``keep``): the tables say what is in."""
        for number in self.staged.keys() - set(keep):
            self._stale.add(number)
            del self.staged[number]

    def ids_of(self, db: sqlite3.Connection, number: int) -> CampaignIds:
        """The ids of a campaign, as the tables have them inside the transaction."""
        version = db.execute("PRAGMA data_version").fetchone()[0]
        if version != self._seen_version:
            self._stale |= set(self.by_campaign)
            self._seen_version = version
        ids = self.by_campaign.get(number)
        if ids is None or (number in self._stale and not _refresh(db, number, ids)):
            ids = self.by_campaign[number] = _load(db, number)
        self._stale.discard(number)
        return ids

    def reload(self, number: int) -> None:
        """Forget a campaign's ids; the next use reads the tables."""
        self.by_campaign.pop(number, None)


def _load(db: sqlite3.Connection, number: int) -> CampaignIds:
    """Everything, from the tables."""
    name = database.campaign_id(db, number)
    runs = {run: open_run(database.runs_folder(db) / run, name) for run in database.run_sizes(db, number)}
    ids = CampaignIds(name, runs)
    _read_recent(db, number, ids)
    return ids


def _refresh(db: sqlite3.Connection, number: int, ids: CampaignIds) -> bool:
    """Add what somebody else has written; False if that is not all that has changed."""
    same_runs = database.run_sizes(db, number).keys() == ids.runs.keys()
    if not same_runs or database.recent_bytes(db, number, ids.last) != RECORD_BYTES * ids.backlog:
        return False
    _read_recent(db, number, ids)
    return True


def _read_recent(db: sqlite3.Connection, number: int, ids: CampaignIds) -> None:
    for place, records in database.recent_after(db, number, ids.last):
        ids.recent.add(keys_of(records))
        ids.last = place


@dataclass(frozen=True)
class _Job:
    """A run file in the making. ``merged`` are the runs that it takes the place of; none for recent ids."""

    campaign: int
    ids: CampaignIds
    merged: tuple[str, ...]
    run_file: Future[RunFile]


class Tidier:
    """Maker of runs, one at a time, for the writer's thread alone."""

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
        loaded = {number: self._sets.by_campaign.get(number) for number in tuple(self._damaged)}
        return {number for number, ids in loaded.items() if not ids or ids.runs.keys() >= set(self._damaged[number])}

    def step(self, db: sqlite3.Connection) -> None:
        """Publish the run that is done, or start one that is due. Outside of any transaction; cheap if nothing is.

        Raises StoreError, and has changed nothing, where the database does.
        """
        if self._job is None:
            if time.monotonic() >= self._pause_until:
                self._start()
            return
        if any(ids.backlog >= run_files.BACKLOG for ids in self._sets.by_campaign.values()):
            # Ids come faster than runs are made: wait for this one, and not so long that nobody is counted.
            with contextlib.suppress(TimeoutError):
                self._job.run_file.exception(BEHIND_SECONDS)
        if self._job.run_file.done():
            job, self._job = self._job, None
            self._finish(db, job)

    def close(self) -> None:
        """Stop between two blocks of the run being made; the next start makes it again."""
        self._stopping.set()
        self._thread.shutdown()
        if self._job is not None and self._job.run_file.exception() is None:
            self._job.run_file.result().discard()

    def _go_on(self) -> None:
        if self._stopping.is_set():
            raise StoreError("the store is being closed")

    def _start(self) -> None:
        """Write ids and merge runs in turn where both are due: bulk uploads would leave no time for merging."""
        first, second = (self._merge, self._flush) if self._flushed else (self._flush, self._merge)
        if not first():
            second()

    def _flush(self) -> bool:
        number, ids = next(((n, ids) for n, ids in self._sets.by_campaign.items() if ids.is_due), (0, None))
        if ids is None:
            return False
        recent, secret, folder = ids.recent, ids.secret, self._folder
        ids.flushing, ids.flushed, ids.recent = recent, ids.last, UnsortedIds()
        self._submit(number, ids, (), lambda: write_run(folder, ids.campaign, len(recent), [recent.all()], secret))
        return True

    def _merge(self) -> bool:
        for number, ids in self._sets.by_campaign.items():
            names = run_files.crowded({name: len(run) for name, run in ids.runs.items()})
            if names and number not in self.damaged:
                runs = [ids.runs[name] for name in names]
                work = partial(merge_runs, self._folder, ids.campaign, runs, self._go_on)
                self._submit(number, ids, tuple(names), work)
                return True
        return False

    def _submit(self, campaign: int, ids: CampaignIds, merged: tuple[str, ...], work: Callable[[], RunFile]) -> None:
        self._flushed = not merged
        self._job = _Job(campaign, ids, merged, self._thread.submit(_tidily, work))

    def _finish(self, db: sqlite3.Connection, job: _Job) -> None:
        error = job.run_file.exception()
        if error is not None:
            LOG.error("a run of ids could not be written", extra=told_of(error), exc_info=error)
            if isinstance(error, StoreError) and error.code == DAMAGED:
                self._damaged[job.campaign] = job.merged
            self._sets.reload(job.campaign)
            self._pause_until = time.monotonic() + PAUSE_SECONDS
            return
        run_file, name = job.run_file.result(), None
        try:
            with transaction(db):
                listed = self._list(db, job, run_file)
            name = listed
        finally:
            # That failed, with its commit, or the campaign was sealed meanwhile, or another process has tidied up.
            if name is None:
                run_file.discard()
                self._sets.reload(job.campaign)
        if name is None:
            return
        for old in job.merged:
            del job.ids.runs[old]
        if not job.merged:
            job.ids.flushing = None
        job.ids.runs[name] = open_run(self._folder / name, job.ids.campaign)
        if job.merged:
            self._removal = self._thread.submit(_remove, [self._folder / old for old in job.merged])

    def _list(self, db: sqlite3.Connection, job: _Job, run_file: RunFile) -> str | None:
        """Put a run file in the place of what it was made of; None if that is not there (any more)."""
        if self._sets.ids_of(db, job.campaign) is not job.ids:
            return None
        if job.merged:
            sizes = database.run_sizes(db, job.campaign)
            if not set(job.merged) <= sizes.keys():
                return None
            db.executemany("DELETE FROM runs WHERE name = ?", [(name,) for name in job.merged])
        else:
            recent, found = job.ids.flushing, database.recent_bytes(db, job.campaign, job.ids.flushed)
            if recent is None or found != RECORD_BYTES * len(recent):
                return None
            database.drop_recent(db, job.campaign, job.ids.flushed)
        return database.list_run(db, job.campaign, run_file)


def _remove(runs: Sequence[Path]) -> None:
    """Remove the runs that no table lists any more, beside the counting: to free a large file's blocks takes a while.
    A process that ends before leaves them to the next start (:func:`ldp_aggregator.store.sqlite.database.sweep_runs`).
    """
    try:
        for run in runs:
            run.unlink(missing_ok=True)
    except OSError as error:
        LOG.error("merged runs of ids could not be removed", extra=told_of(error), exc_info=error)


def _tidily(work: Callable[[], RunFile]) -> RunFile:
    """Work that takes and frees many arrays, whose memory the C library would keep; glibc can be told to return it."""
    try:
        return work()
    finally:
        with contextlib.suppress(OSError, AttributeError, TypeError):
            ctypes.CDLL(None).malloc_trim(0)
