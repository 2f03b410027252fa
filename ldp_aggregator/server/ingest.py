"""From uploads to commits: a bounded queue and one writer that groups whatever waits while the last commit runs.

There is no fixed delay: an idle server commits a single report at once, a busy one hundreds together. Every waiter
gets its own outcome, after the commit that holds its reports is on disk.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from ldp_aggregator.server.metrics import Metrics
from ldp_aggregator.server.problems import retry_later
from ldp_aggregator.server.write_health import WriteHealth
from ldp_aggregator.store.contract import CountStore, Outcome, StoreError, Submission
from ldp_aggregator.store.failures import kind_of

LOG: Final = logging.getLogger("ldp_aggregator")

HEARTBEAT_SECONDS: Final = 5.0
"""A writer with nothing to commit writes this often, to know whether it could."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    submission: Submission
    reports: int
    answer: asyncio.Future[Outcome]
    since: float = field(default_factory=time.perf_counter)

    def fail(self, code: str) -> None:
        if not self.answer.done():
            self.answer.set_exception(retry_later(code))


class Ingest:
    """Start :meth:`write` as a task; :meth:`drain` ends it after everything queued was committed.

    ``queue_bytes`` bounds the bodies in memory, those being read included; ``group_reports`` bounds one commit.
    """

    def __init__(self, store: CountStore, metrics: Metrics, *, queue_bytes: int, group_reports: int) -> None:
        self._store = store
        self._metrics = metrics
        self._queue_bytes = queue_bytes
        self._group_reports = group_reports
        self._held = 0
        self._waiting: deque[_Waiting] = deque()
        self._in_commit_since: float | None = None
        self._wake = asyncio.Event()
        self._draining = False
        self._ended = False
        self._heartbeat_due = False
        self.health = WriteHealth()
        """Whether commits work, as the writer last saw it."""

    @property
    def held_bytes(self) -> int:
        """Bytes of bodies that are being read, wait or are being committed."""
        return self._held

    @property
    def queue_age(self) -> float:
        """Seconds for which the upload that has waited longest has waited, the commit under way included."""
        waiting = self._waiting[0].since if self._waiting else None
        since = waiting if self._in_commit_since is None else self._in_commit_since
        return 0.0 if since is None else time.perf_counter() - since

    def hold(self, size: int) -> None:
        """Take room for ``size`` bytes, or refuse."""
        if self._draining:
            raise retry_later("stopping")
        if self._held + size > self._queue_bytes:
            raise retry_later("overloaded")
        self._held += size

    def release(self, size: int) -> None:
        """Give room back."""
        self._held -= size

    async def submit(self, submission: Submission, reports: int) -> Outcome:
        """Wait for the commit of an upload of so many reports.

        A caller that is cancelled cancels nothing but its waiting.
        """
        if self._ended:
            raise retry_later("stopping")
        answer: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(submission, reports, answer))
        self._wake.set()
        return await answer

    async def write(self) -> None:
        """Commit groups until drained. Whatever ends this, nobody is left waiting."""
        timer = self._time_heartbeat()
        try:
            while self._waiting or not self._draining:
                self._metrics.queue_age.set(self.queue_age)
                if self._waiting:
                    self._in_commit_since = self._waiting[0].since
                    await self._commit(self._next_group())
                    self._in_commit_since = None
                elif self._heartbeat_due:
                    await self.beat()
                    timer = self._time_heartbeat()
                else:
                    self._wake.clear()
                    await self._wake.wait()
        finally:
            timer.cancel()
            self._draining = self._ended = True
            for waiting in self._waiting:
                waiting.fail("stopping")

    def drain(self) -> None:
        """Take nothing new; :meth:`write` returns once the queue is empty."""
        self._draining = True
        self._wake.set()

    async def beat(self) -> None:
        """Write, and see whether it works."""
        try:
            await self._store.check()
        except Exception as error:
            self._note_failure("heartbeat failed", error)
        else:
            self.health.succeeded()

    def _time_heartbeat(self) -> asyncio.TimerHandle:
        def ring() -> None:
            self._heartbeat_due = True
            self._wake.set()

        self._heartbeat_due = False
        return asyncio.get_running_loop().call_later(HEARTBEAT_SECONDS, ring)

    def _next_group(self) -> list[_Waiting]:
        group = [self._waiting.popleft()]
        reports = group[0].reports
        while self._waiting and reports + self._waiting[0].reports <= self._group_reports:
            group.append(self._waiting.popleft())
            reports += group[-1].reports
        return group

    async def _commit(self, group: Sequence[_Waiting]) -> None:
        """One commit. Where it fails and the database is not to blame, whoever else is in the group gets another."""
        started = time.perf_counter()
        try:
            outcomes = await self._store.count([waiting.submission for waiting in group])
        except StoreError as error:
            self._note_failure("commit failed", error)
            _fail(group, "store-unavailable")
        except Exception as error:
            if len(group) == 1:
                self._note_failure("an upload could not be counted", error)
                _fail(group, "internal-error")
            else:
                for part in _divided(group):
                    await self._commit(part)
        except BaseException:
            _fail(group, "stopping")
            raise
        else:
            self.health.succeeded()
            for waiting, outcome in zip(group, outcomes, strict=True):
                if not waiting.answer.done():
                    waiting.answer.set_result(outcome)
            self._observe(group, outcomes, time.perf_counter() - started)

    def _note_failure(self, event: str, error: Exception) -> None:
        if isinstance(error, StoreError):
            self.health.failed()
        LOG.error(event, extra={"reason": kind_of(error)}, exc_info=error)
        self._metrics.store_errors.inc()

    def _observe(self, group: Sequence[_Waiting], outcomes: Sequence[Outcome], seconds: float) -> None:
        """Everybody has an answer: what fails here is logged and ends nothing."""
        numbers: Counter[str] = Counter()
        for outcome in outcomes:
            numbers["counted"] += outcome.counted
            numbers["duplicate"] += outcome.duplicates
            for _, code in outcome.rejected:
                numbers[code] += 1
        try:
            self._metrics.observe_commit(sum(one.reports for one in group), seconds, numbers, queue_bytes=self._held)
        except Exception as error:
            LOG.error("metrics failed", extra={"reason": type(error).__name__}, exc_info=error)


def _fail(group: Iterable[_Waiting], code: str) -> None:
    for waiting in group:
        waiting.fail(code)


def _divided(group: Sequence[_Waiting]) -> list[Sequence[_Waiting]]:
    """By campaign, and where there is one, in halves: what cannot be counted ends up alone."""
    campaigns: dict[str, list[_Waiting]] = {}
    for waiting in group:
        campaigns.setdefault(waiting.submission.campaign.id, []).append(waiting)
    if len(campaigns) > 1:
        return list(campaigns.values())
    middle = len(group) // 2
    return [group[:middle], group[middle:]]
