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

from ldp_aggregator.server.metrics import REPORT, Metrics
from ldp_aggregator.server.problems import ProblemError, retry_later
from ldp_aggregator.server.sockets.memory import Memory
from ldp_aggregator.server.uploads.reading import Bundle, RawUpload, Upload, bundle
from ldp_aggregator.server.write_health import WriteHealth
from ldp_aggregator.store.contract import Counting, Outcome, StoreError, Submission
from ldp_aggregator.store.failures import kind_of
from protocols import Campaign

LOG: Final = logging.getLogger("ldp_aggregator")

HEARTBEAT_SECONDS: Final = 5.0
"""A writer with nothing to commit writes this often, to know whether it could."""

LEAST_SECONDS: Final = 0.003
"""From the start of a commit to that of the next, where uploads wait: a commit costs nearly the same whatever is in it.
Whoever comes to an idle server is committed at once.
"""


@dataclass(frozen=True, slots=True)
class _Waiting:
    """An upload that was decoded, and the future that its handler waits for."""

    submission: Submission
    reports: int
    answer: asyncio.Future[Outcome]
    since: float = field(default_factory=time.perf_counter)

    @property
    def campaign(self) -> Campaign:
        return self.submission.campaign

    def settle(self, outcome: Outcome) -> None:
        if not self.answer.done():
            self.answer.set_result(outcome)

    def refuse(self, problem: ProblemError) -> None:
        if not self.answer.done():
            self.answer.set_exception(problem)


AnyUpload = RawUpload | _Waiting


class Ingest:
    """Start :meth:`write` as a task; :meth:`drain` ends it after everything queued was committed.

    ``queue_bytes`` bounds what is held of clients' bytes, those being read included; ``group_reports`` one commit.
    """

    def __init__(self, store: Counting, metrics: Metrics, *, queue_bytes: int, group_reports: int) -> None:
        self._store = store
        self._metrics = metrics
        self._group_reports = group_reports
        self._waiting: deque[AnyUpload] = deque()
        self._in_commit_since: float | None = None
        self._wake = asyncio.Event()
        self._draining = False
        self._ended = False
        self._heartbeat_due = False
        self.memory = Memory(queue_bytes)
        """What this process holds for its clients."""
        self.health = WriteHealth()
        """Whether commits work, as the writer last saw it."""

    @property
    def is_draining(self) -> bool:
        """Whether nothing new is taken."""
        return self._draining

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
        if not self.memory.take(size):
            raise retry_later("overloaded")

    def take(self, upload: RawUpload) -> None:
        """Queue an upload as it came; it is told what became of it."""
        if self._ended:
            upload.refuse(retry_later("stopping"))
            return
        self._waiting.append(upload)
        self._wake.set()

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
                    next_one = time.perf_counter() + LEAST_SECONDS
                    self._in_commit_since = self._waiting[0].since
                    await self._commit(self._next_group())
                    self._in_commit_since = None
                    if self._waiting and (early := next_one - time.perf_counter()) > 0:
                        await asyncio.sleep(early)
                elif self._heartbeat_due:
                    await self.beat()
                    timer = self._time_heartbeat()
                else:
                    self._wake.clear()
                    await self._wake.wait()
        finally:
            timer.cancel()
            self._draining = self._ended = True
            _fail(self._waiting, "stopping")

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

    def _next_group(self) -> list[AnyUpload]:
        group = [self._waiting.popleft()]
        reports = group[0].reports
        while self._waiting and reports + self._waiting[0].reports <= self._group_reports:
            group.append(self._waiting.popleft())
            reports += group[-1].reports
        return group

    async def _commit(self, group: Sequence[AnyUpload]) -> None:
        """One commit. Where it fails and the database is not to blame, whoever else is in the group gets another."""
        started = time.perf_counter()
        bundles: list[Bundle] = []
        try:
            bundles, refusals = bundle(*_sorted_out(group))
            refused = {id(upload) for upload, _ in refusals}
            group = [upload for upload in group if id(upload) not in refused] if refused else group
            for upload, problem in refusals:
                upload.refuse(problem)
            if not group:
                return
            outcomes = await self._store.count([members.submission for members in bundles])
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
            for members, outcome in zip(bundles, outcomes, strict=True):
                members.settle(outcome)
            self._observe(group, bundles, outcomes, time.perf_counter() - started)

    def _note_failure(self, event: str, error: Exception) -> None:
        if isinstance(error, StoreError):
            self.health.failed()
        LOG.error(event, extra={"reason": kind_of(error)}, exc_info=error)
        self._metrics.store_errors.inc()

    def _observe(
        self, group: Sequence[Upload], bundles: Sequence[Bundle], outcomes: Sequence[Outcome], seconds: float
    ) -> None:
        """Everybody has an answer: what fails here is logged and ends nothing."""
        numbers: Counter[str] = Counter()
        try:
            for members, outcome in zip(bundles, outcomes, strict=True):
                numbers["counted"] += outcome.counted
                numbers["duplicate"] += outcome.duplicates
                for code, refused in Counter(code for _, code in outcome.rejected).items():
                    numbers[code] += refused
                    self._metrics.count_refused(members.submission.campaign.id, REPORT, code, refused)
            self._metrics.observe_commit(
                sum(one.reports for one in group), seconds, numbers, queue_bytes=self.memory.held
            )
        except Exception as error:
            LOG.error("metrics failed", extra={"reason": type(error).__name__}, exc_info=error)


def _sorted_out(group: Iterable[AnyUpload]) -> tuple[list[RawUpload], list[_Waiting]]:
    """Those that come as bytes, and those that were decoded."""
    raw: list[RawUpload] = []
    read: list[_Waiting] = []
    for upload in group:
        if isinstance(upload, _Waiting):
            read.append(upload)
        else:
            raw.append(upload)
    return raw, read


def _fail(group: Iterable[Upload], code: str) -> None:
    for upload in group:
        upload.refuse(retry_later(code))


def _divided(group: Sequence[AnyUpload]) -> list[Sequence[AnyUpload]]:
    """By campaign, and where there is one, in halves: what cannot be counted ends up alone."""
    campaigns: dict[str, list[AnyUpload]] = {}
    for upload in group:
        campaigns.setdefault(upload.campaign.id, []).append(upload)
    if len(campaigns) > 1:
        return list(campaigns.values())
    middle = len(group) // 2
    return [group[:middle], group[middle:]]
