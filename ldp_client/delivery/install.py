"""The parts that an install's campaigns and scopes share, how it tells a copied storage from its own, and its permits:
who may send what to whom (whoever agreed, what is queued now, the URL that was agreed to).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from ldp_client import ledger
from ldp_client.delivery.queue import Outbox, stored_token
from ldp_client.delivery.schedule import Outcome, Place, Send
from ldp_client.errors import RefusedError, StorageError, TransportError
from ldp_client.ledger import Consent, Installation, read_installation, write_installation
from ldp_client.storage.contract import MARK, Transaction, pack, problem_of, unpack
from ldp_protocols.errors import LdpError

if TYPE_CHECKING:
    from ldp_client.delivery.sender import BackgroundDriver, Sender
    from ldp_client.log import Teller
    from ldp_client.network.aggregator import Aggregator, Headers
    from ldp_client.network.transport import Transport
    from ldp_client.policy import Policy
    from ldp_client.runtime import Clock
    from ldp_client.storage.contract import Cache, Storage
    from ldp_client.storage.location import Marker
    from ldp_protocols import Coins

_MARK_BYTES: Final = 16
"""So many that no earlier state of any ledger had the same ones."""

_FATES = {Outcome.ARRIVED: ledger.ARRIVED, Outcome.EXPIRED: ledger.EXPIRED}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Install:
    """Everything that an install's campaigns and scopes share. Storage and sender are those of all scopes."""

    storage: Storage
    cached: Storage
    cache: Cache
    marker: Marker | None
    transport: Transport
    clock: Clock
    coins: Coins | None
    policy: Policy
    permits: DevicePermits
    teller: Teller
    sender: Sender
    driver: BackgroundDriver

    def aggregator(self, url: str, campaign_id: str, publisher: str | Collection[str] | None) -> Aggregator:
        """The aggregator of a campaign, checked by ``publisher`` unless that is None. Raises LdpError."""
        where = (url, campaign_id, self.transport, self.clock, self.policy)
        relay = self.permits.relay or None
        if publisher is None:
            from ldp_client.network.aggregator import Aggregator

            return Aggregator(*where, relay=relay)
        from ldp_client.network.publisher import SignedAggregator

        return SignedAggregator(*where, keys=publisher, storage=self.storage, relay=relay)

    def check_room(self) -> None:
        """Raises StorageError where the storage could not keep what a person decides, as far as it can tell."""
        if (check := getattr(self.storage, "check_room", None)) is not None:
            check()

    def refuse_copies(self, transaction: Transaction) -> bytes | None:
        """The mark of the storage's state, None where it has none yet. Raises RefusedError for a copy."""
        stored = None if self.marker is None else transaction.get(MARK)
        if self.marker is None or stored is None:
            return None
        mark: bytes = unpack(MARK, stored)
        try:
            holds = self.marker.holds(mark)
        except OSError as error:
            raise StorageError(problem_of(error)) from error
        if not holds:
            raise RefusedError(
                "copied-storage",
                "the storage file is a copy, or was restored from a backup: what it was copied from may have answered. "
                "If it was moved and is the only one, call Device.adopt()",
            )
        return mark

    def mark(self, transaction: Transaction, before: bytes | None) -> bytes | None:
        """Mark the storage's new state; the mark is valid beside the former one until :meth:`settle_mark`."""
        if self.marker is None:
            return None
        mark = os.urandom(_MARK_BYTES)
        try:
            self.marker.write(*(one for one in (before, mark) if one is not None))
        except OSError as error:
            raise StorageError(problem_of(error)) from error
        transaction.put(MARK, pack(MARK, mark))
        return mark

    def settle_mark(self, mark: bytes | None) -> None:
        """The transaction of :meth:`mark` is on disk: the former state is history."""
        if self.marker is not None and mark is not None:
            # One that fails leaves both valid, and the next contribution repairs it.
            with contextlib.suppress(OSError):
                self.marker.write(mark)


class DevicePermits:
    """The consents of a device and its scopes, as the sender asks for them."""

    def __init__(
        self,
        storage: Storage,
        transport: Transport,
        clock: Clock,
        policy: Policy,
        headers: Headers | None,
        relay: str | None = None,
    ) -> None:
        self._storage = storage
        self._transport = transport
        self._clock = clock
        self._policy = policy
        self._headers = headers
        self.relay = relay or ""
        self.revoked: dict[Place, float] = {}
        """Withdrawals that could not be stored, by the clock; they hold in this process until a later consent."""

    def consent(self, device: Installation, place: Place) -> Consent | None:
        """The consent that holds, as far as this process knows."""
        consent = device.consent(place.campaign_id)
        if consent is None or consent.granted_at is None:
            return None
        return consent if consent.granted_at > self.revoked.get(place, float("-inf")) else None

    def unsealable(self) -> str | None:
        """The reason why this device cannot seal an upload and send it to a relay: a key of UNSEALABLE."""
        if not self.relay:
            return "no-relay"
        from importlib.util import find_spec

        return None if find_spec("pyhpke") else "not-installed"

    def asleep(self, transaction: Transaction) -> bool:
        """See :class:`~ldp_client.delivery.sender.Permits`."""
        return not read_installation(transaction).enabled

    def may_leave(self, transaction: Transaction, place: Place) -> bool:
        """See :class:`~ldp_client.delivery.sender.Permits`."""
        return self._agreed(transaction, place) is not None

    def aggregator(self, transaction: Transaction, place: Place) -> Aggregator | None:
        """See :class:`~ldp_client.delivery.sender.Permits`."""
        from ldp_client.network.aggregator import Aggregator

        consent = self._agreed(transaction, place)
        if consent is None:
            return None
        where = (consent.url, place.campaign_id, self._transport, self._clock, self._policy)
        if consent.gateway and (code := self.unsealable()):
            # Safety: never in the clear instead. The report waits for an app that can seal it.
            raise TransportError(code)
        try:
            if not consent.gateway:
                return Aggregator(*where, headers=self._headers)
            from ldp_client.network.sealed import SealedAggregator

            return SealedAggregator(self.relay, consent.gateway, *where, headers=self._headers)
        except LdpError as error:
            # It was agreed to under a looser policy. It is this campaign's trouble alone: the others' reports go on.
            raise TransportError(error.code, str(error)) from None

    def token(self, transaction: Transaction, place: Place) -> bytes | None:
        """See :class:`~ldp_client.delivery.sender.Permits`."""
        return stored_token(transaction, place)

    def begin(self, task: Send) -> bool:
        """See :class:`~ldp_client.delivery.sender.Permits`.

        Safety: it must be this very answer that is queued. After a withdrawal that was refunded, and a new consent,
        another one is, under the same id.
        """
        place = task.place
        outbox = Outbox(place.campaign_id, place.scope)
        with self._storage.transaction(write=task.attempt == 1) as transaction:
            device = read_installation(transaction, place.scope)
            receipt = device.receipt(place.campaign_id)
            if receipt is None or not device.enabled or self.consent(device, place) is None:
                return False
            if self.asleep(transaction) or any(outbox.find(transaction, one.id) != one for one in task.reports):
                return False
            is_final = receipt.fate != ledger.WAITING and all(
                outbox.is_logged(transaction, one.id) for one in task.reports
            )
            if task.attempt == 1 and not is_final:
                write_installation(
                    transaction, device.with_receipt(replace(receipt, fate=ledger.ON_ITS_WAY)), place.scope
                )
                outbox.log(transaction, task.reports, self._clock.time())
        return is_final or task.attempt == 1 or self.begin(task._replace(attempt=1))

    def was_withdrawn(self, transaction: Transaction, place: Place) -> bool:
        """See :class:`~ldp_client.delivery.sender.Permits`."""
        receipt = read_installation(transaction, place.scope).receipt(place.campaign_id)
        return receipt is not None and receipt.fate == ledger.DELETED

    def settle(self, transaction: Transaction, place: Place, outcome: Outcome) -> None:
        """See :class:`~ldp_client.delivery.sender.Permits`."""
        device = read_installation(transaction, place.scope)
        receipt = device.receipt(place.campaign_id)
        if receipt is None:
            raise StorageError("storage-corrupt")
        fate = _FATES.get(outcome, ledger.REFUSED)
        write_installation(transaction, device.with_receipt(replace(receipt, fate=fate)), place.scope)

    def _agreed(self, transaction: Transaction, place: Place) -> Consent | None:
        """The consent under which a place's reports may leave now."""
        device = read_installation(transaction, place.scope)
        return self.consent(device, place) if device.enabled else None
