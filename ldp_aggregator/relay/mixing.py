"""Mixing: reports wait in a pool until there are enough of them, and leave together as a batch.

What leaves says nothing of when a report came, in which order, or together with which others: a pool keeps neither
times nor senders, a batch is a set, and its order is that of the ids, a function of the set. The shuffle model's bound
holds for the operator with n = the size of the batch, less the devices in it whose answers the operator knows.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from operator import add
from typing import Final

from ldp_client.delivery.queue import Outbox
from ldp_client.delivery.schedule import size_of
from ldp_client.errors import StorageError
from ldp_client.runtime import Clock
from ldp_client.storage.contract import Storage, Transaction, pack, unpack
from ldp_protocols import LdpError, Report
from ldp_protocols.document.crowd import Crowd

GATHERING: Final = "gathering/"
"""Prefix of the keys of waiting reports."""
EXPIRED: Final = "expired/"
"""Prefix of the keys of expired uploads' counts."""
_DAY: Final = 86400.0


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
    expires
        Seconds since the first of them came after which fewer than a batch are thrown away; None keeps them.
    """

    least_batch: int = 1000
    longest_wait: float | None = None
    least_late_batch: int = 2
    expires: float | None = None

    def __post_init__(self) -> None:
        if self.least_batch < 1 or self.least_late_batch < 1:
            raise LdpError("bad-batch", "least_batch and least_late_batch must be at least 1")
        if self.longest_wait is not None and not self.longest_wait >= 0:
            raise LdpError("bad-batch", "longest_wait must be at least 0 seconds, or None")

    def for_crowd(self, crowd: Crowd | None) -> Mixing:
        """The rule for a campaign with a crowd, of whole batches alone. Raises LdpError if fewer could leave."""
        if crowd is None:
            return self
        if self.longest_wait is not None:
            raise LdpError(
                "bad-batch", "the campaign has a crowd, whose answers leave in whole batches: no longest_wait"
            )
        expires = None if crowd.expires is None else crowd.expires * _DAY
        return replace(self, least_batch=max(self.least_batch, crowd.devices), expires=expires)


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
    """The reports of one campaign, or sealed uploads of one length: they wait until there are enough of them, and leave
    together. Every method runs inside a transaction of the caller's.
    """

    def __init__(self, name: str) -> None:
        self._state = GATHERING + name
        self._reports = f"pool/{name}/"

    def gathering(self, transaction: Transaction) -> Gathering:
        """Uploads that wait."""
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

    def put(self, transaction: Transaction, reports: Sequence[Report], groups: Sequence[int], now: float) -> None:
        """Add reports, so many of each group, to those that wait; room has been checked."""
        before = self.gathering(transaction)
        counts = tuple(map(add, before.reports or [0] * len(groups), groups))
        for report in reports:
            key = self._reports + report.id.hex()
            transaction.put(key, pack(key, [report.question, report.payload]))
        size = before.size + sum(map(size_of, reports))
        self._set(transaction, Gathering(counts, size, before.since if any(before.reports) else now))

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


class Mixer:
    """The batches of one pool: one at a time is on its way, the next one gathers. Every method but :meth:`form` runs
    inside a transaction of the caller's.
    """

    def __init__(self, name: str, storage: Storage, clock: Clock) -> None:
        self.name, self.pool, self.outbox = name, Pool(name), Outbox(name)
        self._batch, self._expired = f"batch/{name}", EXPIRED + name
        self._storage, self._clock = storage, clock

    def form(self, mixing: Mixing) -> float | None:
        """Make a batch of the pool once it is due and the last one is settled; the seconds until it is due, where that
        is a matter of time. What waited for too long is thrown away first.

        Safety: a batch that has been tried never grows. The aggregator may hold it already, and a second try would tell
        it who is new.
        """
        self._expire(mixing)
        with self._storage.transaction(write=False) as transaction:
            wait, _ = self._due(transaction, mixing)
        if wait == 0.0:
            with self._storage.transaction(write=True) as transaction:
                wait, vouched = self._due(transaction, mixing)
                if wait == 0.0:
                    self.outbox.put(transaction, self.pool.take(transaction))
                    transaction.put(self._batch, pack(self._batch, vouched))
        elif wait is not None and wait > (mixing.longest_wait or 0.0):
            with self._storage.transaction(write=True) as transaction:
                self.pool.restart(transaction, self._clock.time())
        return wait or None

    def _expire(self, mixing: Mixing) -> None:
        """Throw away a pool that did not fill in time; how many it held is kept."""
        with self._storage.transaction(write=False) as transaction:
            if not self._is_expired(transaction, mixing):
                return
        with self._storage.transaction(write=True) as transaction:
            if self._is_expired(transaction, mixing):
                gone = self.expired(transaction) + len(self.pool.take(transaction))
                transaction.put(self._expired, pack(self._expired, gone))

    def _is_expired(self, transaction: Transaction, mixing: Mixing) -> bool:
        waiting = self.pool.gathering(transaction)
        if mixing.expires is None or not waiting.devices or waiting.devices >= mixing.least_batch:
            return False
        return self._clock.time() >= waiting.since + mixing.expires

    def expired(self, transaction: Transaction) -> int:
        """Number of reports that were thrown away because their batch did not fill in time."""
        stored = transaction.get(self._expired)
        return 0 if stored is None else int(unpack(self._expired, stored))

    def vouched(self, transaction: Transaction, ids: Collection[bytes]) -> int:
        """The number of devices that what has these ids was mixed with, 0 if nobody says.

        Another process may have gone on to its next batch: what is said is about these very ones, or not said.
        """
        stored = transaction.get(self._batch)
        vouched: int = 0 if stored is None else unpack(self._batch, stored)
        return vouched if vouched and all(self.outbox.find(transaction, identifier) for identifier in ids) else 0

    def load(self, transaction: Transaction) -> tuple[int, int]:
        """Reports in the pool and the outbox: their number and their bytes."""
        waiting, leaving = self.pool.gathering(transaction), self.outbox.delivery(transaction)
        return sum(waiting.reports) + leaving.queued, waiting.size + leaving.queued_bytes

    def forget(self, transaction: Transaction) -> None:
        """Keep nothing further of what is empty: anybody may send sealed uploads of any length."""
        if not any(self.load(transaction)):
            for key in (self._batch, f"delivery/{self.outbox.place.campaign_id}"):
                transaction.delete(key)

    def _due(self, transaction: Transaction, mixing: Mixing) -> tuple[float | None, int]:
        """Seconds until the pool may leave (None: when more have come), and the size that may be vouched for, or 0."""
        waiting = self.pool.gathering(transaction)
        if not any(waiting.reports) or self.outbox.delivery(transaction).queued:
            return None, 0
        if waiting.devices >= mixing.least_batch:
            return 0.0, mixing.least_batch
        if mixing.longest_wait is None or waiting.devices < mixing.least_late_batch:
            return None, 0
        return max(0.0, waiting.since + mixing.longest_wait - self._clock.time()), 0
