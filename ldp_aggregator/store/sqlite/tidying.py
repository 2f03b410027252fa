"""Recent ids into runs, and runs into larger ones: written by a thread of their own, listed by the writer."""

from __future__ import annotations

import contextlib
import ctypes
import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ldp_aggregator.store.contract import StoreError
from ldp_aggregator.store.runs.files import DamagedError, Draft, open_run, write_run
from ldp_aggregator.store.runs.keys import RECORD_BYTES, Recent
from ldp_aggregator.store.runs.merging import merge_runs
from ldp_aggregator.store.sqlite import ids
from ldp_aggregator.store.sqlite.connections import transaction
from ldp_aggregator.store.sqlite.id_sets import Held, IdSets

BEHIND_SECONDS: Final = 1.0
"""How long a commit waits for a run at most."""
PAUSE_SECONDS: Final = 30.0
"""After a run that could not be written; its ids stay where they are."""

LOG: Final = logging.getLogger("ldp_aggregator")


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
        """Whether a run is being made, or is made and not listed yet, or runs that were merged are being removed."""
        return self._job is not None or not (self._removal is None or self._removal.done())

    @property
    def damaged(self) -> set[int]:
        """Campaigns whose runs are not merged until the damaged one was taken out, or until the next start."""
        return {number for number, runs in tuple(self._damaged.items()) if self._sets.may_have(number, runs)}

    def step(self, db: sqlite3.Connection) -> None:
        """List what is done, start what is due. Outside of any transaction; cheap where there is nothing to do.

        Raises StoreError, and has changed nothing, where the database does.
        """
        if self._job is None:
            if time.monotonic() >= self._pause_until:
                self._start()
            return
        if self._sets.is_behind():
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
        """Where ids are to be written and runs to be merged, in turn: bulk uploads would leave no time for merging."""
        first, second = (self._merge, self._flush) if self._flushed else (self._flush, self._merge)
        if not first():
            second()

    def _flush(self) -> bool:
        number = self._sets.to_flush()
        if number is None:
            return False
        held = self._sets.of(number)
        recent, secret = held.recent, held.secret
        held.flushing, held.flushed, held.recent = recent, held.last, Recent()
        self._submit(
            number, held, (), lambda: write_run(self._folder, held.campaign, len(recent), [recent.all()], secret)
        )
        return True

    def _merge(self) -> bool:
        crowd = self._sets.to_merge(self.damaged)
        if crowd is None:
            return False
        number, names = crowd
        held = self._sets.of(number)
        runs = [held.runs[name] for name in names]
        self._submit(number, held, tuple(names), lambda: merge_runs(self._folder, held.campaign, runs, self._go_on))
        return True

    def _submit(self, campaign: int, held: Held, merged: tuple[str, ...], work: Callable[[], Draft]) -> None:
        self._flushed = not merged
        self._job = _Job(campaign, held, merged, self._thread.submit(_tidily, work))

    def _finish(self, db: sqlite3.Connection, job: _Job) -> None:
        error = job.draft.exception()
        if error is not None:
            LOG.error("a run of ids could not be written", extra={"reason": str(error)}, exc_info=error)
            if isinstance(error, DamagedError):
                self._damaged[job.campaign] = job.merged
            self._sets.reload(job.campaign)
            self._pause_until = time.monotonic() + PAUSE_SECONDS
            return
        draft = job.draft.result()
        try:
            with transaction(db):
                name = self._list(db, job, draft)
        except BaseException:
            draft.discard()
            self._sets.reload(job.campaign)
            raise
        if name is None:
            # The campaign was sealed meanwhile, or another process has tidied up.
            draft.discard()
            self._sets.reload(job.campaign)
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
            sizes = ids.run_sizes(db, job.campaign)
            if not set(job.merged) <= sizes.keys():
                return None
            db.executemany("DELETE FROM runs WHERE name = ?", [(name,) for name in job.merged])
        else:
            recent = job.held.flushing
            if recent is None or ids.recent_bytes(db, job.campaign, job.held.flushed) != RECORD_BYTES * len(recent):
                return None
            ids.drop_recent(db, job.campaign, job.held.flushed)
        return ids.list_run(db, job.campaign, draft)


def _remove(runs: Sequence[Path]) -> None:
    """What no table lists any more. To free a large file's blocks takes a while, in which others are to be counted; a
    process that ends before leaves them to the next start (:func:`ldp_aggregator.store.sqlite.ids.sweep`).
    """
    try:
        for run in runs:
            run.unlink(missing_ok=True)
    except OSError as error:
        LOG.error("merged runs of ids could not be removed", extra={"reason": str(error)}, exc_info=error)


def _tidily(work: Callable[[], Draft]) -> Draft:
    """Work that takes and frees many arrays, whose memory the C library would keep; glibc can be told to return it."""
    try:
        return work()
    finally:
        with contextlib.suppress(OSError, AttributeError, TypeError):
            ctypes.CDLL(None).malloc_trim(0)
