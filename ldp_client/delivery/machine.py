"""What to send next, and what an answer means: the upload state machine, without any I/O.

Everything is a value. :func:`next_task` looks at the queue and the state, :func:`judge` at an answer; neither sends,
stores, sleeps or draws. The jitter is handed in as a number from [0, 1).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from ldp_client.errors import TransportError
from ldp_client.network.transport import Response
from ldp_client.policy import (
    POISON_STATUSES,
    RETRYABLE_CODES,
    SPLIT_STATUSES,
    TERMINAL_STATUSES,
    Policy,
)
from protocols import Report, encode_upload
from protocols.wire.reports import ID_BYTES

REPORT_OVERHEAD: Final = ID_BYTES + 16
"""What a report takes beside its payload: its id, and at most 16 bytes of framing."""


@dataclass(frozen=True)
class Delivery:
    """Where the delivery of one queue stands; stored with the queue, so that a restart goes on where it stopped.

    attempts
        Tries of the batch in front that have failed in a row.
    not_before
        The clock's time of the next try; None while none is scheduled.
    size_limit
        Reports in an upload at most, since the server found more too large; None: as many as the policy allows.
    search_limit
        The same while a poisoned report is searched by halving; grows again with every success.
    queued, queued_bytes, sent, retries, dropped, quarantined
        What ``status()`` tells; ``dropped`` and ``quarantined`` count by reason.
    """

    attempts: int = 0
    not_before: float | None = None
    size_limit: int | None = None
    search_limit: int | None = None
    queued: int = 0
    queued_bytes: int = 0
    sent: int = 0
    retries: int = 0
    dropped: Mapping[str, int] = field(default_factory=dict)
    quarantined: Mapping[str, int] = field(default_factory=dict)

    def enqueued(self, reports: Sequence[Report]) -> Delivery:
        """The state with more reports in the queue."""
        return replace(
            self, queued=self.queued + len(reports), queued_bytes=self.queued_bytes + sum(map(size_of, reports))
        )


@dataclass(frozen=True)
class Send:
    """Send ``body``. The same reports always give the same bytes."""

    reports: tuple[Report, ...]
    body: bytes
    attempt: int


@dataclass(frozen=True)
class Wait:
    """Nothing to send for ``seconds``."""

    seconds: float


@dataclass(frozen=True)
class Idle:
    """Nothing to send."""


Task = Send | Wait | Idle


@dataclass(frozen=True)
class Verdict:
    """What an answer means: the new schedule, and the reports that leave the queue, each with its reason (None: it has
    arrived).
    """

    delivery: Delivery
    settled: Mapping[bytes, str | None] = field(default_factory=dict)
    quarantined: Mapping[bytes, str] = field(default_factory=dict)
    problem: str | None = None


def schedule(delivery: Delivery, now: float, first_delay: float, jitter: float, policy: Policy) -> Delivery:
    """The delivery with a time for its next try.

    A first try lies at random within ``first_delay``; whoever asks with a shorter one is served sooner. A time further
    ahead than any the policy allows means that the clock was set back, and is brought near.
    """
    if delivery.not_before is None:
        return replace(delivery, not_before=now + jitter * first_delay)
    longest = policy.longest_wait if delivery.attempts else first_delay
    return replace(delivery, not_before=min(delivery.not_before, now + longest))


def next_task(delivery: Delivery, waiting: Sequence[Report], now: float, policy: Policy) -> Task:
    """What to do now, for a scheduled delivery and the front of its queue."""
    if not waiting:
        return Idle()
    if delivery.not_before is not None and delivery.not_before > now:
        return Wait(delivery.not_before - now)
    batch: list[Report] = []
    room = policy.most_bytes_per_upload
    for report in waiting[: batch_limit(delivery, policy)]:
        room -= size_of(report)
        if batch and room < 0:
            break
        batch.append(report)
    return Send(tuple(batch), encode_upload(batch), delivery.attempts + 1)


def batch_limit(delivery: Delivery, policy: Policy) -> int:
    """Reports in the next upload at most."""
    limits = (delivery.size_limit, delivery.search_limit, policy.most_reports_per_upload)
    return min(limit for limit in limits if limit is not None)


def size_of(report: Report) -> int:
    """Bytes that a report takes, at most."""
    return len(report.payload) + REPORT_OVERHEAD


def judge(
    delivery: Delivery, task: Send, answer: Response | TransportError, now: float, jitter: float, policy: Policy
) -> Verdict:
    """What to make of the answer to ``task``."""
    if isinstance(answer, TransportError):
        return _again(delivery, answer.code, now, jitter, policy)
    rejected = _rejections(answer) if answer.status == 200 else None
    if rejected is not None:
        settled = {report.id: rejected.get(report.id.hex()) for report in task.reports}
        widened = None if delivery.search_limit is None else 2 * delivery.search_limit
        return Verdict(replace(_fresh(delivery), search_limit=widened), settled)
    code = answer.problem_code()
    reason = code or f"http-{answer.status}"
    half = (len(task.reports) + 1) // 2
    if len(task.reports) > 1 and answer.status in SPLIT_STATUSES:
        return Verdict(replace(_fresh(delivery), size_limit=half), problem=reason)
    if len(task.reports) > 1 and code and answer.status in POISON_STATUSES:
        return Verdict(replace(_fresh(delivery), search_limit=half), problem=reason)
    if code and answer.status in SPLIT_STATUSES | POISON_STATUSES:
        return Verdict(_fresh(delivery), quarantined={task.reports[0].id: reason}, problem=reason)
    if code and answer.status in TERMINAL_STATUSES and code not in RETRYABLE_CODES:
        return Verdict(_fresh(delivery), {report.id: code for report in task.reports}, problem=code)
    return _again(delivery, reason, now, jitter, policy, answer.retry_after(now))


def _fresh(delivery: Delivery) -> Delivery:
    """After an answer that settled something: the next batch is due at once."""
    return replace(delivery, attempts=0, not_before=0.0)


def _again(
    delivery: Delivery, problem: str, now: float, jitter: float, policy: Policy, retry_after: float = 0.0
) -> Verdict:
    """The same bytes later. Exponential backoff with full jitter; Retry-After is the floor, up to its cap."""
    window = min(policy.backoff_longest, policy.backoff_base * 2.0 ** min(delivery.attempts, 60))
    delay = max(jitter * window, min(max(retry_after, 0.0), policy.retry_after_longest))
    later = replace(delivery, attempts=delivery.attempts + 1, not_before=now + delay, retries=delivery.retries + 1)
    return Verdict(later, problem=problem)


def _rejections(answer: Response) -> Mapping[str, str] | None:
    """``{id: code}`` from a success, None for a body that no aggregator sent."""
    try:
        rejected = json.loads(answer.body)["rejected"]
        pairs = {identifier: code for identifier, code in rejected}  # noqa: C416 - it checks that these are pairs
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    right = isinstance(rejected, list) and all(isinstance(text, str) for pair in pairs.items() for text in pair)
    return pairs if right else None
