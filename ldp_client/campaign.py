"""One campaign, as one device sees it: what it is, whether it may be answered, consent, the one answer, withdrawal."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from ldp_client import ledger
from ldp_client.delivery.queue import Outbox, stored_token, token_key
from ldp_client.delivery.schedule import REPORT_OVERHEAD, Event, Place
from ldp_client.delivery.status import Status, Withdrawal, campaign_status
from ldp_client.errors import ConsentError, RefusedError, StorageError
from ldp_client.ledger import Consent, Installation, Receipt, read_installation, write_installation
from ldp_client.log import code_of, told
from ldp_client.network.aggregator import Aggregator, Document, Standing
from ldp_client.policy import ASKING_WAIT, CLOSE_TIMEOUT, CLOSING_GRACE, STORAGE_WAIT, Policy
from ldp_client.refusals import NOT_YET, Caps, refusal
from ldp_client.runtime import seconds_left, within
from ldp_client.storage.contract import MARK, Transaction, pack

if TYPE_CHECKING:
    from ldp_client.classifier import Classifier
    from ldp_client.delivery.install import Install
    from ldp_client.preview import Preview
    from ldp_client.words import Explanation
    from ldp_protocols import Campaign
    from ldp_protocols.document.model import Model
    from ldp_protocols.document.schema import Label

OTHER_RECIPIENT: Final = "other-recipient"
_AGREEABLE: Final = (OTHER_RECIPIENT, NOT_YET)
"""Why a device does not answer now, and a person may agree all the same."""

_CONSENT_WAIT: Final = 1.0
"""Seconds to wait for others that have the file, to learn whether a model may be stored; it is used in any case."""


class NextStep(NamedTuple):
    """An app's next step in one campaign, and the reason for it.

    ``reason`` is None where the step needs none. To ``ask`` it is ``other-recipient`` where the person has agreed to
    another URL. For ``nothing`` it is ``answered``, ``declined``, or the code of what stands against answering: one of
    :data:`ldp_client.errors.REFUSALS`, ``STORAGE_PROBLEMS`` or ``TRANSPORT_PROBLEMS``, that of a document that is none,
    ``unexpected`` for an error that is none of this package's.
    """

    step: Literal["ask", "token", "contribute", "nothing"]
    reason: str | None = None


class DeviceCampaign:
    """One device, or one user of a backend, in one campaign; made by :meth:`ldp_client.Device.campaign`.

    Thread-safe, fork-safe, and safe with several processes on one file.

    A ``timeout`` is in seconds, and is kept: it is for all that a call waits for (the network, another process or
    thread that holds the file, an upload under way). At its end a call that still needs the network raises
    TransportError (``timeout``), one that needs the file StorageError (``storage-busy``); nothing was stored then, and
    nothing spent, but for what a docstring says.
    """

    def __init__(self, install: Install, scope: str, aggregator: Aggregator, caps: Caps) -> None:
        self._install = install
        self._caps = caps
        self._place = Place(scope, aggregator.campaign_id)
        self._outbox = Outbox(aggregator.campaign_id, scope)
        self._url = aggregator.base
        self._aggregator = aggregator
        self._document = Document(aggregator, install.cache)
        self._standing = Standing(aggregator, install.cache, install.clock)

    @property
    def id(self) -> str:
        """The campaign's id."""
        return self._place.campaign_id

    # What it is

    def fetch(self, *, timeout: float = ASKING_WAIT) -> Campaign:
        """The verified campaign: at hand, or fetched. Nothing is stored before :meth:`grant`, but for the directory of
        a publisher.

        Raises
        ------
        DocumentError
            What was served is not what the id and its own epsilon promise, or not what a publisher has signed.
        TransportError
            It cannot be had.
        StorageError
            The directory cannot be kept; without a publisher never.
        """
        with within(timeout):
            self._aggregator.refresh()
            return self._document.fetched()

    def load(self, document: bytes) -> Campaign:
        """Take the campaign's document from the app itself instead of fetching it; verified the same way.

        Raises DocumentError.
        """
        return self._document.load(document)

    def next_step(self, *, timeout: float = ASKING_WAIT) -> NextStep:
        """The step that an app has to take now, and why. Call it at every start; it never raises.

        ``ask``: show the person :meth:`fetch`'s title, purpose and ``realised_epsilon``, :meth:`decide` by what they
        say. A yes and a no are remembered, and nobody is asked again. ``token``, in a campaign with an issuer: the
        person has agreed; call :meth:`obtain_token`. ``contribute``: the person has agreed, and no answer is given yet;
        in a campaign with windows, this device's is open. ``nothing``: answered, declined, switched off, refused
        (:meth:`refusal` says when this device's window opens), or it cannot be told, or not be kept, at the moment:
        call it again at the next start.
        """
        return self._step("next-step", lambda: None, timeout)

    def decide(self, agreed: bool, *, timeout: float = ASKING_WAIT) -> NextStep:
        """Take the person's answer to ``ask``, by :meth:`grant` or :meth:`withdraw`; returns the next step. Never
        raises: where the answer could not be kept, the reason says why, and the person is asked again.
        """
        return self._step("decide", self.grant if agreed else self.withdraw, timeout)

    def _step(self, name: str, first: Callable[[], object], timeout: float) -> NextStep:
        failure = None
        try:
            with within(timeout):
                first()
                step = self._next_step()
        except Exception as error:  # Whatever it is, it must not stop the app at every start.
            failure = error
            step = NextStep("nothing", code_of(error))
        self._install.sender.note(self._place, None if failure is None else step.reason)
        self._install.teller.tell(name, self.id, step.reason or step.step, failure)
        return step

    def _next_step(self) -> NextStep:
        install = self._install
        with install.storage.transaction(write=False) as transaction:
            device = self._device(transaction)
        consent = install.permits.consent(device, self._place)
        if device.receipt(self.id) is not None:
            return NextStep("nothing", "answered")
        if consent is None and (self.id in device.consents or self._place in install.permits.revoked):
            return NextStep("nothing", "declined")
        refused = self.refusal(timeout=seconds_left(ASKING_WAIT))
        code = None if refused is None else refused.code
        if code is not None and code not in _AGREEABLE:
            return NextStep("nothing", code)
        install.check_room()
        if consent is None or code == OTHER_RECIPIENT:
            return NextStep("ask", code if consent else None)
        if self._lacks_token():
            return NextStep("token")
        return NextStep("contribute") if code is None else NextStep("nothing", code)

    def refusal(self, *, timeout: float = ASKING_WAIT) -> RefusedError | None:
        """The reason why this device would refuse the campaign, None if it would answer: ask before anybody is asked.

        The error is what :meth:`contribute` would raise; ``code`` and ``str()`` say why. Raises what :meth:`fetch`
        raises, and StorageError.
        """
        with within(timeout):
            campaign = self.fetch(timeout=timeout)
            self._hear(campaign)
            with self._install.storage.transaction(write=False) as transaction:
                return self._refusal(transaction, self._device(transaction), campaign)

    def preview(self, record: Mapping[str, object], label: object = None, *, timeout: float = STORAGE_WAIT) -> Preview:
        """Tell what this campaign would ask of a record and what would be said, before anything is: of every question
        the truth and the probability of each answer; and what is wrong with the record. For tests, debug builds and the
        curious; nothing is drawn, stored or sent, and the document has to be at hand.

        Raises RefusedError (``not-fetched``), and nothing for what the record holds.
        """
        from ldp_client.preview import preview_of

        with within(timeout):
            return preview_of(self._document.needed(), record, label)

    def explained(self, *, timeout: float = STORAGE_WAIT) -> Explanation:
        """Tell the person what the noise means, and a privacy policy what happens, in this campaign's numbers.

        Raises RefusedError (``not-fetched``).
        """
        from ldp_client.words import explained

        with within(timeout):
            return explained(self._document.needed(), self._url)

    @told("classifier")
    def classifier(self, *, timeout: float = 30.0) -> Classifier:
        """The campaign's model as it stands now, or as it is stored where the server cannot be reached; checked to be
        about this campaign's label where the campaign is at hand.

        No consent is needed; only once it is given the model is stored. The request is the same bytes from every
        device. Where a model is stored it is returned at once, and the newest is fetched for the next call: with the
        background thread at a random moment within the policy's ``first_delay``, since what an app asks of several
        campaigns when it starts would otherwise leave in one second, and link them; without it now, in a thread.

        Raises TransportError (``no-model`` where there is none yet) or DocumentError; and StorageError where the
        directory of a publisher cannot be read.
        """
        from ldp_client.classifier import Classifier, stored_model

        with within(timeout):
            stored = stored_model(self._aggregator, self._install.cache, self._label())
            name = f"{self.id}/{self._aggregator.signer}"
            if stored is not None and self._install.driver.later(name, self._newest_model):
                return Classifier(stored)
            return Classifier(self._newest_model())

    # Consent

    @told("grant")
    def grant(self, *, timeout: float = ASKING_WAIT) -> None:
        """The person has agreed to this campaign, and to sending the answer to this URL.

        Keeps a copy of what was agreed to, and the document, so that contributing later needs no network. Raises what
        :meth:`fetch` raises, RefusedError where this device would not answer (see :meth:`refusal`), and StorageError
        where the decision cannot be kept (in time); nothing has then changed.
        """
        from ldp_protocols.exact import SYSTEM_COINS
        from ldp_protocols.wire import make_secret

        install = self._install
        with within(timeout):
            campaign = self.fetch(timeout=timeout)
            self._hear(campaign)
            with install.storage.transaction(write=True) as transaction:
                device = self._device(transaction)
                refused = self._refusal(transaction, device, campaign)
                if refused is not None and refused.code not in _AGREEABLE:
                    raise refused
                agreed = install.permits.consent(device, self._place)
                if agreed is None or agreed.url != self._url:
                    now = install.clock.time()
                    words = (campaign.title, campaign.purpose, campaign.realised_epsilon)
                    gateway = campaign.gateway.key if campaign.gateway else ""
                    consent = Consent(self._url, *words, granted_at=now, withdrawn_at=None, gateway=gateway)
                    secret = device.secret or make_secret(install.coins or SYSTEM_COINS)
                    if transaction.get(MARK) is None:
                        install.mark(transaction, None)
                    write_installation(transaction, device.granted(self.id, consent, secret), self._place.scope)
            install.permits.revoked.pop(self._place, None)
            self._document.keep(campaign)
            self._standing.keep()

    @told("obtain-token")
    def obtain_token(self, issue: Callable[[bytes], bytes], *, timeout: float = STORAGE_WAIT) -> None:
        """Have the campaign's issuer sign this device's token, which its answer shows, and where answers are sealed and
        it signs these, the one for relays; once the person has agreed, and best long before there is a record. The
        issuer sees who asks, and neither a token nor the answer.

        ``issue`` is the app's own call: it sends the bytes that it is given (``application/private-token-request``) to
        the app's backend, and returns what comes back, once for each token; what it raises comes out here. Asking again
        sends the same bytes, which the issuer counts once; where there is a token, nothing is asked.

        Raises ConsentError, RefusedError (``not-fetched``), StorageError, and LdpError (``no-issuer``; ``wrong-token``
        where the answer is no signature by the key in the campaign's document). Nothing was stored then.
        """
        from ldp_client.tokens import finished_token, token_request

        with within(timeout):
            campaign = self._document.needed()
            secret = self._secret_of_consent()
            is_shown = campaign.gateway and campaign.issuer and campaign.issuer.for_relays
            kinds = (False, True) if is_shown else (False,)
            requests = [token_request(campaign, secret, for_relay=kind) for kind in kinds]
            if not self._lacks_token():
                return
        answers = zip(kinds, requests, strict=True)
        token = b"".join([finished_token(campaign, secret, issue(one), for_relay=kind) for kind, one in answers])
        with within(timeout):
            if self._secret_of_consent() != secret:
                raise ConsentError
            key = token_key(self._place)
            with self._install.storage.transaction(write=True) as transaction:
                transaction.put(key, pack(key, token))

    @told("withdraw")
    def withdraw(self, *, timeout: float | None = None) -> Withdrawal:
        """The person no longer agrees, or never did: what is unsent is deleted, and no byte of it leaves after this has
        returned, now or after a restart; what has begun to leave is waited for until ``timeout`` (None: two seconds,
        and ten for the file), and the result says what could not be stopped.

        Where nothing had begun to leave, the budget comes back and the person may agree again. Else it stays spent, and
        the receipt's ``fate`` says what became of the answer. Raises StorageError where the decision could not be kept,
        or not in time: it holds in this process even then, and is lost with it; withdraw again.
        """
        install, place = self._install, self._place
        install.permits.revoked[place] = install.clock.time()
        refunded, begun = 0.0, False
        with within(timeout):
            try:
                with install.storage.transaction(write=True) as transaction:
                    device = self._device(transaction)
                    receipt = device.receipt(self.id)
                    deleted = self._outbox.clear(transaction)
                    device = device.withdrawn(self.id, self._url, install.clock.time())
                    if receipt is not None and deleted:
                        if receipt.fate == ledger.WAITING and deleted == len(receipt.questions):
                            device, refunded = device.without_receipt(self.id), receipt.epsilon
                        else:
                            device, begun = device.with_receipt(replace(receipt, fate=ledger.DELETED)), True
                    write_installation(transaction, device, place.scope)
            finally:
                install.sender.flight.cancel(place)
                install.sender.flight.await_landing(place, seconds_left(CLOSE_TIMEOUT))
            install.permits.revoked.pop(place, None)
            arrived = begun and self.status().fate == ledger.ARRIVED
        return Withdrawal(deleted, deleted if begun and not arrived else 0, refunded)

    # Contributing

    @told("contribute")
    def contribute(
        self, record: Mapping[str, object], label: object = None, *, timeout: float = STORAGE_WAIT
    ) -> Receipt:
        """Answer the campaign, once. The report is on disk before this returns, and before it is first sent; the
        network is not used.

        A second call returns the first receipt and spends nothing, whatever the record now says. Values may be texts,
        numbers of any kind, or missing (None, NaN, an absent key); :meth:`preview` tells which of them are unusable.

        Raises ConsentError, RefusedError (see :meth:`refusal`; ``not-fetched``: see :meth:`fetch`; ``token-missing``),
        RecordError for a label that is not declared or a record that is no mapping, and StorageError, also where
        ``timeout`` ends before the answer is on disk. In all these cases nothing was spent, and no answer was or will
        be sent.
        """
        from ldp_client.answering import perturb
        from ldp_protocols.exact import SYSTEM_COINS

        install = self._install
        with within(timeout):
            # First without writing: a storage is not even made for somebody who never agreed.
            with install.storage.transaction(write=False) as transaction:
                earlier = self._answered(transaction)
            if earlier is not None:
                return earlier
            campaign = self._document.needed()
            with install.storage.transaction(write=True) as transaction:
                earlier = self._answered(transaction)
                if earlier is not None:
                    return earlier
                device = self._device(transaction)
                before = install.refuse_copies(transaction)
                refused = self._forbidden(transaction, device, campaign)
                if refused is not None:
                    raise refused
                if campaign.issuer is not None and stored_token(transaction, self._place) is None:
                    raise RefusedError("token-missing")
                count, size = _room_for(campaign)
                self._outbox.check_room(transaction, count, size, install.policy)
                # The question is a function of the secret, and an answer that was never sent was never observed: where
                # anything fails from here on, nothing needs to be remembered.
                reports = perturb(campaign, record, label, secret=device.secret, coins=install.coins or SYSTEM_COINS)
                now, crowd = install.clock.time(), campaign.privacy.crowd
                receipt = Receipt(
                    campaign_id=self.id,
                    title=campaign.title,
                    study=campaign.study,
                    epsilon=campaign.realised_epsilon,
                    questions=tuple(report.question for report in reports),
                    at=now,
                    url=self._url,
                    window=_window(campaign, reports[0].question),
                    crowd_epsilon=crowd.epsilon if crowd else None,
                    crowd_delta=crowd.delta if crowd else None,
                )
                mark = install.mark(transaction, before)
                write_installation(transaction, device.with_receipt(receipt), self._place.scope)
                expires = _expiry(campaign, reports[0].question, now, install.policy)
                self._outbox.pad(transaction, campaign.upload_bytes)
                self._outbox.put(transaction, reports, expires=expires)
        install.settle_mark(mark)
        install.sender.emit(Event("queued", None, len(reports), self.id))
        install.driver.wake()
        return receipt

    def requeue(self, *, timeout: float = STORAGE_WAIT) -> int:
        """Let reports that the server would not take be tried again; how many these are. Raises StorageError."""
        with within(timeout), self._install.storage.transaction(write=True) as transaction:
            count = self._outbox.requeue(transaction)
        self._install.driver.wake()
        return count

    def status(self, *, timeout: float = STORAGE_WAIT) -> Status:
        """Tell what happened so far. Never raises; a storage that fails, or is held by others, is the ``problem``."""
        install = self._install
        try:
            with within(timeout), install.storage.transaction(write=False) as transaction:
                return campaign_status(install, transaction, self._place)
        except StorageError as error:
            return Status(self.id, running=install.driver.running, problem=error.code)

    # Inside

    def _label(self) -> Label | None:
        campaign = self._document.at_hand()
        return None if campaign is None else campaign.label

    def _newest_model(self) -> Model:
        from ldp_client.classifier import fetch_model

        def may_keep() -> bool:
            return bool(self.status(timeout=_CONSENT_WAIT).consent)

        return fetch_model(self._aggregator, self._install.cache, self._label(), may_keep)

    def _lacks_token(self) -> bool:
        campaign = self._document.at_hand()
        if campaign is None or campaign.issuer is None:
            return False
        with self._install.storage.transaction(write=False) as transaction:
            return stored_token(transaction, self._place) is None

    def _secret_of_consent(self) -> bytes:
        """The secret of a device whose person has agreed. Raises ConsentError."""
        with self._install.storage.transaction(write=False) as transaction:
            device = self._device(transaction)
            if self._install.permits.consent(device, self._place) is None:
                raise ConsentError
            return device.secret

    def _answered(self, transaction: Transaction) -> Receipt | None:
        """The receipt of an answer given before. Raises ConsentError."""
        device = self._device(transaction)
        if self._install.permits.consent(device, self._place) is None:
            raise ConsentError
        return device.receipt(self.id)

    def _device(self, transaction: Transaction) -> Installation:
        return read_installation(transaction, self._place.scope)

    def _refusal(self, transaction: Transaction, device: Installation, campaign: Campaign) -> RefusedError | None:
        """The reason why this device would not answer; None where it would, or has answered."""
        if device.receipt(self.id) is not None:
            return None
        try:
            self._install.refuse_copies(transaction)
        except RefusedError as error:
            return error
        return self._forbidden(transaction, device, campaign)

    def _forbidden(self, transaction: Transaction, device: Installation, campaign: Campaign) -> RefusedError | None:
        """The reason why a device that holds no copy, and has not answered, must not answer."""
        install = self._install
        if install.permits.asleep(transaction):
            return RefusedError("switched-off", "contributing is switched off on this device")
        consent = device.consent(self.id)
        if consent is not None and consent.url != self._url:
            other = RefusedError(OTHER_RECIPIENT, "the person agreed to another URL; grant() asks for this one")
            return self._standing.refusal() or other
        if campaign.gateway is not None and (code := install.permits.unsealable()):
            return RefusedError(code)
        unsigned = self._aggregator.refusal(transaction)
        own = unsigned or refusal(device, campaign, self._caps, install.clock.time())
        # contribute() asks nobody: the time of a request would tell the time of the event.
        return self._standing.refusal() or own if own is None or own.code == NOT_YET else own

    def _hear(self, campaign: Campaign) -> None:
        """Hear how the campaign stands, unless this device has answered it or never will."""
        if campaign.gateway and not self._install.permits.relay:
            return
        with self._install.storage.transaction(write=False) as transaction:
            device = self._device(transaction)
            if device.receipt(self.id) is not None or self._install.permits.asleep(transaction):
                return
        self._standing.hear(keep=self._install.permits.consent(device, self._place) is not None)


def _room_for(campaign: Campaign) -> tuple[int, int]:
    """Reports that one contribution queues, and their bytes at most."""
    widths = [max(question.mechanism.width for question in pool) for pool in campaign.pools]
    return len(widths), sum(width + REPORT_OVERHEAD for width in widths)


def _window(campaign: Campaign, place: int) -> str:
    """The name of the window that an answer is of, by its place among those that are counted."""
    return "" if campaign.windows is None else campaign.windows.name(place // len(campaign.questions))


def _expiry(campaign: Campaign, place: int, now: float, policy: Policy) -> float:
    """The time at which an answer to a question, by its place among those that are counted, is given up."""
    aged = now + policy.report_age
    if campaign.windows is not None:
        from ldp_protocols.document.windows import WINDOW_GRACE

        over = campaign.windows.opens(place // len(campaign.questions) + 1) + WINDOW_GRACE
        return min(aged, over.timestamp())
    return aged if campaign.closes is None else min(aged, campaign.closes.timestamp() + CLOSING_GRACE)
