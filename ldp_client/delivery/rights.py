"""What a person may ask of a device: what left it and what is kept, a switch, and an eraser."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ldp_client.delivery.queue import Kept, Outbox, outboxes
from ldp_client.ledger.installation import Installation, read_installation, write_installation
from ldp_client.ledger.receipts import find
from ldp_client.ledger.sent import QuarantinedReport, SentReport, asked, said
from ldp_client.runtime import seconds_left
from ldp_client.storage.scoped import scope_prefix
from protocols.light import replace

if TYPE_CHECKING:
    from ldp_client.delivery.install import Install
    from ldp_client.delivery.machine import Place
    from ldp_client.storage.contract import Transaction
    from protocols import Campaign


def sent_reports(install: Install, scope: str) -> tuple[SentReport, ...]:
    """What left, the earliest first."""
    with install.storage.transaction(write=False) as transaction:
        receipts = (read_installation(transaction, scope) or Installation()).receipts
    told = []
    for campaign_id, kept in _kept(install, scope, Outbox.sent):
        campaign, receipt, payload = _stored(install, campaign_id), find(receipts, campaign_id), kept.report.payload
        question = None if campaign is None else campaign.questions[kept.report.question]
        told.append(
            SentReport(
                campaign_id=campaign_id,
                title="" if receipt is None else receipt.title,
                url="" if receipt is None else receipt.url,
                at=kept.at,
                asked="" if campaign is None or question is None else asked(campaign, question),
                said=payload.hex() if campaign is None or question is None else said(campaign, question, payload),
                payload=payload,
                reply=kept.code or None,
            )
        )
    return tuple(sorted(told, key=lambda one: one.at))


def quarantined_reports(install: Install, scope: str) -> tuple[QuarantinedReport, ...]:
    """What a server would not take."""
    return tuple(
        QuarantinedReport(campaign_id, kept.report.question, kept.code, kept.report.payload)
        for campaign_id, kept in _kept(install, scope, Outbox.quarantined)
    )


def copy_of(install: Install, scope: str) -> dict[str, Any]:
    """Everything that is kept about the person, except the secret."""
    with install.storage.transaction(write=False) as transaction:
        device = read_installation(transaction, scope) or Installation()
        queues = [
            (outbox.place.campaign_id, outbox.delivery(transaction), outbox.front(transaction, None))
            for outbox in outboxes(transaction, scope)
        ]
    return {
        "enabled": device.enabled,
        "consents": {campaign_id: asdict(consent) for campaign_id, consent in device.consents.items()},
        "receipts": [asdict(receipt) for receipt in device.receipts],
        "waiting": [
            {"campaign_id": campaign_id, "question": one.question, "id": one.id.hex(), "payload": one.payload.hex()}
            for campaign_id, _, reports in queues
            for one in reports
        ],
        "sent": [{**asdict(one), "payload": one.payload.hex()} for one in sent_reports(install, scope)],
        "quarantined": [{**asdict(one), "payload": one.payload.hex()} for one in quarantined_reports(install, scope)],
        "delivery": {
            campaign_id: {name: value for name, value in asdict(delivery).items() if name != "schedule"}
            for campaign_id, delivery, _ in queues
        },
    }


def switch(install: Install, scope: str, enabled: bool) -> None:
    """Answer and send, or do neither. Raises StorageError."""
    with install.storage.transaction(write=True) as transaction:
        device = read_installation(transaction, scope) or Installation()
        write_installation(transaction, replace(device, enabled=bool(enabled)), scope)
        for outbox in outboxes(transaction, scope) if scope else ():
            outbox.pause(transaction, paused=not enabled)
    if not enabled:
        _stop(install, scope)
    install.driver.wake()


def erase(install: Install, scope: str) -> None:
    """Delete what is kept of a scope; for the scope "" everything, with what was fetched. Raises StorageError."""
    with install.storage.transaction(write=True) as transaction:
        for outbox in outboxes(transaction, scope):
            outbox.clear(transaction)
        for key, _ in transaction.items(scope_prefix(scope)):
            transaction.delete(key)
    if (flying := _stop(install, scope)) is not None:
        install.sender.flight.await_landing(flying, seconds_left(install.policy.close_timeout))
    if not scope:
        with install.cached.transaction(write=True) as transaction:
            for key, _ in transaction.items(""):
                transaction.delete(key)
        if install.marker is not None:
            install.marker.delete()


def _kept(
    install: Install, scope: str, of: Callable[[Outbox, Transaction], tuple[Kept, ...]]
) -> Iterator[tuple[str, Kept]]:
    with install.storage.transaction(write=False) as transaction:
        queues = [(one.place.campaign_id, of(one, transaction)) for one in outboxes(transaction, scope)]
    for campaign_id, all_kept in queues:
        for kept in all_kept:
            yield campaign_id, kept


def _stored(install: Install, campaign_id: str) -> Campaign | None:
    """The campaign as it is stored."""
    from ldp_client.network.aggregator import read_campaign
    from protocols import DocumentError

    document = install.cache.get(f"campaign/{campaign_id}")
    try:
        return None if document is None else read_campaign(document, campaign_id)
    except DocumentError:
        return None


def _stop(install: Install, scope: str) -> Place | None:
    """Stop what is under way of this scope, of "" of any; the place of what could not be stopped."""
    flight = install.sender.flight
    flying = flight.place
    if flying is None or (scope and flying.scope != scope):
        return None
    return None if flight.cancel(flying) else flying
