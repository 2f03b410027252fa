"""The client an app embeds: consent, one contribution per campaign, delivery, and classification on the device."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from ldp_client.answering import perturb
from ldp_client.classifier import Classifier
from ldp_client.delivery.machine import REPORT_OVERHEAD, Send, Task
from ldp_client.delivery.queue import Outbox
from ldp_client.delivery.sender import Event, Sender
from ldp_client.errors import ConsentError, StorageError, TransportError
from ldp_client.ledger.installation import Installation, read_installation, write_installation
from ldp_client.ledger.receipts import Caps, Ledger, Receipt
from ldp_client.network.aggregator import Aggregator, check_campaign_id, read_campaign
from ldp_client.network.cache import Cache
from ldp_client.network.device_model import DeviceModel
from ldp_client.network.shared import SHARED_TRANSPORT
from ldp_client.network.transport import Request, Response, Transport
from ldp_client.policy import DEFAULT_POLICY, Policy
from ldp_client.runtime.clock import SYSTEM_CLOCK, Clock
from ldp_client.runtime.fork import ForkSafeLock
from ldp_client.status import Status
from ldp_client.storage.contract import Storage, Transaction
from ldp_client.storage.location import open_cache, open_storage
from protocols import SYSTEM_COINS, Campaign, Coins, DocumentError, Report
from protocols.document.schema import Label

if TYPE_CHECKING:
    from ldp_client.delivery.background import BackgroundDriver


class Client:
    """One device (or one user of a backend) in one campaign.

    Making one touches neither network nor disk and starts no thread. Nothing is contributed before :meth:`grant`.
    Thread-safe, fork-safe, and safe with several processes on one storage file.

    Parameters
    ----------
    url
        The aggregator's base URL: https, or plain http on loopback.
    campaign_id
        Which campaign; the document is verified to have this very hash.
    storage
        A file path, ``":memory:"``, or an object with the methods of :class:`ldp_client.storage.contract.Storage`.
        Campaigns that share a storage share its ledger, and their total is held to ``max_total_epsilon``.
    max_epsilon, max_total_epsilon
        Hard caps on the privacy loss: of this campaign, and over the life of the install.
    transport
        How requests are made; None takes one of the standard library's, shared by the clients of this process.
    clock
        Anything like the module ``time``.
    coins
        The randomness of answers; anything but None is for tests and simulations.
    policy
        All limits, see :class:`ldp_client.policy.Policy`.
    on_event
        Called with an :class:`ldp_client.delivery.sender.Event` from whichever thread delivers.
    """

    def __init__(
        self,
        url: str,
        campaign_id: str,
        *,
        storage: str | os.PathLike[str] | Storage,
        max_epsilon: float,
        max_total_epsilon: float,
        transport: Transport | None = None,
        clock: Clock | None = None,
        coins: Coins | None = None,
        policy: Policy = DEFAULT_POLICY,
        on_event: Callable[[Event], None] | None = None,
    ) -> None:
        self.policy = policy
        self.campaign_id = check_campaign_id(campaign_id)
        self._caps = Caps(max_epsilon, max_total_epsilon)
        self._storage = open_storage(storage)
        self._clock = SYSTEM_CLOCK if clock is None else clock
        self._coins = SYSTEM_COINS if coins is None else coins
        self._outbox = Outbox(campaign_id)
        self._server = Aggregator(url, campaign_id, transport or SHARED_TRANSPORT, self._clock, policy)
        self._sender = Sender(
            self._server,
            self._outbox,
            self._storage,
            may_send=self._may_send,
            clock=self._clock,
            policy=policy,
            on_event=on_event,
        )
        self._cache = Cache(open_cache(storage), self._note)
        self._model = DeviceModel(campaign_id, self._server, self._cache)
        self._campaign: Campaign | None = None
        self._withdrawn = False
        self._unsaved: tuple[Report, ...] | None = None
        self._driver: BackgroundDriver | None = None
        self._contributing = ForkSafeLock()

    # Consent

    def grant(self) -> None:
        """The person has agreed to this campaign. Raises StorageError where that cannot be kept."""
        with self._storage.transaction(write=True) as transaction:
            device = read_installation(transaction) or Installation.make()
            if not device.consented(self.campaign_id):
                write_installation(transaction, device.with_consent(self.campaign_id, given=True))
        self._withdrawn = False

    def withdraw(self) -> None:
        """The person no longer agrees: unsent reports are deleted, and nothing further is sent, now or after a restart.

        What was spent stays in the ledger. Takes effect in this process even where StorageError is raised because the
        decision could not be kept.
        """
        self._withdrawn = True
        self._unsaved = None
        with self._storage.transaction(write=True) as transaction:
            device = read_installation(transaction) or Installation.make()
            write_installation(transaction, device.with_consent(self.campaign_id, given=False))
            self._outbox.clear(transaction)

    @property
    def consented(self) -> bool:
        """Whether the person agrees as things stand; False by default, and where the storage cannot tell."""
        return bool(self.status().consent)

    # Contributing

    def campaign(self) -> Campaign:
        """The verified campaign: from memory, from the storage, or fetched.

        Raises DocumentError for a document that is not what its id and its own epsilon promise, ServerError or
        TransportError where it cannot be had.
        """
        if self._campaign is None:
            stored = self._cache.get(f"campaign/{self.campaign_id}")
            # A stored document that was damaged is fetched again.
            with contextlib.suppress(DocumentError):
                self._campaign = None if stored is None else read_campaign(stored, self.campaign_id)
        return self._campaign or self.load_campaign(self._server.campaign())

    def load_campaign(self, document: bytes) -> Campaign:
        """Take a campaign's document from the app itself instead of fetching it; verified the same way."""
        self._campaign = campaign = read_campaign(document, self.campaign_id)
        self._cache.put(f"campaign/{self.campaign_id}", campaign.document)
        return campaign

    def contribute(self, record: Mapping[str, object], label: object) -> Receipt:
        """Answer the campaign, once. The report is on disk before this returns, and before it is first sent.

        A second call returns the first receipt and spends nothing, whatever the record now says. Raises ConsentError,
        RefusedError, RecordError or QuotaError, in each case before anything is drawn; StorageError; and what
        :meth:`campaign` raises.
        """
        device = self._device()
        self._check_consent(device)
        known = None if device is None else device.receipt(self.campaign_id)
        if known is not None:
            return known
        campaign = self.campaign()
        with self._contributing, self._storage.transaction(write=True) as transaction:
            receipt = self._contribute(transaction, campaign, record, label)
        self._unsaved = None
        if self._driver is not None:
            self._driver.wake()
        return receipt

    def _contribute(
        self, transaction: Transaction, campaign: Campaign, record: Mapping[str, object], label: object
    ) -> Receipt:
        device = read_installation(transaction)
        self._check_consent(device)
        if device is None:
            raise AssertionError("a device that consented is stored")
        known = device.receipt(campaign.id)
        if known is not None:
            return known
        device.check(campaign, self._caps)
        # A commit may fail after the coins have fallen. What they gave is kept and stored at the next call, so that a
        # full disk does not get a second answer out of the same record.
        if self._unsaved is None:
            # A storage that cannot be written says so now, before the record is read.
            write_installation(transaction, device)
            count, size = _room_for(campaign)
            self._outbox.check_room(transaction, count, size, self.policy)
            self._unsaved = perturb(campaign, record, label, secret=device.secret, coins=self._coins)
        reports = self._unsaved
        receipt = Receipt(
            campaign_id=campaign.id,
            title=campaign.title,
            study=campaign.study,
            epsilon=campaign.realised_epsilon,
            questions=tuple(report.question for report in reports),
            at=self._clock.time(),
        )
        write_installation(transaction, device.with_receipt(receipt))
        self._outbox.put(transaction, reports)
        return receipt

    def receipt(self) -> Receipt | None:
        """What this device has contributed to the campaign."""
        return self.ledger().receipt(self.campaign_id)

    def ledger(self) -> Ledger:
        """What this install has spent in all campaigns of its storage; ``str()`` of it is for the user."""
        device = self._device()
        return Ledger(() if device is None else device.receipts, self._caps)

    # Delivery

    def next_task(self, first_delay: float = 0.0) -> Task:
        """For an app that does its own network I/O: Send, Wait or Idle. Never raises."""
        return self._sender.next_task(first_delay)

    def request(self, task: Send) -> Request:
        """The HTTP request that carries out a task."""
        return self._sender.request(task)

    def exchange(self, task: Send, timeout: float) -> Response | TransportError:
        """Carry out a task with the client's transport. Never raises."""
        return self._sender.exchange(task, timeout)

    def on_result(self, task: Send, answer: Response | TransportError) -> None:
        """What came back for a task: the answer, or that there was none. Never raises."""
        self._sender.on_result(task, answer)

    def run_once(self, deadline: float, *, first_delay: float = 0.0) -> bool:
        """Deliver within ``deadline`` seconds, in the calling thread; True when nothing is left to send. Never raises.

        ``first_delay`` spreads the first send at random; a host that chooses the moment itself leaves it 0.
        """
        return self._sender.run_once(deadline, first_delay=first_delay)

    def start(self, *, first_delay: float | None = None) -> None:
        """Deliver from a background thread from now on; ``first_delay`` None takes the policy's."""
        if self._driver is None:
            from ldp_client.delivery.background import BackgroundDriver

            self._driver = BackgroundDriver(self._sender)
        self._driver.start(self.policy.first_delay if first_delay is None else first_delay)

    def close(self, timeout: float | None = None) -> None:
        """Stop the background thread, waiting at most ``timeout`` seconds for a send under way. Unsent reports stay
        queued for the next start.
        """
        if self._driver is not None:
            self._driver.close(self.policy.close_timeout if timeout is None else timeout)

    def status(self) -> Status:
        """What happened so far. Never raises; a storage that fails is the ``problem``."""
        running = self._driver is not None and self._driver.running
        try:
            with self._storage.transaction(write=False) as transaction:
                device = read_installation(transaction)
                delivery = self._outbox.delivery(transaction)
        except StorageError as error:
            return Status(self.campaign_id, running=running, problem=error.code)
        ledger = Ledger(() if device is None else device.receipts, self._caps)
        receipt = ledger.receipt(self.campaign_id)
        consent = None if device is None else device.consents.get(self.campaign_id)
        scheduled = delivery.not_before
        return Status(
            campaign_id=self.campaign_id,
            consent=False if self._withdrawn else consent,
            contributed=receipt is not None,
            queued=delivery.queued,
            queued_bytes=delivery.queued_bytes,
            sent=delivery.sent,
            retries=delivery.retries,
            dropped=delivery.dropped,
            quarantined=delivery.quarantined,
            next_try=None if scheduled is None else max(0.0, scheduled - self._clock.time()),
            epsilon=0.0 if receipt is None else receipt.epsilon,
            total_epsilon=ledger.total_epsilon,
            running=running,
            problem=self._sender.problem,
        )

    # Classifying

    def refresh_model(self) -> bool:
        """Ask for the model, unless it is still the one at hand; True where there is a new one.

        Raises ModelUnavailableError, ModelError, ServerError or TransportError; a model at hand is then kept.
        """
        return self._model.refresh(self._label)

    def classifier(self) -> Classifier:
        """The model at hand, from memory or storage; fetched where there is none."""
        return self._model.classifier(self._label)

    def predict(self, record: Mapping[str, object]) -> str:
        """The most probable class of a record, on this device."""
        return self.classifier().predict(record)

    def predict_proba(self, record: Mapping[str, object]) -> dict[str, float]:
        """The probability of every class, on this device."""
        return self.classifier().predict_proba(record)

    # Inside

    def _may_send(self, transaction: Transaction) -> bool:
        device = None if self._withdrawn else read_installation(transaction)
        return device is not None and device.consented(self.campaign_id)

    def _check_consent(self, device: Installation | None) -> None:
        if self._withdrawn or device is None or not device.consented(self.campaign_id):
            raise ConsentError

    def _device(self) -> Installation | None:
        with self._storage.transaction(write=False) as transaction:
            return read_installation(transaction)

    @property
    def _label(self) -> Label | None:
        return None if self._campaign is None else self._campaign.label

    def _note(self, code: str) -> None:
        self._sender.problem = code


def _room_for(campaign: Campaign) -> tuple[int, int]:
    """Reports that one contribution queues, and their bytes at most."""
    widest = [max(question.mechanism.width for question in group) for group in campaign.groups]
    widths = widest if campaign.privacy.answers == "all" else [max(widest)]
    return len(widths), sum(width + REPORT_OVERHEAD for width in widths)
