"""The upload state machine: decides what is sent next and what an answer means, without any I/O.

Everything is a value. :func:`wait` and :func:`batch` look at the state and the queue, :func:`judge` at an answer;
neither sends, stores, sleeps or draws. The jitter is handed in as a number from [0, 1).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

from ldp_client.errors import TransportError
from ldp_client.policy import (
    CLOSING_GRACE,
    EXPIRY_TRIES,
    PASSING_CODES,
    POISON_STATUSES,
    RETRY_AFTER_LONGEST,
    RETRYABLE_CODES,
    SECOND_WORD,
    SPLIT_STATUSES,
    TERMINAL_STATUSES,
    Policy,
)

if TYPE_CHECKING:
    from ldp_client.network.transport import Response
    from ldp_protocols import Report

REPORT_OVERHEAD: Final = 32
"""The bytes of a report beside its payload: its id of 16 bytes, and at most 16 bytes of framing."""


class Place(NamedTuple):
    """The owner of a queue: a scope of the storage ("" is the device itself), and a campaign."""

    scope: str
    campaign_id: str


ALONE: Final = Place("", "")
"""The name of the queue where there is one only."""


GONE: Final = 410
"""The status of a campaign that was deleted, which is final at once."""

DUE: Final = 0.0
"""The time of a try that is due at once."""


class Outcome(Enum):
    """The ways in which a report leaves the queue."""

    ARRIVED = "arrived"
    REFUSED = "refused"
    QUARANTINED = "quarantined"
    EXPIRED = "expired"


class Settled(NamedTuple):
    """The end of one report; ``code`` is the reason, where it did not arrive."""

    outcome: Outcome
    code: str = ""


@dataclass(frozen=True, slots=True)
class Delivery:
    """The state of one queue's delivery; stored with the queue, so that a restart goes on where it stopped.

    attempts
        Tries of the batch in front that have failed in a row.
    schedule
        The clock's time at which the next try is due; None while nobody has looked at the queue.
    expires
        The clock's time at which what is queued is given up, None for never.
    paused
        Nothing is sent: the person has switched contributing off.
    size_limit
        Reports in an upload at most, since the server found more too large; None: as many as the policy allows. Grows
        by an eighth with every success.
    search_limit
        The same while a poisoned report is searched by halving; doubles with every success.
    refused_at
        The clock's time at which the server refused for good what is in front, and nothing else since.
    upload_bytes
        Zeros fill uploads up to this length, which is that of all devices' (``Campaign.upload_bytes``).
    queued, queued_bytes, sent, retries, dropped, quarantined
        What ``status()`` tells; ``dropped`` and ``quarantined`` count by reason.
    """

    attempts: int = 0
    schedule: float | None = None
    expires: float | None = None
    paused: bool = False
    size_limit: int | None = None
    search_limit: int | None = None
    refused_at: float | None = None
    upload_bytes: int = 0
    queued: int = 0
    queued_bytes: int = 0
    sent: int = 0
    retries: int = 0
    dropped: Mapping[str, int] = field(default_factory=dict)
    quarantined: Mapping[str, int] = field(default_factory=dict)

    def emptied(self) -> Delivery:
        """The state with nothing in the queue; what happened so far stays counted."""
        left = replace(self, queued=0, queued_bytes=0, attempts=0, schedule=None, expires=None)
        return replace(left, search_limit=None, refused_at=None)

    def has_expired(self, now: float) -> bool:
        """True if the queue is to be given up."""
        waits = self.refused_at is not None and now - self.refused_at < CLOSING_GRACE
        return self.expires is not None and now > self.expires and self.attempts >= EXPIRY_TRIES and not waits

    def has_second_word(self, now: float) -> bool:
        """True if a final word now is the second one."""
        return self.refused_at is not None and now - self.refused_at >= SECOND_WORD


class Send(NamedTuple):
    """Send ``body``. The same reports always give the same bytes. A ``token`` is shown with them; it is of all reports
    of an answer together, which are therefore not sent apart.
    """

    reports: tuple[Report, ...]
    body: bytes
    attempt: int
    place: Place = ALONE
    token: bytes | None = None

    @property
    def may_be_split(self) -> bool:
        """True if the server may take parts of it."""
        return len(self.reports) > 1 and self.token is None


class Wait(NamedTuple):
    """Nothing to send for ``seconds``."""

    seconds: float


class Idle(NamedTuple):
    """Nothing to send."""


Task = Send | Wait | Idle


class Verdict(NamedTuple):
    """The meaning of an answer: the new schedule, and the reports that leave the queue."""

    delivery: Delivery
    settled: Mapping[bytes, Settled] = {}
    problem: str | None = None


def schedule(delivery: Delivery, now: float, first_delay: float, jitter: float, policy: Policy) -> Delivery:
    """The delivery with a time for its next try.

    A first try lies at random within ``first_delay``; whoever asks with a shorter one is served sooner. A time further
    ahead than any the policy allows means that the clock was set back, and is brought near.
    """
    planned = delivery.schedule
    if planned is None:
        planned = now + jitter * first_delay if first_delay else DUE
    else:
        planned = min(planned, now + longest_wait(delivery.attempts > 0, first_delay, policy))
    return delivery if planned == delivery.schedule else replace(delivery, schedule=planned)


def longest_wait(tried: bool, first_delay: float, policy: Policy) -> float:
    """Seconds from now beyond which no next try lies."""
    return policy.longest_wait if tried else first_delay


def wait(delivery: Delivery, now: float) -> float:
    """Seconds until a scheduled delivery is due, 0 where it is."""
    return max(0.0, (delivery.schedule or DUE) - now)


def batch(
    delivery: Delivery, waiting: Sequence[Report], policy: Policy, place: Place = ALONE, token: bytes | None = None
) -> Send:
    """The upload of a delivery that is due: as much of the front of its queue as its limits allow; all with a token."""
    from ldp_protocols.wire import encode_padded

    if token is not None:
        return Send(tuple(waiting), encode_padded(waiting, delivery.upload_bytes), delivery.attempts + 1, place, token)
    chosen: list[Report] = []
    room = policy.most_bytes_per_upload
    for report in waiting[: batch_limit(delivery, policy)]:
        room -= size_of(report)
        if chosen and room < 0:
            break
        chosen.append(report)
    return Send(tuple(chosen), encode_padded(chosen, delivery.upload_bytes), delivery.attempts + 1, place)


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
    """The meaning of the answer to ``task``."""
    if isinstance(answer, TransportError):
        return _again(delivery, answer.code, now, jitter, policy, heard=False)
    rejected = _rejections(answer) if answer.status == 200 else None
    if rejected is not None:
        codes = {report.id: rejected.get(report.id.hex()) for report in task.reports}
        final = PASSING_CODES.issuperset(codes.values())
        later = RETRYABLE_CODES if final and delivery.has_second_word(now) else RETRYABLE_CODES | PASSING_CODES
        settled = {one: _settled(code) for one, code in codes.items() if code not in later}
        if settled:
            return Verdict(_widened(_fresh(delivery), policy), settled)
        first = next(iter(codes.values())) or ""
        if final:
            return _refused(delivery, first, now, jitter, policy)
        return _again(delivery, first, now, jitter, policy, answer.retry_after(now))
    code = answer.problem_code()
    if code in RETRYABLE_CODES:
        return _again(delivery, code, now, jitter, policy, answer.retry_after(now))
    reason = f"http-{answer.status}" if code is None else code
    half = (len(task.reports) + 1) // 2
    if task.may_be_split and answer.status in SPLIT_STATUSES:
        return Verdict(replace(_fresh(delivery), size_limit=half), problem=reason)
    if task.may_be_split and code and answer.status in POISON_STATUSES:
        return Verdict(replace(_fresh(delivery), search_limit=half), problem=reason)
    if code and answer.status in SPLIT_STATUSES | POISON_STATUSES:
        settled = {one.id: Settled(Outcome.QUARANTINED, reason) for one in task.reports}
        return Verdict(_fresh(delivery), settled, reason)
    if code and answer.status in TERMINAL_STATUSES:
        if answer.status != GONE and not delivery.has_second_word(now):
            return _refused(delivery, code, now, jitter, policy)
        return Verdict(_fresh(delivery), {one.id: Settled(Outcome.REFUSED, reason) for one in task.reports}, reason)
    return _again(delivery, reason, now, jitter, policy, answer.retry_after(now))


def _refused(delivery: Delivery, code: str, now: float, jitter: float, policy: Policy) -> Verdict:
    """A final word that does not count yet. A clock that went back hears the first one anew."""
    first = delivery.refused_at
    verdict = _again(delivery, code, now, jitter, policy, RETRY_AFTER_LONGEST)
    return verdict._replace(
        delivery=replace(verdict.delivery, refused_at=now if first is None or first > now else first)
    )


def _settled(code: str | None) -> Settled:
    from ldp_client.network.transport import clean_code

    return Settled(Outcome.ARRIVED) if code is None else Settled(Outcome.REFUSED, clean_code(code))


def _fresh(delivery: Delivery) -> Delivery:
    """After an answer that settled something: the next batch is due at once."""
    return replace(delivery, attempts=0, schedule=DUE, refused_at=None)


def _widened(delivery: Delivery, policy: Policy) -> Delivery:
    """After a success: limits that were found grow again, for what found too much may have been repaired."""
    size, search = delivery.size_limit, delivery.search_limit
    if size is not None:
        size += max(1, size // 8)
    return replace(
        delivery,
        size_limit=None if size is None or size >= policy.most_reports_per_upload else size,
        search_limit=None if search is None or search >= policy.most_reports_per_upload else 2 * search,
    )


def _again(
    delivery: Delivery,
    problem: str,
    now: float,
    jitter: float,
    policy: Policy,
    retry_after: float = 0.0,
    *,
    heard: bool = True,
) -> Verdict:
    """The same bytes later. Exponential backoff with full jitter; Retry-After is the floor, up to its cap. What was
    ``heard`` takes a final word back.
    """
    window = min(policy.backoff_longest, policy.backoff_base * 2.0 ** min(delivery.attempts, 60))
    delay = max(jitter * window, min(max(retry_after, 0.0), RETRY_AFTER_LONGEST))
    later = replace(delivery, attempts=delivery.attempts + 1, schedule=now + delay, retries=delivery.retries + 1)
    return Verdict(replace(later, refused_at=None) if heard else later, problem=problem)


def _rejections(answer: Response) -> Mapping[str, str] | None:
    """``{id: code}`` from a success, None for a body that no aggregator sent."""
    import json  # a module of regular expressions, which an app's start need not load

    try:
        rejected = json.loads(answer.body)["rejected"]
        pairs = {identifier: code for identifier, code in rejected}  # noqa: C416 - it checks that these are pairs
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    right = isinstance(rejected, list) and all(isinstance(text, str) for pair in pairs.items() for text in pair)
    return pairs if right else None


@dataclass(frozen=True, slots=True)
class Event:
    """``kind`` is ``queued``, ``sent``, ``retry``, ``dropped``, ``quarantined`` or ``problem``; ``code`` is the reason,
    ``count`` the number of reports.
    """

    kind: str
    code: str | None
    count: int
    campaign_id: str = ""


OnEvent = Callable[[Event], None]


def events(before: Delivery, after: Delivery, problem: str | None, campaign_id: str) -> list[Event]:
    """Tell what happened between two states of a queue."""
    happened = []
    if after.sent > before.sent:
        happened.append(Event("sent", None, after.sent - before.sent, campaign_id))
    for kind, old, new in (
        ("dropped", before.dropped, after.dropped),
        ("quarantined", before.quarantined, after.quarantined),
    ):
        for code, count in new.items():
            if count > old.get(code, 0):
                happened.append(Event(kind, code, count - old.get(code, 0), campaign_id))
    if after.retries > before.retries:
        happened.append(Event("retry", problem, after.queued, campaign_id))
    return happened
