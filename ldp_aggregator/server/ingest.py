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
from typing import Final

from ldp_aggregator.server.metrics import REPORT, Metrics
from ldp_aggregator.server.problems import retry_later
from ldp_aggregator.server.uploads import Bundle, Upload, bundle, reports_about
from ldp_aggregator.store.contract import UNAVAILABLE, Counting, Outcome, StoreError, kind_of

LOG: Final = logging.getLogger("ldp_aggregator")

STALE_SECONDS: Final = 30.0
"""A store that has not written for so long hangs: the writer writes every few seconds, whether or not there are
reports, and waits 20 seconds for another process's transaction.
"""
HEARTBEAT_SECONDS: Final = 5.0
"""A writer with nothing to commit writes this often, to know whether it could."""

LEAST_BEAT_SECONDS: Final = 1.0
"""Where commits fail it writes at once, and at most so often, to know whose failure that is."""

LEAST_SECONDS: Final = 0.003
"""From the start of a commit to that of the next, where uploads wait: a commit costs nearly the same whatever is in it.
Whoever comes to an idle server is committed at once.
"""


class Ingest:
    """Start :meth:`write` as a task; :meth:`drain` ends it after everything queued was committed.

    ``group_reports`` bounds one commit; what may wait is bounded by who takes clients' bytes in.
    """

    def __init__(self, store: Counting, metrics: Metrics, *, group_reports: int) -> None:
        self._store = store
        self._metrics = metrics
        self._group_reports = group_reports
        self._waiting: deque[Upload] = deque()
        self._in_commit_since: float | None = None
        self._wake = asyncio.Event()
        self._draining = False
        self._ended = False
        self._heartbeat_due = False
        self._beaten_at = 0.0
        self._wrote_at: float | None = None
        """When the last write worked, None where it did not."""

    @property
    def is_well(self) -> bool:
        """The last write worked, and was not long ago."""
        return self._wrote_at is not None and time.monotonic() - self._wrote_at < STALE_SECONDS

    @property
    def is_draining(self) -> bool:
        """Nothing new is taken."""
        return self._draining

    @property
    def queue_age(self) -> float:
        """Seconds for which the upload that has waited longest has waited, the commit under way included."""
        waiting = self._waiting[0].since if self._waiting else None
        since = waiting if self._in_commit_since is None else self._in_commit_since
        return 0.0 if since is None else time.perf_counter() - since

    def take(self, upload: Upload) -> None:
        """Queue an upload as it came; it is told what became of it."""
        if self._ended:
            upload.refuse(retry_later("stopping"))
            return
        self._waiting.append(upload)
        self._wake.set()

    async def write(self) -> None:
        """Commit groups until drained. Whatever ends this, nobody is left waiting."""
        timer = self._time_heartbeat()
        try:
            while self._waiting or not self._draining:
                self._metrics.queue_age.set(self.queue_age)
                if self._heartbeat_due:
                    timer.cancel()
                    await self.beat()
                    timer = self._time_heartbeat()
                elif self._waiting:
                    next_one = time.perf_counter() + LEAST_SECONDS
                    self._in_commit_since = self._waiting[0].since
                    await self._commit(self._next_group())
                    self._in_commit_since = None
                    if self._waiting and (early := next_one - time.perf_counter()) > 0:
                        await asyncio.sleep(early)
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
        self._beaten_at = time.perf_counter()
        try:
            await self._store.beat()
        except Exception as error:
            self._wrote_at = None
            self._note_failure("heartbeat failed", error)
        else:
            self._wrote_at = time.monotonic()

    def _time_heartbeat(self) -> asyncio.TimerHandle:
        def ring() -> None:
            self._heartbeat_due = True
            self._wake.set()

        self._heartbeat_due = False
        return asyncio.get_running_loop().call_later(HEARTBEAT_SECONDS, ring)

    def _next_group(self) -> list[Upload]:
        group = [self._waiting.popleft()]
        reports = reports_about(group[0])
        while self._waiting and (more := reports + reports_about(self._waiting[0])) <= self._group_reports:
            group.append(self._waiting.popleft())
            reports = more
        return group

    async def _commit(self, group: Sequence[Upload]) -> None:
        """One commit. Where it fails and the database is not to blame, whoever else is in the group gets another."""
        started = time.perf_counter()
        bundles: list[Bundle] = []
        try:
            bundles, refusals = bundle(group)
            refused = {id(upload) for upload, _ in refusals}
            group = [upload for upload in group if id(upload) not in refused] if refused else group
            for upload, problem in refusals:
                upload.refuse(problem)
            if not group:
                return
            outcomes = await self._store.count([members.submission for members in bundles])
        except StoreError as error:
            # Whether the store is at fault, or one campaign of it, the next heartbeat tells.
            self._heartbeat_due = time.perf_counter() - self._beaten_at >= LEAST_BEAT_SECONDS
            self._note_failure("commit failed", error)
            campaigns = {upload.terms.campaign.id for upload in group}
            self._metrics.told.note_failing(dict.fromkeys(campaigns, len(campaigns) == 1))
            _fail(group, UNAVAILABLE)
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
            self._wrote_at = time.monotonic()
            for members, outcome in zip(bundles, outcomes, strict=True):
                members.settle(outcome)
            self._observe(bundles, outcomes, time.perf_counter() - started)

    def _note_failure(self, event: str, error: Exception) -> None:
        LOG.error(event, extra={"reason": kind_of(error)}, exc_info=error)
        self._metrics.store_errors.inc()

    def _observe(self, bundles: Sequence[Bundle], outcomes: Sequence[Outcome], seconds: float) -> None:
        """Everybody has an answer: what fails here is logged and ends nothing."""
        numbers: Counter[str] = Counter()
        failing: dict[str, bool] = {}
        try:
            for members, outcome in zip(bundles, outcomes, strict=True):
                failing[members.submission.campaign.id] = outcome.refused == UNAVAILABLE
                numbers["counted"] += outcome.counted
                numbers["duplicate"] += outcome.duplicates
                for code, refused in Counter(code for _, code in outcome.rejected).items():
                    numbers[code] += refused
                    self._metrics.count_refused(members.submission.campaign.id, REPORT, code, refused)
            self._metrics.told.note_failing(failing)
            self._metrics.observe_commit(sum(members.submission.reports for members in bundles), seconds, numbers)
        except Exception as error:
            LOG.error("metrics failed", extra={"reason": type(error).__name__}, exc_info=error)


def _fail(group: Iterable[Upload], code: str) -> None:
    for upload in group:
        upload.refuse(retry_later(code))


def _divided(group: Sequence[Upload]) -> list[Sequence[Upload]]:
    """By campaign, and where there is one, in halves: what cannot be counted ends up alone."""
    campaigns: dict[str, list[Upload]] = {}
    for upload in group:
        campaigns.setdefault(upload.terms.campaign.id, []).append(upload)
    if len(campaigns) > 1:
        return list(campaigns.values())
    middle = len(group) // 2
    return [group[:middle], group[middle:]]
