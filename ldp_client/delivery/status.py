"""A device's report about itself: numbers and codes, nothing of a record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ldp_client.delivery.queue import Outbox
from ldp_client.delivery.schedule import Place, wait
from ldp_client.ledger import read_installation, total_up

if TYPE_CHECKING:
    from ldp_client.delivery.install import Install
    from ldp_client.storage.contract import Transaction


@dataclass(frozen=True, slots=True)
class Status:
    """The state of things in one campaign.

    ``consent`` is None until somebody decided. ``sent`` counts the reports that the server says it has; ``dropped`` and
    ``quarantined`` count others by reason. ``next_try`` is in seconds from now. ``problem`` is the code of the last
    failure; ``delivery-not-started`` where something waits and nobody has called ``start()`` or ``run_once()``.
    """

    campaign_id: str
    consent: bool | None = None
    contributed: bool = False
    fate: str | None = None
    queued: int = 0
    queued_bytes: int = 0
    sent: int = 0
    retries: int = 0
    dropped: Mapping[str, int] = field(default_factory=dict)
    quarantined: Mapping[str, int] = field(default_factory=dict)
    next_try: float | None = None
    epsilon: float = 0.0
    total_epsilon: float = 0.0
    running: bool = False
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class DeviceStatus:
    """The same of a whole install; ``campaigns`` are those that somebody decided about."""

    enabled: bool = True
    queued: int = 0
    sent: int = 0
    total_epsilon: float = 0.0
    running: bool = False
    problem: str | None = None
    campaigns: Mapping[str, Status] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """The effect of a withdrawal.

    deleted
        Reports deleted from this device before they were known to have arrived.
    on_its_way
        Those of them that had begun to leave and may arrive: an upload of this process that could not be awaited to its
        end, or an earlier try, here or in another process, whose answer never came.
    refunded
        Privacy loss that is given back, because nothing had begun to leave: the person may agree again.
    """

    deleted: int = 0
    on_its_way: int = 0
    refunded: float = 0.0


def campaign_status(install: Install, transaction: Transaction, place: Place) -> Status:
    """Tell what happened so far in one place. Raises StorageError."""
    device = read_installation(transaction, place.scope)
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
        next_try=None if delivery.schedule is None else wait(delivery, install.clock.time()),
        epsilon=0.0 if receipt is None else receipt.epsilon,
        total_epsilon=total_up(device.receipts),
        running=install.driver.running,
        problem=problem,
    )


def device_status(install: Install, transaction: Transaction, scope: str) -> DeviceStatus:
    """Tell what happened so far in all campaigns of a scope. Raises StorageError."""
    device = read_installation(transaction, scope)
    decided = {
        campaign_id: campaign_status(install, transaction, Place(scope, campaign_id)) for campaign_id in device.consents
    }
    problems = (one.problem for one in decided.values())
    return DeviceStatus(
        enabled=device.enabled,
        queued=sum(one.queued for one in decided.values()),
        sent=sum(one.sent for one in decided.values()),
        total_epsilon=total_up(device.receipts),
        running=install.driver.running,
        problem=install.sender.problem_in(scope) or next(filter(None, problems), None),
        campaigns=decided,
    )
