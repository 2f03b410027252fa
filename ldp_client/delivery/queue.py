"""The queue of unsent reports in the storage, and the state of its delivery beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Final

from ldp_client.delivery.machine import Delivery, Verdict, size_of
from ldp_client.errors import QuotaError, StorageError
from ldp_client.policy import Policy
from ldp_client.storage.checksummed import pack, unpack
from ldp_client.storage.contract import Transaction
from protocols import Report

_NAMES: Final = tuple(member.name for member in fields(Delivery))


class Outbox:
    """The queue of one campaign. Every method runs inside a transaction of the caller's."""

    __slots__ = ("_delivery", "_quarantine", "_reports")

    def __init__(self, campaign_id: str) -> None:
        self._delivery = f"delivery/{campaign_id}"
        self._reports = f"outbox/{campaign_id}/"
        self._quarantine = f"quarantine/{campaign_id}/"

    def delivery(self, transaction: Transaction) -> Delivery:
        """Where the delivery stands."""
        stored = transaction.get(self._delivery)
        if stored is None:
            return Delivery()
        try:
            # By name, so that a later version may add a field and an earlier one still reads the others.
            return Delivery(**{name: v for name, v in unpack(self._delivery, stored).items() if name in _NAMES})
        except (TypeError, ValueError, AttributeError):
            raise StorageError("storage-corrupt") from None

    def set_delivery(self, transaction: Transaction, delivery: Delivery) -> None:
        values = {name: getattr(delivery, name) for name in _NAMES}
        plain = {name: dict(value) if isinstance(value, Mapping) else value for name, value in values.items()}
        transaction.put(self._delivery, pack(self._delivery, plain))

    def front(self, transaction: Transaction, limit: int) -> tuple[Report, ...]:
        """The first ``limit`` reports, in the order of their ids, which is always the same."""
        return tuple(_report(key, stored) for key, stored in transaction.items(self._reports, limit))

    def find(self, transaction: Transaction, identifier: bytes) -> Report | None:
        """The waiting report with this id."""
        key = self._reports + identifier.hex()
        stored = transaction.get(key)
        return None if stored is None else _report(key, stored)

    def check_room(self, transaction: Transaction, count: int, size: int, policy: Policy) -> None:
        """Raise QuotaError unless ``count`` more reports of ``size`` bytes together fit."""
        delivery = self.delivery(transaction)
        if (
            delivery.queued + count > policy.most_queued_reports
            or delivery.queued_bytes + size > policy.most_queued_bytes
        ):
            raise QuotaError("queue-full", "the queue of unsent reports is full; try again when some have been sent")

    def put(self, transaction: Transaction, reports: Sequence[Report]) -> None:
        """Queue reports; room has been checked."""
        for report in reports:
            key = self._reports + report.id.hex()
            transaction.put(key, pack(key, [report.question, report.payload]))
        self.set_delivery(transaction, self.delivery(transaction).enqueued(reports))

    def apply(self, transaction: Transaction, verdict: Verdict) -> Delivery:
        """Settle what an answer settled. Reports that are no longer queued (withdrawn, or settled by another process)
        are left out, and nothing is ever put back.
        """
        before, after = self.delivery(transaction), verdict.delivery
        sent, dropped, quarantined = before.sent, dict(before.dropped), dict(before.quarantined)
        queued, queued_bytes = before.queued, before.queued_bytes
        for identifier, reason in (*verdict.settled.items(), *verdict.quarantined.items()):
            report = self.find(transaction, identifier)
            if report is None:
                continue
            transaction.delete(self._reports + identifier.hex())
            queued -= 1
            queued_bytes -= size_of(report)
            if identifier in verdict.quarantined:
                key = self._quarantine + identifier.hex()
                transaction.put(key, pack(key, [report.question, report.payload, reason]))
                quarantined[str(reason)] = quarantined.get(str(reason), 0) + 1
            elif reason is None:
                sent += 1
            else:
                dropped[reason] = dropped.get(reason, 0) + 1
        delivery = replace(
            after,
            sent=sent,
            dropped=dropped,
            quarantined=quarantined,
            queued=queued,
            queued_bytes=queued_bytes,
            not_before=after.not_before if queued else None,
        )
        self.set_delivery(transaction, delivery)
        return delivery

    def clear(self, transaction: Transaction) -> None:
        """Delete every report, waiting or quarantined. What was sent and lost stays counted."""
        for prefix in (self._reports, self._quarantine):
            for key, _ in transaction.items(prefix):
                transaction.delete(key)
        delivery = replace(
            self.delivery(transaction), queued=0, queued_bytes=0, attempts=0, not_before=None, search_limit=None
        )
        self.set_delivery(transaction, delivery)


def _report(key: str, stored: bytes) -> Report:
    try:
        question, payload = unpack(key, stored)
        return Report(question, bytes.fromhex(key.rpartition("/")[2]), payload)
    except (TypeError, ValueError):
        raise StorageError("storage-corrupt") from None
