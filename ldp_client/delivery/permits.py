"""Permits on a device: who may send what to whom (whoever agreed, what is queued now, the URL that was agreed to)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from ldp_client.delivery.machine import Outcome, Place, Send
from ldp_client.delivery.queue import Outbox
from ldp_client.errors import ConfigurationError, StorageError, TransportError
from ldp_client.ledger import (
    ARRIVED,
    DELETED,
    EXPIRED,
    ON_ITS_WAY,
    REFUSED,
    WAITING,
    Consent,
    Installation,
    read_installation,
    write_installation,
)
from ldp_client.policy import Policy
from ldp_client.runtime import Clock

if TYPE_CHECKING:
    from ldp_client.network.aggregator import Aggregator
    from ldp_client.network.transport import Transport
    from ldp_client.storage.contract import Storage, Transaction

Headers = Callable[[bytes], Mapping[str, str]]
"""More headers for the upload of these bytes, asked for anew at every attempt: a token, an attestation."""

_FATES = {Outcome.ARRIVED: ARRIVED, Outcome.EXPIRED: EXPIRED}


class Permits(Protocol):
    """Say who may send what to whom."""

    def asleep(self, transaction: Transaction) -> bool:
        """Return true where nothing at all is to be sent."""

    def may_leave(self, transaction: Transaction, place: Place) -> bool:
        """Return true where the reports of a place may be sent at all."""

    def aggregator(self, transaction: Transaction, place: Place) -> Aggregator | None:
        """Return the aggregator that the reports of a place go to; None where they may not leave.

        Raises TransportError where the address cannot be used.
        """

    def begin(self, task: Send) -> bool:
        """Called right before the first byte of an upload leaves, and made durable: from now on it counts as on its
        way, and is in the person's log. False where it may not begin.
        """

    def was_withdrawn(self, transaction: Transaction, place: Place) -> bool:
        """Return true where reports of the place were deleted while they were on their way."""

    def settle(self, transaction: Transaction, place: Place, outcome: Outcome) -> None:
        """The queue of a place has become empty, the last of it with this outcome."""


class DevicePermits:
    """The consents of a device and its scopes, as the sender asks for them."""

    def __init__(
        self, storage: Storage, transport: Transport, clock: Clock, policy: Policy, headers: Headers | None
    ) -> None:
        self._storage = storage
        self._transport = transport
        self._clock = clock
        self._policy = policy
        self._headers = headers
        self.revoked: dict[Place, float] = {}
        """Withdrawals that could not be stored, by the clock; they hold in this process until a later consent."""

    def consent(self, device: Installation | None, place: Place) -> Consent | None:
        """The consent that holds, as far as this process knows."""
        consent = None if device is None else device.consent(place.campaign_id)
        if consent is None or consent.granted_at is None:
            return None
        return consent if consent.granted_at > self.revoked.get(place, float("-inf")) else None

    def asleep(self, transaction: Transaction) -> bool:
        """See :class:`Permits`."""
        device = read_installation(transaction)
        return device is not None and not device.enabled

    def may_leave(self, transaction: Transaction, place: Place) -> bool:
        """See :class:`Permits`."""
        return self._agreed(transaction, place) is not None

    def aggregator(self, transaction: Transaction, place: Place) -> Aggregator | None:
        """See :class:`Permits`."""
        from ldp_client.network.aggregator import Aggregator

        consent = self._agreed(transaction, place)
        if consent is None:
            return None
        try:
            return Aggregator(
                consent.url, place.campaign_id, self._transport, self._clock, self._policy, headers=self._headers
            )
        except ConfigurationError as error:
            # It was agreed to under a looser policy. It is this campaign's trouble alone: the others' reports go on.
            raise TransportError(error.code) from None

    def begin(self, task: Send) -> bool:
        """See :class:`Permits`.

        Safety: it must be this very answer that is queued. After a withdrawal that was refunded, and a new consent,
        another one is, under the same id.
        """
        place = task.place
        outbox = Outbox(place.campaign_id, place.scope)
        with self._storage.transaction(write=task.attempt == 1) as transaction:
            device = read_installation(transaction, place.scope)
            receipt = None if device is None else device.receipt(place.campaign_id)
            if device is None or receipt is None or not device.enabled or self.consent(device, place) is None:
                return False
            if self.asleep(transaction) or any(outbox.find(transaction, one.id) != one for one in task.reports):
                return False
            known = receipt.fate != WAITING and all(outbox.is_logged(transaction, one.id) for one in task.reports)
            if task.attempt == 1 and not known:
                write_installation(transaction, device.with_receipt(replace(receipt, fate=ON_ITS_WAY)), place.scope)
                outbox.log(transaction, task.reports, self._clock.time())
        return known or task.attempt == 1 or self.begin(task._replace(attempt=1))

    def was_withdrawn(self, transaction: Transaction, place: Place) -> bool:
        """See :class:`Permits`."""
        device = read_installation(transaction, place.scope)
        receipt = None if device is None else device.receipt(place.campaign_id)
        return receipt is not None and receipt.fate == DELETED

    def settle(self, transaction: Transaction, place: Place, outcome: Outcome) -> None:
        """See :class:`Permits`."""
        device = read_installation(transaction, place.scope)
        receipt = None if device is None else device.receipt(place.campaign_id)
        if device is None or receipt is None:
            raise StorageError("storage-corrupt")
        fate = _FATES.get(outcome, REFUSED)
        write_installation(transaction, device.with_receipt(replace(receipt, fate=fate)), place.scope)

    def _agreed(self, transaction: Transaction, place: Place) -> Consent | None:
        """The consent under which a place's reports may leave now."""
        device = read_installation(transaction, place.scope)
        return None if device is None or not device.enabled else self.consent(device, place)
