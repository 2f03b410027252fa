"""Reports wait here until there are enough of them, and leave together.

What leaves says nothing of when a report came, in which order, or together with which others: the pool keeps neither
times nor senders, a batch is a set, and its order is that of the ids. That is a function of the set: an order drawn by
lot would tell the operator no less, who can sort, and no device can choose an id that tells of another's. (Of honest
devices, whose ids are pseudorandom, it is a uniform order too.) The shuffle model's bound holds for the operator with n
= the size of the batch, less the devices in it whose answers the operator knows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from ldp_client.delivery.machine import size_of
from ldp_client.errors import ConfigurationError, StorageError
from ldp_client.storage.contract import Transaction, pack, unpack
from protocols import Campaign, Report

BATCH_HEADER: Final = "LDP-Relay-Batch"
"""Sent with an upload whose reports were mixed in a batch of at least so many devices, and with no other."""


@dataclass(frozen=True)
class Mixing:
    """The rule by which a batch is large enough to be forwarded. Sizes count devices.

    least_batch
        Fewer wait for more.
    longest_wait
        Seconds since the first of them came after which fewer are forwarded, without the header that vouches for a
        batch; None waits on, for as long as it takes.
    least_late_batch
        Even then at least so many; 1 would forward a report alone.
    """

    least_batch: int = 1000
    longest_wait: float | None = None
    least_late_batch: int = 2

    def __post_init__(self) -> None:
        if self.least_batch < 1 or self.least_late_batch < 1:
            raise ConfigurationError("bad-batch", "least_batch and least_late_batch must be at least 1")
        if self.longest_wait is not None and not self.longest_wait >= 0:
            raise ConfigurationError("bad-batch", "longest_wait must be at least 0 seconds, or None")


@dataclass(frozen=True)
class Gathering:
    """Waiting reports (of each group, where a device answers all groups), their bytes, and when the first came."""

    reports: tuple[int, ...] = ()
    size: int = 0
    since: float = 0.0

    @property
    def devices(self) -> int:
        """Devices that these reports are of. One that answers all groups has a report in each: the scarcest group
        counts, since every group is mixed on its own.
        """
        return min(self.reports, default=0)


class Pool:
    """The reports of one campaign that wait for company. Every method runs inside a transaction of the caller's."""

    def __init__(self, campaign_id: str) -> None:
        self._state = f"gathering/{campaign_id}"
        self._reports = f"pool/{campaign_id}/"

    def gathering(self, transaction: Transaction) -> Gathering:
        """Return what waits."""
        stored = transaction.get(self._state)
        if stored is None:
            return Gathering()
        try:
            reports, size, since = unpack(self._state, stored)
            return Gathering(tuple(reports), size, since)
        except (TypeError, ValueError):
            raise StorageError("storage-corrupt") from None

    def find(self, transaction: Transaction, identifier: bytes) -> Report | None:
        """The waiting report with this id."""
        key = self._reports + identifier.hex()
        stored = transaction.get(key)
        return None if stored is None else _report(key, stored)

    def put(self, transaction: Transaction, reports: Sequence[Report], campaign: Campaign, now: float) -> None:
        """Add reports to those that wait; room has been checked."""
        before = self.gathering(transaction)
        groups = campaign.pools
        group_of = {question.index: group for group, members in enumerate(groups) for question in members}
        counts = list(before.reports or [0] * len(groups))
        for report in reports:
            key = self._reports + report.id.hex()
            transaction.put(key, pack(key, [report.question, report.payload]))
            counts[group_of[report.question]] += 1
        size = before.size + sum(map(size_of, reports))
        self._set(transaction, Gathering(tuple(counts), size, before.since if any(before.reports) else now))

    def take(self, transaction: Transaction) -> tuple[Report, ...]:
        """Everything that waits, in the order of the ids; the pool is then empty."""
        taken = []
        for key, stored in transaction.items(self._reports):
            taken.append(_report(key, stored))
            transaction.delete(key)
        transaction.delete(self._state)
        return tuple(taken)

    def restart(self, transaction: Transaction, now: float) -> None:
        """The clock was set back behind the first arrival: the wait begins now."""
        self._set(transaction, replace(self.gathering(transaction), since=now))

    def _set(self, transaction: Transaction, gathering: Gathering) -> None:
        value = [list(gathering.reports), gathering.size, gathering.since]
        transaction.put(self._state, pack(self._state, value))


def _report(key: str, stored: bytes) -> Report:
    try:
        question, payload = unpack(key, stored)
        return Report(question, bytes.fromhex(key.rpartition("/")[2]), payload)
    except (TypeError, ValueError):
        raise StorageError("storage-corrupt") from None
