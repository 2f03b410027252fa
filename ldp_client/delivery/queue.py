"""The queue of unsent reports in the storage, the state of its delivery beside it, and an index of what is due when."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ldp_client.delivery.schedule import DUE, Delivery, Outcome, Place, Settled, Verdict, size_of
from ldp_client.errors import StorageError
from ldp_client.policy import MOST_QUARANTINED_REPORTS, Policy
from ldp_client.storage.contract import QUEUES, Transaction, pack, scope_prefix, unpack

if TYPE_CHECKING:
    from ldp_protocols import Report

_NAMES: Final = Delivery.__match_args__
_DUE: Final = "due"
"""A time that is due, as it is stored."""
_TRIED: Final = b"1"
_UNTRIED: Final = b"0"

MOST_LOOKED_AT: Final = 256
"""Queues that a sender looks at, the earliest first."""


class Listed(NamedTuple):
    """An entry of the index: ``at`` is the clock's time of the next try, 0 where it is due or not scheduled."""

    place: Place
    at: float
    tried: bool


class Kept(NamedTuple):
    """A report that is kept with the server's code of it, ``""`` where there is none yet, and when it first left."""

    report: Report
    code: str
    at: float


def token_key(place: Place) -> str:
    """The storage key of the token of a place."""
    return f"{scope_prefix(place.scope)}token/{place.campaign_id}"


def stored_token(transaction: Transaction, place: Place) -> bytes | None:
    """The token that the answer of a place shows, None where there is none."""
    stored = transaction.get(token_key(place))
    return None if stored is None else bytes(unpack(token_key(place), stored))


class Outbox:
    """The queue of one place. Every method runs inside a transaction of the caller's, on the storage of all scopes."""

    __slots__ = ("_delivery", "_prefix", "_quarantine", "_reports", "_sent", "place")

    def __init__(self, campaign_id: str, scope: str = "") -> None:
        self.place = Place(scope, campaign_id)
        prefix = scope_prefix(scope)
        self._delivery = f"{prefix}delivery/{campaign_id}"
        self._reports = f"{prefix}outbox/{campaign_id}/"
        self._quarantine = f"{prefix}quarantine/{campaign_id}/"
        self._sent = f"{prefix}sent/{campaign_id}/"

    def delivery(self, transaction: Transaction) -> Delivery:
        """Read the state of the delivery."""
        stored = transaction.get(self._delivery)
        if stored is None:
            return Delivery()
        try:
            # By name, so that a later version may add a field and an earlier one still reads the others.
            values = {name: value for name, value in unpack(self._delivery, stored).items() if name in _NAMES}
            at = values["schedule"]
            return Delivery(**{**values, "schedule": at if at is None else DUE if at == _DUE else float(at)})
        except (TypeError, ValueError, AttributeError, KeyError):
            raise StorageError("storage-corrupt") from None

    def set_delivery(self, transaction: Transaction, delivery: Delivery) -> None:
        """Store the state, and its place in the index."""
        listed, key = _index_key(self.place, self.delivery(transaction)), _index_key(self.place, delivery)
        if listed is not None and listed != key:
            transaction.delete(listed)
        if key is not None:
            transaction.put(key, _TRIED if delivery.attempts else _UNTRIED)
        values: dict[str, Any] = {name: getattr(delivery, name) for name in _NAMES}
        if delivery.schedule == DUE:
            values["schedule"] = _DUE
        plain = {name: dict(value) if isinstance(value, Mapping) else value for name, value in values.items()}
        transaction.put(self._delivery, pack(self._delivery, plain))

    def front(self, transaction: Transaction, limit: int | None) -> tuple[Report, ...]:
        """The first ``limit`` reports (None: all), in the order of their ids, which is always the same."""
        return tuple(_kept(key, stored).report for key, stored in transaction.items(self._reports, limit))

    def find(self, transaction: Transaction, identifier: bytes) -> Report | None:
        """The waiting report with this id."""
        key = self._reports + identifier.hex()
        stored = transaction.get(key)
        return None if stored is None else _kept(key, stored).report

    def quarantined(self, transaction: Transaction) -> tuple[Kept, ...]:
        """Reports that the server would not take, with its codes."""
        return tuple(_kept(key, stored) for key, stored in transaction.items(self._quarantine))

    def sent(self, transaction: Transaction) -> tuple[Kept, ...]:
        """Reports whose upload has begun, with the time, and with what the server replied."""
        return tuple(_kept(key, stored) for key, stored in transaction.items(self._sent))

    def is_logged(self, transaction: Transaction, identifier: bytes) -> bool:
        """True if an upload of the report with this id has begun before."""
        return transaction.get(self._sent + identifier.hex()) is not None

    def log(self, transaction: Transaction, reports: Sequence[Report], now: float) -> None:
        """Take note of reports whose upload begins: nothing leaves that the person cannot look at."""
        for report in reports:
            if not self.is_logged(transaction, report.id):
                self._keep(transaction, self._sent, report, "", now)

    def check_room(self, transaction: Transaction, count: int, size: int, policy: Policy) -> None:
        """Raise StorageError unless ``count`` more reports of ``size`` bytes together fit."""
        delivery = self.delivery(transaction)
        queued, queued_bytes = delivery.queued + count, delivery.queued_bytes + size
        if queued > policy.most_queued_reports or queued_bytes > policy.most_queued_bytes:
            raise StorageError("queue-full")

    def pad(self, transaction: Transaction, upload_bytes: int) -> None:
        """Fill uploads up to this length (``Campaign.upload_bytes``)."""
        delivery = self.delivery(transaction)
        if delivery.upload_bytes != upload_bytes:
            self.set_delivery(transaction, replace(delivery, upload_bytes=upload_bytes))

    def put(self, transaction: Transaction, reports: Sequence[Report], *, expires: float | None = None) -> Delivery:
        """Queue reports; room has been checked."""
        for report in reports:
            self._keep(transaction, self._reports, report)
        before = self.delivery(transaction)
        delivery = replace(
            before,
            queued=before.queued + len(reports),
            queued_bytes=before.queued_bytes + sum(map(size_of, reports)),
            expires=before.expires if expires is None else expires,
            refused_at=None,  # What joins has heard no word yet.
        )
        self.set_delivery(transaction, delivery)
        return delivery

    def apply(self, transaction: Transaction, verdict: Verdict, *, after_withdrawal: bool = False) -> Delivery:
        """Settle what an answer settled, and keep beside what left what the server replied. Reports that are no longer
        queued (withdrawn, or settled by another process) are left out, and nothing is ever put back.

        ``after_withdrawal``: what arrives was deleted while it was on its way, and counts as sent.
        """
        if transaction.get(self._delivery) is None:
            # Erased meanwhile: nothing is to be kept, not even a count.
            return Delivery()
        before = self.delivery(transaction)
        sent, dropped, quarantined = before.sent, dict(before.dropped), dict(before.quarantined)
        queued, queued_bytes = before.queued, before.queued_bytes
        for identifier, end in verdict.settled.items():
            outcome, code = end.outcome, end.code
            self._note_reply(transaction, identifier, end)
            report = self.find(transaction, identifier)
            if report is None:
                sent += after_withdrawal and outcome == Outcome.ARRIVED
                continue
            transaction.delete(self._reports + identifier.hex())
            queued -= 1
            queued_bytes -= size_of(report)
            if outcome == Outcome.QUARANTINED and sum(quarantined.values()) < MOST_QUARANTINED_REPORTS:
                self._keep(transaction, self._quarantine, report, code)
                quarantined[code] = quarantined.get(code, 0) + 1
            elif outcome == Outcome.ARRIVED:
                sent += 1
            else:
                dropped[code] = dropped.get(code, 0) + 1
        delivery = replace(
            # A queue emptied meanwhile, by a withdrawal or by another process, stays as it is.
            verdict.delivery if before.queued else before,
            sent=sent,
            dropped=dropped,
            quarantined=quarantined,
            queued=queued,
            queued_bytes=queued_bytes,
            paused=before.paused,
        )
        delivery = delivery if queued else delivery.emptied()
        self.set_delivery(transaction, delivery)
        return delivery

    def expire(self, transaction: Transaction, policy: Policy) -> Delivery:
        """Give up everything that waits."""
        ids = [report.id for report in self.front(transaction, policy.most_queued_reports)]
        end = Settled(Outcome.EXPIRED, Outcome.EXPIRED.value)
        return self.apply(transaction, Verdict(self.delivery(transaction), dict.fromkeys(ids, end)))

    def requeue(self, transaction: Transaction) -> int:
        """Let what is quarantined be tried again; how many reports these are."""
        quarantine = self.quarantined(transaction)
        for one in quarantine:
            transaction.delete(self._quarantine + one.report.id.hex())
        if quarantine:
            self.set_delivery(transaction, replace(self.delivery(transaction), quarantined={}, schedule=DUE))
            self.put(transaction, [one.report for one in quarantine])
        return len(quarantine)

    def pause(self, transaction: Transaction, *, paused: bool) -> None:
        """Send nothing, or send again; what is queued stays."""
        self.set_delivery(transaction, replace(self.delivery(transaction), paused=paused))

    def clear(self, transaction: Transaction) -> int:
        """Delete every report, waiting or quarantined; how many waited. What was sent and lost stays counted."""
        for prefix in (self._reports, self._quarantine):
            for key, _ in transaction.items(prefix):
                transaction.delete(key)
        delivery = self.delivery(transaction)
        self.set_delivery(transaction, delivery.emptied())
        return delivery.queued

    def _note_reply(self, transaction: Transaction, identifier: bytes, end: Settled) -> None:
        """Keep the reply beside what left; a relay logs nothing. That a report was given up here is no reply."""
        key = self._sent + identifier.hex()
        stored = transaction.get(key)
        if stored is not None and end.outcome != Outcome.EXPIRED:
            sent = _kept(key, stored)
            self._keep(transaction, self._sent, sent.report, end.code or end.outcome.value, sent.at)

    def _keep(self, transaction: Transaction, prefix: str, report: Report, code: str = "", at: float = 0.0) -> None:
        key = prefix + report.id.hex()
        transaction.put(key, pack(key, [report.question, report.payload, code, at]))


def outboxes(transaction: Transaction, scope: str = "") -> tuple[Outbox, ...]:
    """The queues of a scope, with something in them or not."""
    prefix = f"{scope_prefix(scope)}delivery/"
    return tuple(Outbox(key.removeprefix(prefix), scope) for key, _ in transaction.items(prefix))


def listed(transaction: Transaction, limit: int | None = MOST_LOOKED_AT) -> Iterator[Listed]:
    """The queues with something in them, the earliest first."""
    try:
        for key, value in transaction.items(QUEUES, limit):
            _, milliseconds, scope, campaign_id = key.split("/")
            yield Listed(Place(scope, campaign_id), int(milliseconds) / 1000, value == _TRIED)
    except ValueError:
        raise StorageError("storage-corrupt") from None


def _index_key(place: Place, delivery: Delivery) -> str | None:
    if not delivery.queued or delivery.paused:
        return None
    milliseconds = min(max(0, int((delivery.schedule or DUE) * 1000)), 10**15 - 1)
    return f"{QUEUES}{milliseconds:015d}/{place.scope}/{place.campaign_id}"


def _kept(key: str, stored: bytes) -> Kept:
    from ldp_protocols.wire import Report

    try:
        question, payload, code, at = unpack(key, stored)
        return Kept(Report(question, bytes.fromhex(key.rpartition("/")[2]), payload), code, at)
    except (TypeError, ValueError):
        raise StorageError("storage-corrupt") from None
