"""What an install's campaigns and scopes share, and what it tells about each of them."""

from __future__ import annotations

import contextlib
from collections.abc import Collection

from ldp_client.delivery.machine import REPORT_OVERHEAD, At, Delivery, Due, Place
from ldp_client.delivery.queue import Outbox
from ldp_client.errors import RefusedError, StorageError
from ldp_client.ledger.installation import Installation, read_installation
from ldp_client.ledger.receipts import total_up
from ldp_client.status import DeviceStatus, Status
from ldp_client.storage.checksummed import pack, unpack
from ldp_client.storage.contract import MARK, Transaction
from ldp_client.storage.marker import new_mark
from protocols.light import TYPE_CHECKING, frozen

if TYPE_CHECKING:
    from ldp_client.delivery.background import BackgroundDriver
    from ldp_client.delivery.permits import DevicePermits
    from ldp_client.delivery.sender import Sender
    from ldp_client.network.aggregator import Aggregator
    from ldp_client.network.cache import Cache
    from ldp_client.network.transport import Transport
    from ldp_client.policy import Policy
    from ldp_client.runtime import Clock
    from ldp_client.storage.contract import Storage
    from ldp_client.storage.marker import Marker
    from protocols import Campaign, Coins


@frozen
class Install:
    """What an install's campaigns and scopes share. Storage and sender are those of all scopes."""

    storage: Storage
    cached: Storage
    cache: Cache
    marker: Marker | None
    transport: Transport
    clock: Clock
    coins: Coins | None
    policy: Policy
    permits: DevicePermits
    sender: Sender
    driver: BackgroundDriver

    def aggregator(self, url: str, campaign_id: str, publisher: str | Collection[str] | None) -> Aggregator:
        """The aggregator of a campaign, believed as far as ``publisher`` signs; None believes it. Raises
        ConfigurationError.
        """
        where = (url, campaign_id, self.transport, self.clock, self.policy)
        if publisher is None:
            from ldp_client.network.aggregator import Aggregator

            return Aggregator(*where)
        from ldp_client.network.publisher import SignedAggregator

        return SignedAggregator(*where, keys=publisher, storage=self.storage)

    def refuse_copies(self, transaction: Transaction) -> bytes | None:
        """The mark of the storage's state, None where it has none yet. Raises RefusedError for a copy."""
        stored = None if self.marker is None else transaction.get(MARK)
        if self.marker is None or stored is None:
            return None
        mark: bytes = unpack(MARK, stored)
        try:
            held = self.marker.holds(mark)
        except OSError as error:
            raise _marker_problem(error) from None
        if not held:
            raise RefusedError(
                "copied-storage",
                "the storage file is a copy, or was restored from a backup: what it was copied from may have answered. "
                "If it was moved and is the only one, call Device.adopt()",
            )
        return mark

    def mark(self, transaction: Transaction, before: bytes | None) -> bytes | None:
        """Give the storage's new state a mark, valid beside the former one until :meth:`settle_mark`."""
        if self.marker is None:
            return None
        mark = new_mark()
        try:
            self.marker.write(*(one for one in (before, mark) if one is not None))
        except OSError as error:
            raise _marker_problem(error) from None
        transaction.put(MARK, pack(MARK, mark))
        return mark

    def settle_mark(self, mark: bytes | None) -> None:
        """The transaction of :meth:`mark` is on disk: the former state is history."""
        if self.marker is not None and mark is not None:
            # One that fails leaves both valid, and the next contribution repairs it.
            with contextlib.suppress(OSError):
                self.marker.write(mark, durable=False)


def campaign_status(install: Install, transaction: Transaction, place: Place) -> Status:
    """What happened so far in one place. Raises StorageError."""
    device = read_installation(transaction, place.scope) or Installation()
    delivery = Outbox(place.campaign_id, place.scope).delivery(transaction)
    receipt = device.receipt(place.campaign_id)
    decided = place.campaign_id in device.consents
    consent = install.permits.consent(device, place) is not None
    problem = install.sender.problem_of(place)
    if problem is None and delivery.queued and not install.sender.used:
        problem = "delivery-not-started"
    return Status(
        campaign_id=place.campaign_id,
        consent=consent if decided or place in install.permits.revoked else None,
        contributed=receipt is not None,
        fate=None if receipt is None else receipt.fate,
        queued=delivery.queued,
        queued_bytes=delivery.queued_bytes,
        sent=delivery.sent,
        retries=delivery.retries,
        dropped=delivery.dropped,
        quarantined=delivery.quarantined,
        next_try=_next_try(delivery, install.clock.time()),
        epsilon=0.0 if receipt is None else receipt.epsilon,
        total_epsilon=total_up(device.receipts),
        running=install.driver.running,
        problem=problem,
    )


def device_status(install: Install, transaction: Transaction, scope: str) -> DeviceStatus:
    """What happened so far in all campaigns of a scope. Raises StorageError."""
    device = read_installation(transaction, scope) or Installation()
    decided = {
        campaign_id: campaign_status(install, transaction, Place(scope, campaign_id)) for campaign_id in device.consents
    }
    problems = [one.problem for one in decided.values() if one.problem is not None]
    return DeviceStatus(
        enabled=device.enabled,
        queued=sum(one.queued for one in decided.values()),
        sent=sum(one.sent for one in decided.values()),
        total_epsilon=total_up(device.receipts),
        running=install.driver.running,
        problem=install.sender.problem or (problems[0] if problems else None),
        campaigns=decided,
    )


def _next_try(delivery: Delivery, now: float) -> float | None:
    if isinstance(delivery.schedule, At):
        return max(0.0, delivery.schedule.time - now)
    return 0.0 if isinstance(delivery.schedule, Due) else None


def room_for(campaign: Campaign) -> tuple[int, int]:
    """Reports that one contribution queues, and their bytes at most."""
    widest = [max(question.mechanism.width for question in group) for group in campaign.groups]
    widths = widest if campaign.privacy.answers == "all" else [max(widest)]
    return len(widths), sum(width + REPORT_OVERHEAD for width in widths)


def expiry(campaign: Campaign, now: float, policy: Policy) -> float:
    aged = now + policy.report_age
    return aged if campaign.closes is None else min(aged, campaign.closes.timestamp() + policy.closing_grace)


def _marker_problem(error: OSError) -> StorageError:
    return StorageError("storage-read-only" if isinstance(error, PermissionError) else "storage-unavailable")
