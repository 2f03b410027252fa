"""The way from uploads to commits: bounds of an upload and how it is read, a queue (bounded by
:class:`ldp_aggregator.server.sockets.memory.Memory`), one writer that groups whatever waits while the last commit
runs, and the answer to every sender. The same for every way on which an upload comes.

There is no fixed delay: an idle server commits a single report at once, a busy one hundreds together. Every waiter
gets its own outcome, after the commit that holds its reports is on disk.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import groupby
from operator import attrgetter
from typing import Final, Protocol

from ldp_aggregator.server.access import check_answer_token
from ldp_aggregator.server.metrics import REPORT, Metrics
from ldp_aggregator.server.problems import PROBLEMS, ProblemError, refused_by_store, retry_later
from ldp_aggregator.service.settings import Limits
from ldp_aggregator.store.contract import (
    CONFLICTING,
    LOG,
    UNAVAILABLE,
    Counting,
    Outcome,
    StoreError,
    Submission,
    kind_of,
)
from ldp_protocols import Campaign, DocumentError, decode_upload
from ldp_protocols.framing import ID_BYTES
from ldp_protocols.wire import Block

LEAST_BYTES: Final = 8 << 10
"""Bytes of an upload that is always read, so that its refusal can name the fault."""
ALL_COUNTED: Final = b'{"rejected": []}'
_COUNTED: Final = Outcome(counted=1)


@dataclass(frozen=True, slots=True)
class UploadBounds:
    """The bounds of an upload: so many reports and bytes. ``batch`` is the number of devices a relay vouches for, which
    is believed as far as the upload holds them.

    ``stranger`` is why a token that was shown makes nobody a relay: whoever sends too much is told that instead.
    """

    campaign: Campaign
    reports: int
    bytes: int
    is_relay: bool = False
    batch: int | None = None
    stranger: ProblemError | None = None


def for_a_device(campaign: Campaign, limits: Limits, stranger: ProblemError | None = None) -> UploadBounds:
    """Bounds of a device's upload: one answer, or one to each group if it answers all."""
    longest = min(max(LEAST_BYTES, campaign.longest_upload), limits.body_bytes)
    return UploadBounds(campaign, min(len(campaign.pools), limits.reports_per_upload), longest, stranger=stranger)


def for_a_relay(campaign: Campaign, limits: Limits, batch: int | None) -> UploadBounds:
    """Bounds of an upload with a relay's token."""
    return UploadBounds(campaign, limits.reports_per_upload, limits.body_bytes, is_relay=True, batch=batch)


class Upload(Protocol):
    """An upload as it came, whose sender waits."""

    bounds: UploadBounds
    body: bytes
    authorization: str | None
    """Value of its header ``Authorization``."""
    since: float
    """Time at which it was asked for, on the clock of ``time.perf_counter``."""

    @property
    def is_patient(self) -> bool:
        """True if its answer leaves later than a commit takes in any case."""

    def settle(self, outcome: Outcome) -> None:
        """Answer after the commit."""

    def refuse(self, problem: ProblemError) -> None:
        """Answer that nothing of it was counted."""


def reports_about(upload: Upload) -> int:
    """Count the reports of an upload, or some more: no report is shorter than its id and a byte."""
    return 1 if not upload.bounds.is_relay else max(1, len(upload.body) // (ID_BYTES + 1))


def read_upload(bounds: UploadBounds, body: bytes, authorization: str | None = None) -> Submission:
    """Submission of an upload, read strictly. Raises ProblemError."""
    try:
        submission = Submission(bounds.campaign, decode_upload(body, bounds.campaign))
    except DocumentError as error:
        raise ProblemError(error.code, str(error)) from None
    if bounds.batch is not None:
        # What is known already of a batch's other uploads is seen by nobody here: each hides what it holds itself.
        # A crowd's relay admits each person once, so that the parts of a batch hide what the whole one does.
        is_whole = bounds.campaign.privacy.crowd is not None
        submission = replace(submission, batch=bounds.batch if is_whole else min(bounds.batch, _crowd(submission)))
    if submission.reports > bounds.reports:
        text = f"at most {bounds.reports} are accepted, not {submission.reports}"
        raise bounds.stranger or ProblemError("too-many-reports", text)
    if bounds.campaign.issuer is not None and not bounds.is_relay:
        check_answer_token(bounds.campaign, submission.blocks, authorization)
    return submission


def _crowd(submission: Submission) -> int:
    """Devices, at least, among which each of an upload hides; in a series those of its own window."""
    campaign = submission.campaign
    of_window: Counter[int] = Counter()
    for block in submission.blocks:
        of_window[block.question // len(campaign.questions)] += block.count
    return min(of_window.values()) // len(campaign.pools)


def answer_to(outcome: Outcome) -> bytes:
    """The body of a 200: the reports that no device can have sent. Raises ProblemError if the whole upload was
    refused.

    Whether an id is known, and with which answer, is the operator's to see: whoever could ask this port would learn
    from it what the holder of a known id has answered.
    """
    if outcome.refused is not None:
        raise refused_by_store(outcome.refused)
    rejected = [[report.hex(), code] for report, code in outcome.rejected if code != CONFLICTING]
    return json.dumps({"rejected": rejected}).encode() if rejected else ALL_COUNTED


@dataclass(frozen=True, slots=True)
class Bundle:
    """A submission, and whose it is: one upload's, or one report each of several, in their order."""

    submission: Submission
    uploads: Sequence[Upload]

    def settle(self, outcome: Outcome) -> None:
        """Settle every upload with its own outcome."""
        if len(self.uploads) == 1 or outcome.refused is not None:
            for upload in self.uploads:
                upload.settle(outcome)
            return
        special = {
            # What refuses a whole upload refuses one of a single report.
            place: Outcome(refused=one[1]) if one[1] in PROBLEMS else Outcome(rejected=(one,))
            for place, one in zip(outcome.places, outcome.rejected, strict=True)
        }
        for place, upload in enumerate(self.uploads):
            upload.settle(special.get(place, _COUNTED))


def bundle(group: Iterable[Upload]) -> tuple[list[Bundle], list[tuple[Upload, ProblemError]]]:
    """The submissions of a group, of which the reports that devices sent alone are one a campaign; and uploads that are
    none.
    """
    bundles: list[Bundle] = []
    refusals: list[tuple[Upload, ProblemError]] = []
    alone: dict[str, list[tuple[Block, Upload]]] = {}
    for upload in group:
        try:
            submission = read_upload(upload.bounds, upload.body, upload.authorization)
        except ProblemError as problem:
            refusals.append((upload, problem))
            continue
        if submission.reports == 1 and not upload.bounds.is_relay:
            alone.setdefault(submission.campaign.id, []).append((submission.blocks[0], upload))
        else:
            bundles.append(Bundle(submission, (upload,)))
    bundles += [_together(reports) for reports in alone.values()]
    return bundles, refusals


def _together(reports: list[tuple[Block, Upload]]) -> Bundle:
    """One submission of uploads of one report each to a campaign."""
    reports.sort(key=lambda report: report[0].question)
    blocks = []
    for question, group in groupby((block for block, _ in reports), key=attrgetter("question")):
        members = list(group)
        payloads = b"".join([block.payloads for block in members])
        blocks.append(Block(question, b"".join([block.ids for block in members]), payloads))
    uploads = [upload for _, upload in reports]
    return Bundle(Submission(uploads[0].bounds.campaign, tuple(blocks)), uploads)


STALE_SECONDS: Final = 30.0
"""Seconds without a write after which a store hangs: the writer writes every few seconds, whether or not there are
reports, and waits 20 seconds for another process's transaction."""
HEARTBEAT_SECONDS: Final = 5.0
"""Seconds between two writes of an idle writer, which show that it can."""

LEAST_BEAT_SECONDS: Final = 1.0
"""Least seconds between two heartbeats that failed commits cause: they show whether the store is at fault."""

LEAST_SECONDS: Final = 0.003
"""Seconds from commit to commit while several upload: a commit costs as much as some ten uploads, whatever is in it.
An upload to an idle server, or of a client that uploads alone, is committed at once."""
LONGEST_SECONDS: Final = 0.01
"""Seconds from commit to commit while fewer than :data:`ENOUGH` uploads wait."""
ENOUGH: Final = 32
PATIENT_SECONDS: Final = 0.02
PATIENT_ENOUGH: Final = 256
"""The same where all that wait are patient: a commit for many of them costs each less."""


class Ingest:
    """Start :meth:`write` as a task; :meth:`drain` ends it after everything queued was committed.

    ``group_reports`` bounds one commit; what may wait is bounded by who takes clients' bytes in.
    """

    def __init__(self, store: Counting, metrics: Metrics, *, group_reports: int) -> None:
        self._store, self._metrics, self._group_reports = store, metrics, group_reports
        self._waiting: deque[Upload] = deque()
        self._in_commit_since: float | None = None
        self._hurried = 0
        """Uploads among those that wait which are not patient."""
        self._is_patient = False
        """True while the writer waits as long as patient uploads let it."""
        self._wake = asyncio.Event()
        self._enough = asyncio.Event()
        self.is_draining = False
        """True once nothing new is taken."""
        self._ended = False
        self._heartbeat_due = False
        self._beaten_at = 0.0
        self._wrote_at: float | None = None
        """Time of the last write, None if it failed."""

    @property
    def is_well(self) -> bool:
        """The last write worked, and was not long ago."""
        return self._wrote_at is not None and time.monotonic() - self._wrote_at < STALE_SECONDS

    @property
    def queue_age(self) -> float:
        """Seconds for which the upload that has waited longest has waited, the commit under way included."""
        waiting = self._waiting[0].since if self._waiting else None
        since = waiting if self._in_commit_since is None else self._in_commit_since
        return 0.0 if since is None else time.perf_counter() - since

    def take(self, upload: Upload) -> None:
        """Queue an upload as it came; the writer settles or refuses it."""
        if self._ended:
            upload.refuse(retry_later("stopping"))
            return
        self._waiting.append(upload)
        is_hurried = not upload.is_patient
        self._hurried += is_hurried
        self._wake.set()
        if self._has_enough or (is_hurried and self._is_patient):
            self._enough.set()

    @property
    def _has_enough(self) -> bool:
        return len(self._waiting) >= (ENOUGH if self._hurried else PATIENT_ENOUGH)

    async def write(self) -> None:
        """Commit groups until drained. Whatever ends this, nobody is left waiting."""
        timer = self._time_heartbeat()
        started, several = 0.0, False
        try:
            while self._waiting or not self.is_draining:
                self._metrics.queue_age.set(self.queue_age)
                if self._heartbeat_due:
                    timer.cancel()
                    await self.beat()
                    timer = self._time_heartbeat()
                elif self._waiting:
                    if several:
                        await self._let_more_come(time.perf_counter() - started)
                    started = time.perf_counter()
                    self._in_commit_since = self._waiting[0].since
                    group = self._next_group()
                    await self._commit(group)
                    self._in_commit_since = None
                    several = bool(self._waiting) or len(group) > 1
                else:
                    self._wake.clear()
                    await self._wake.wait()
        finally:
            timer.cancel()
            self.is_draining = self._ended = True
            _fail(self._waiting, "stopping")

    async def _let_more_come(self, since: float) -> None:
        """``since`` is how many seconds ago the last commit began."""
        if since < LEAST_SECONDS:
            await asyncio.sleep(LEAST_SECONDS - since)
        self._enough.clear()
        self._is_patient = not self._hurried
        longest = PATIENT_SECONDS if self._is_patient else LONGEST_SECONDS
        if since < longest and not self._has_enough and not self.is_draining:
            with suppress(TimeoutError):
                async with asyncio.timeout(longest - max(since, LEAST_SECONDS)):
                    await self._enough.wait()
        self._is_patient = False

    def drain(self) -> None:
        """Take nothing new; :meth:`write` returns once the queue is empty."""
        self.is_draining = True
        self._wake.set()
        self._enough.set()

    async def beat(self) -> None:
        """Heartbeat: a write that shows whether the store works."""
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
        self._hurried -= sum(not upload.is_patient for upload in group)
        return group

    async def _commit(self, group: Sequence[Upload]) -> None:
        """One commit. If it fails and the database is not to blame, whoever else is in the group gets another."""
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
            campaigns = {upload.bounds.campaign.id for upload in group}
            self._metrics.gauges.note_failing(dict.fromkeys(campaigns, len(campaigns) == 1))
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
            self._metrics.gauges.note_failing(failing)
            self._metrics.observe_commit(sum(members.submission.reports for members in bundles), seconds, numbers)
        except Exception as error:
            LOG.error("metrics failed", extra={"reason": kind_of(error)}, exc_info=error)


def _fail(group: Iterable[Upload], code: str) -> None:
    for upload in group:
        upload.refuse(retry_later(code))


def _divided(group: Sequence[Upload]) -> list[Sequence[Upload]]:
    """Parts of a group by campaign, or its halves: an upload that cannot be counted ends up alone."""
    campaigns: dict[str, list[Upload]] = {}
    for upload in group:
        campaigns.setdefault(upload.bounds.campaign.id, []).append(upload)
    if len(campaigns) > 1:
        return list(campaigns.values())
    middle = len(group) // 2
    return [group[:middle], group[middle:]]
