"""A person's rights towards a device: what left it and what is kept, a switch, and an eraser."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from ldp_client.delivery.queue import Kept, Outbox, outboxes, stored_token
from ldp_client.delivery.schedule import Place
from ldp_client.errors import StorageError
from ldp_client.ledger import read_installation, write_installation
from ldp_client.policy import CLOSE_TIMEOUT
from ldp_client.runtime import seconds_left
from ldp_client.storage.contract import QUEUES, problem_of, scope_prefix
from ldp_client.words import asked, said

if TYPE_CHECKING:
    from ldp_client.delivery.install import Install
    from ldp_client.storage.contract import Storage, Transaction
    from ldp_protocols import Campaign


DIRECT: Final = "sent to the server"


def _sealed(relay: str) -> str:
    """Sealed to the campaign's gateway, by a relay."""
    return f"sealed, by {urlsplit(relay).netloc or 'a relay'}: it saw no answer, and the server no address"


@dataclass(frozen=True)
class SentReport:
    """One report whose upload began. ``asked`` and ``said`` are for people; ``said`` is noise as well as truth, and
    nobody can tell which. Where the campaign's document is no longer at hand, ``said`` is the payload in hexadecimal.

    ``at`` is when it left for the first time. ``reply`` is what the server says: ``arrived``, or the code with which it
    refused the report, which it may have counted all the same; None where no answer has come. In a campaign with a
    gateway ``arrived`` may be the relay's word alone: one that mixes answers before the server has the report. ``way``
    is how it went, for people, with the name of the relay that the device has now.
    """

    campaign_id: str
    title: str
    url: str
    at: float
    asked: str
    said: str
    payload: bytes
    reply: str | None
    way: str


@dataclass(frozen=True)
class QuarantinedReport:
    """One report that a server would not take, with its code."""

    campaign_id: str
    question: int
    code: str
    payload: bytes


def sent_reports(install: Install, scope: str) -> tuple[SentReport, ...]:
    """Tell what left, the earliest first."""
    with install.storage.transaction(write=False) as transaction:
        device = read_installation(transaction, scope)
    sent = []
    for campaign_id, one in _kept(install, scope, Outbox.sent):
        campaign, receipt, payload = _stored(install, campaign_id), device.receipt(campaign_id), one.report.payload
        question = None if campaign is None else campaign.counted[one.report.question]
        consent = device.consents.get(campaign_id)
        sent.append(
            SentReport(
                campaign_id=campaign_id,
                title="" if receipt is None else receipt.title,
                url="" if receipt is None else receipt.url,
                at=one.at,
                asked="" if campaign is None or question is None else asked(campaign, question),
                said=payload.hex() if campaign is None or question is None else said(campaign, question, payload),
                payload=payload,
                reply=one.code or None,
                way=DIRECT if consent is None or not consent.gateway else _sealed(install.permits.relay),
            )
        )
    return tuple(sorted(sent, key=lambda report: report.at))


def quarantined_reports(install: Install, scope: str) -> tuple[QuarantinedReport, ...]:
    """List the reports that a server would not take."""
    return tuple(
        QuarantinedReport(campaign_id, one.report.question, one.code, one.report.payload)
        for campaign_id, one in _kept(install, scope, Outbox.quarantined)
    )


def copy_of(install: Install, scope: str) -> dict[str, Any]:
    """Everything that is kept about the person, except the secret."""
    with install.storage.transaction(write=False) as transaction:
        device = read_installation(transaction, scope)
        queues = [
            (outbox.place.campaign_id, outbox.delivery(transaction), outbox.front(transaction, None))
            for outbox in outboxes(transaction, scope)
        ]
        tokens = {one: stored_token(transaction, Place(scope, one)) for one in device.consents}
    return {
        "enabled": device.enabled,
        "consents": {campaign_id: consent._asdict() for campaign_id, consent in device.consents.items()},
        "receipts": [asdict(receipt) for receipt in device.receipts],
        "waiting": [
            {"campaign_id": campaign_id, "question": one.question, "id": one.id.hex(), "payload": one.payload.hex()}
            for campaign_id, _, reports in queues
            for one in reports
        ],
        "sent": [{**asdict(one), "payload": one.payload.hex()} for one in sent_reports(install, scope)],
        "quarantined": [{**asdict(one), "payload": one.payload.hex()} for one in quarantined_reports(install, scope)],
        "tokens": {campaign_id: token.hex() for campaign_id, token in tokens.items() if token is not None},
        "delivery": {
            campaign_id: {name: value for name, value in asdict(delivery).items() if name != "schedule"}
            for campaign_id, delivery, _ in queues
        },
    }


def switch(install: Install, scope: str, enabled: bool) -> None:
    """Answer and send, or do neither. Raises StorageError."""
    with install.storage.transaction(write=True) as transaction:
        device = read_installation(transaction, scope)
        write_installation(transaction, replace(device, enabled=bool(enabled)), scope)
        for outbox in outboxes(transaction, scope) if scope else ():
            outbox.pause(transaction, paused=not enabled)
    if not enabled:
        _stop(install, scope)
    install.driver.wake()


def erase(install: Install, scope: str) -> None:
    """Delete what is kept of a scope; for the scope "" everything, with what was fetched, also what cannot be read any
    more. Raises StorageError.
    """
    _clear(install.storage, scope)
    if (flying := _stop(install, scope)) is not None:
        install.sender.flight.await_landing(flying, seconds_left(CLOSE_TIMEOUT))
    if not scope:
        _clear(install.cached, scope)
        if install.marker is not None:
            try:
                install.marker.delete()
            except OSError as error:
                raise StorageError(problem_of(error)) from error


def _clear(storage: Storage, scope: str) -> None:
    try:
        with storage.transaction(write=True) as transaction:
            # By their keys alone: a damaged value is no reason to keep it.
            queues = [key for key, _ in transaction.items(QUEUES) if key.split("/")[2:3] == [scope]]
            for key in [*queues, *(key for key, _ in transaction.items(scope_prefix(scope)))]:
                transaction.delete(key)
    except StorageError as error:
        discard = getattr(storage, "discard", None)
        if scope or discard is None or error.code == "storage-busy":
            raise
        discard()


def _kept(
    install: Install, scope: str, of: Callable[[Outbox, Transaction], tuple[Kept, ...]]
) -> Iterator[tuple[str, Kept]]:
    with install.storage.transaction(write=False) as transaction:
        queues = [(one.place.campaign_id, of(one, transaction)) for one in outboxes(transaction, scope)]
    for campaign_id, all_kept in queues:
        for reports in all_kept:
            yield campaign_id, reports


def _stored(install: Install, campaign_id: str) -> Campaign | None:
    """The campaign as it is stored."""
    from ldp_client.network.aggregator import read_campaign
    from ldp_protocols import DocumentError

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
