"""From uploads to commits: a bounded queue and one writer that groups whatever waits while the last commit runs.

There is no fixed delay: an idle server commits a single report at once, a busy one hundreds together. Every waiter
gets its own outcome, after the commit that holds its reports is on disk.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ldp_aggregator.server.metrics import Metrics
from ldp_aggregator.server.problems import ProblemError, retry_later
from ldp_aggregator.store.contract import Outcome, Store, StoreError, Submission

LOG: Final = logging.getLogger("ldp_aggregator")

RETRY_SECONDS: Final = 2
"""What an overloaded server asks for in Retry-After."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    submission: Submission
    reports: int
    answer: asyncio.Future[Outcome]


class Ingest:
    """Start :meth:`run` as a task; :meth:`drain` ends it after everything queued was committed.

    ``queue_bytes`` bounds the bodies in memory, those being read included; ``group_reports`` bounds one commit.
    """

    def __init__(self, store: Store, metrics: Metrics, *, queue_bytes: int, group_reports: int) -> None:
        self._store = store
        self._metrics = metrics
        self._queue_bytes = queue_bytes
        self._group_reports = group_reports
        self._held = 0
        self._waiting: deque[_Waiting] = deque()
        self._wake = asyncio.Event()
        self._draining = False

    @property
    def held_bytes(self) -> int:
        """Bytes of bodies that are being read, wait or are being committed."""
        return self._held

    def hold(self, size: int) -> None:
        """Take room for ``size`` bytes, or refuse."""
        if self._draining:
            raise retry_later("stopping", RETRY_SECONDS)
        if self._held + size > self._queue_bytes:
            raise retry_later("overloaded", RETRY_SECONDS)
        self._held += size

    def release(self, size: int) -> None:
        """Give room back."""
        self._held -= size

    async def submit(self, submission: Submission, reports: int) -> Outcome:
        """Wait for the commit of an upload of so many reports.

        A caller that is cancelled cancels nothing but its waiting.
        """
        answer: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(submission, reports, answer))
        self._wake.set()
        return await answer

    async def run(self) -> None:
        """Commit groups until drained."""
        while True:
            if not self._waiting:
                if self._draining:
                    return
                self._wake.clear()
                await self._wake.wait()
                continue
            await self._commit(self._next_group())

    def drain(self) -> None:
        """Take nothing new; :meth:`run` returns once the queue is empty."""
        self._draining = True
        self._wake.set()

    def _next_group(self) -> list[_Waiting]:
        group = [self._waiting.popleft()]
        reports = group[0].reports
        while self._waiting and reports + self._waiting[0].reports <= self._group_reports:
            group.append(self._waiting.popleft())
            reports += group[-1].reports
        return group

    async def _commit(self, group: Sequence[_Waiting]) -> None:
        self._metrics.queue_bytes.set(self._held)
        self._metrics.group_reports.observe(sum(waiting.reports for waiting in group))
        started = time.perf_counter()
        try:
            outcomes = await self._store.count([waiting.submission for waiting in group])
        except Exception as error:  # Whatever it was, nobody may be left waiting, and the next group gets its chance.
            code = "store-unavailable" if isinstance(error, StoreError) else "internal-error"
            LOG.error("commit failed", extra={"reason": str(error) or type(error).__name__}, exc_info=error)
            self._metrics.store_errors.inc()
            for waiting in group:
                if not waiting.answer.done():
                    waiting.answer.set_exception(ProblemError(code, headers={"Retry-After": str(RETRY_SECONDS)}))
        else:
            for waiting, outcome in zip(group, outcomes, strict=True):
                if not waiting.answer.done():
                    waiting.answer.set_result(outcome)
            self._observe(outcomes, time.perf_counter() - started)

    def _observe(self, outcomes: Sequence[Outcome], seconds: float) -> None:
        self._metrics.commit_seconds.observe(seconds)
        numbers: Counter[str] = Counter()
        for outcome in outcomes:
            numbers["counted"] += outcome.counted
            numbers["duplicate"] += outcome.duplicates
            for _, code in outcome.rejected:
                numbers[code] += 1
        for name, number in numbers.items():
            if number:
                self._metrics.reports.labels(name).inc(number)
