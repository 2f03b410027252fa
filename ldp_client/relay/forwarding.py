"""The queue of a gateway at the edge: collects the uploads of many devices and forwards them in merged blocks.

It keeps what it forwards, until the aggregator has it, and nothing else; ids and payloads pass through unchanged, so a
report that arrives twice (from the device, from the relay, or both) is counted once. An upload is acknowledged when it
is on disk.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ldp_client.delivery.events import OnEvent
from ldp_client.delivery.machine import REPORT_OVERHEAD, Delivery, Outcome, Place, Send
from ldp_client.delivery.queue import Outbox
from ldp_client.delivery.sender import Sender
from ldp_client.network.aggregator import Aggregator, check_campaign_id, read_campaign
from ldp_client.network.shared import SHARED_TRANSPORT
from ldp_client.network.transport import Transport
from ldp_client.policy import DEFAULT_POLICY, Policy
from ldp_client.runtime.clock import SYSTEM_CLOCK, Clock
from ldp_client.storage.contract import Storage, Transaction
from ldp_client.storage.location import open_storage
from ldp_client.storage.scoped import ScopedStorage
from protocols import Campaign, PayloadError, Report, decode_upload
from protocols.wire.reports import ID_BYTES

if TYPE_CHECKING:
    from ldp_client.delivery.background import BackgroundDriver

RELAY_POLICY: Final = replace(DEFAULT_POLICY, first_delay=10.0)
"""As for a device, but a queue that was empty is forwarded within ten seconds of its first report."""

CONFLICTING: Final = "conflicting-report"
"""The id is queued already, with another answer: a device answers once."""


class _RelayPermits:
    """A relay forwards whatever it was given, and keeps nothing of it."""

    log = False

    def __init__(self, aggregator: Aggregator) -> None:
        self._aggregator = aggregator

    def asleep(self, transaction: Transaction) -> bool:
        return False

    def aggregator(self, transaction: Transaction, place: Place) -> Aggregator:
        return self._aggregator

    def begin(self, task: Send) -> bool:
        return True

    def was_withdrawn(self, transaction: Transaction, place: Place) -> bool:
        return False

    def settle(self, transaction: Transaction, place: Place, outcome: Outcome) -> None:
        """There is no ledger of others' reports."""


class Relay:
    """Forwards the reports of one campaign. Safe with several threads and processes on one storage.

    Parameters
    ----------
    url, campaign_id, transport, clock, on_event
        As for a :class:`ldp_client.Client`.
    storage
        As for a Client; the relay keeps to a scope of its own.
    policy
        Its quotas bound the queue.
    token
        A token of scope ``relay``, where the aggregator asks for one.
    """

    def __init__(
        self,
        url: str,
        campaign_id: str,
        *,
        storage: str | os.PathLike[str] | Storage,
        transport: Transport | None = None,
        clock: Clock | None = None,
        policy: Policy = RELAY_POLICY,
        token: str | None = None,
        on_event: OnEvent | None = None,
    ) -> None:
        self.policy = policy
        self.campaign_id = check_campaign_id(campaign_id)
        clock = SYSTEM_CLOCK if clock is None else clock
        shown = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._server = Aggregator(
            url, campaign_id, transport or SHARED_TRANSPORT, clock, policy, headers=lambda _: shown
        )
        self._storage = ScopedStorage(open_storage(storage), "relay")
        self._outbox = Outbox(campaign_id)
        permits = _RelayPermits(self._server)
        self._sender = Sender(self._storage, permits, clock=clock, policy=policy, on_event=on_event)
        self._campaign: Campaign | None = None
        self._driver: BackgroundDriver | None = None

    def campaign(self) -> Campaign:
        """The verified campaign, from the storage or fetched. Raises what :meth:`Client.campaign` raises."""
        if self._campaign is None:
            key = f"campaign/{self.campaign_id}"
            with self._storage.transaction(write=False) as transaction:
                stored = transaction.get(key)
            document = self._server.campaign() if stored is None else stored
            self._campaign = read_campaign(document, self.campaign_id)
            if stored is None:
                with self._storage.transaction(write=True) as transaction:
                    transaction.put(key, document)
        return self._campaign

    def model(self) -> bytes:
        """The aggregator's model as it stands, for a device behind the relay."""
        return self._server.model(None) or b""

    def collect(self, upload: bytes) -> dict[str, str]:
        """Queue the reports of an upload, durably; returns the refused ones, ``{id in hexadecimal: code}``.

        A report that is queued already is a success. Raises UploadError, QuotaError or StorageError; nothing of the
        upload is then queued.
        """
        reports, refused = _read(upload, self.campaign())
        with self._storage.transaction(write=True) as transaction:
            fresh: dict[bytes, Report] = {}
            for report in reports:
                known = fresh.get(report.id) or self._outbox.find(transaction, report.id)
                if known is None:
                    fresh[report.id] = report
                elif known != report:
                    refused[report.id.hex()] = CONFLICTING
            size = sum(len(report.payload) + REPORT_OVERHEAD for report in fresh.values())
            self._outbox.check_room(transaction, len(fresh), size, self.policy)
            self._outbox.put(transaction, tuple(fresh.values()))
        if self._driver is not None:
            self._driver.wake()
        return refused

    def run_once(self, deadline: float, *, first_delay: float = 0.0) -> bool:
        """Forward within ``deadline`` seconds; True when nothing is left. Never raises."""
        return self._sender.run_once(deadline, first_delay=first_delay)

    def start(self, *, first_delay: float | None = None) -> None:
        """Forward from a background thread; ``first_delay`` (None: the policy's) is how long uploads may gather."""
        if self._driver is None:
            from ldp_client.delivery.background import BackgroundDriver

            self._driver = BackgroundDriver(self._sender)
        self._driver.start(self.policy.first_delay if first_delay is None else first_delay)

    def close(self, timeout: float | None = None) -> None:
        """Stop the background thread; what is queued stays queued."""
        if self._driver is not None:
            self._driver.close(self.policy.close_timeout if timeout is None else timeout)

    def delivery(self) -> Delivery:
        """What is queued, sent, dropped. Raises StorageError."""
        with self._storage.transaction(write=False) as transaction:
            return self._outbox.delivery(transaction)

    @property
    def problem(self) -> str | None:
        """The code of the last failure to forward, None once it went well again."""
        return self._sender.problem


def _read(upload: bytes, campaign: Campaign) -> tuple[list[Report], dict[str, str]]:
    """The reports that a device can have sent, and the others with their codes."""
    reports, refused = [], {}
    for block in decode_upload(upload, campaign):
        mechanism = campaign.questions[block.question].mechanism
        width = mechanism.width
        for position in range(block.count):
            identifier = block.ids[position * ID_BYTES : (position + 1) * ID_BYTES]
            payload = block.payloads[position * width : (position + 1) * width]
            try:
                mechanism.check(payload)
            except PayloadError as error:
                refused[identifier.hex()] = error.code
            else:
                reports.append(Report(block.question, identifier, payload))
    return reports, refused
