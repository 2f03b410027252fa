"""The relay: gathers the uploads of many devices, mixes them, and forwards them in large batches.

It keeps what it forwards, until the aggregator has it, and nothing else; ids and payloads pass through unchanged, so a
report that arrives twice is counted once. An upload is acknowledged when it is on disk. What a device sends beside its
reports (an address, a time) ends here.

Where the campaign has a gateway, uploads come sealed and are mixed by the same rule, unread, each length on its own; in
the clear an answer with a token stays with it (:mod:`ldp_aggregator.relay.blind`). In a series each window is mixed on
its own. With an issuer a token is admitted once, and remembered (:mod:`ldp_aggregator.relay.people`).
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from ldp_aggregator.relay.blind import (
    WINDOW,
    Arrival,
    Arrivals,
    Batches,
    is_sealed,
    is_whole,
    lengths_of,
    queue_names,
    sealed_name,
    sealed_report,
    shown_name,
    whole_report,
)
from ldp_aggregator.relay.mixing import Mixer, Mixing
from ldp_aggregator.relay.people import admit, admitted_answer, admitted_sealed, was_admitted
from ldp_client.delivery.schedule import REPORT_OVERHEAD, Idle, OnEvent, Outcome, Place, Send, Task, Wait, size_of
from ldp_client.delivery.sender import BackgroundDriver, Sender
from ldp_client.errors import StorageError, TransportError
from ldp_client.ledger import has_devices
from ldp_client.network import SHARED_TRANSPORT
from ldp_client.network.aggregator import Aggregator, Document, check_campaign_id
from ldp_client.network.transport import Transport
from ldp_client.policy import CLOSE_TIMEOUT, DEFAULT_POLICY, STORAGE_WAIT, Policy
from ldp_client.runtime import SYSTEM_CLOCK, Clock, ForkSafeLock, within
from ldp_client.storage.contract import Cache, Storage, Transaction
from ldp_client.storage.location import open_storage
from ldp_protocols import Campaign, DocumentError, LdpError, Report, decode_upload
from ldp_protocols.framing import ID_BYTES
from ldp_protocols.oblivious import sealed_bytes

RELAY_POLICY: Final = replace(
    DEFAULT_POLICY, first_delay=10.0, most_reports_per_upload=100_000, most_bytes_per_upload=4 << 20
)
"""A batch leaves within ten seconds of being complete, at random: the moment does not tell who came last. It is one
upload: of several, each is believed to hide no more than it holds itself.
"""

MODEL_AGE: Final = 60.0
"""Seconds for which a model, a directory or a state is handed out before the aggregator is asked again. It learns that
the relay asks, and nothing of when a device did."""

BATCH_HEADER: Final = "LDP-Relay-Batch"
"""Header of an upload from a batch: the least number of devices whose reports were mixed in it."""


class Relay:
    """Mixes and forwards the reports of one campaign. Safe with several threads and processes on one storage.

    A ``timeout`` is in seconds and is kept, as a device's: at its end TransportError (``timeout``) is raised where the
    network was waited for, StorageError (``storage-busy``) where the storage was, and nothing was kept.

    Parameters
    ----------
    url, campaign_id, transport, clock, on_event
        As for a :class:`ldp_client.Device` and its campaigns.
    storage
        Likewise; a device's is refused.
    mixing
        How many devices' reports leave together at least; None takes 1,000, or with a crowd its own number.
    policy
        Its quotas bound what is kept.
    token
        A token of scope ``relay``, where the aggregator asks for one.
    publisher
        The public key, or keys, whose directories are handed on to devices that pin them.
    sealed_lengths
        Lengths of sealed uploads that are taken beside the campaign's own: of apps whose headers are longer than usual.

    Raises LdpError for an address, an id or a batch that cannot be.
    """

    def __init__(
        self,
        url: str,
        campaign_id: str,
        *,
        storage: str | os.PathLike[str] | Storage,
        mixing: Mixing | None = None,
        transport: Transport | None = None,
        clock: Clock | None = None,
        policy: Policy = RELAY_POLICY,
        token: str | None = None,
        publisher: str | Collection[str] | None = None,
        sealed_lengths: Collection[int] = (),
        on_event: OnEvent | None = None,
    ) -> None:
        self.policy = policy
        self.sealed_lengths = frozenset(sealed_lengths)
        self.mixing, self._is_usual = Mixing() if mixing is None else mixing, mixing is None
        self._rule: Mixing | None = None
        self._most = policy.most_queued_reports, policy.most_queued_bytes
        if self.mixing.least_batch > policy.most_queued_reports:
            raise LdpError("bad-batch", "least_batch must not be above the policy's most_queued_reports")
        self.campaign_id = check_campaign_id(campaign_id)
        self._clock = clock = SYSTEM_CLOCK if clock is None else clock
        self._token = token
        self.publishers = (publisher,) if isinstance(publisher, str) else tuple(publisher or ())
        where = (url, campaign_id, transport or SHARED_TRANSPORT, clock, policy)
        self._aggregator = Aggregator(*where, headers=self._headers)
        self._storage = open_storage(storage)
        self._arrivals = Arrivals(self._keep_whole)

        def batches(name: str) -> Aggregator:
            return Batches(*where, sealed=is_sealed(name), vouch=partial(self._vouch, name))

        permits = RelayPermits(self._aggregator, batches)
        self._sender = MixingSender(self._form, self._storage, permits, clock=clock, policy=policy, on_event=on_event)
        self._document = Document(self._aggregator, Cache(self._storage))
        self._handed: dict[str, tuple[bytes | TransportError, float]] = {}
        self._asking = ForkSafeLock()
        self._driver: BackgroundDriver | None = None

    def campaign(self, *, timeout: float = 30.0) -> Campaign:
        """The verified campaign, from the storage or fetched; a stored one that is damaged is fetched again.

        Raises DocumentError or TransportError.
        """
        with within(timeout):
            campaign = self._document.at_hand()
            if campaign is None:
                campaign = self._document.fetched()
                self._document.keep(campaign)
        if self._rule is None:
            crowd = campaign.privacy.crowd
            self._rule = (Mixing(1) if crowd and self._is_usual else self.mixing).for_crowd(crowd)
            # One batch on its way, and one that gathers: promised is that they wait, however many they are.
            most = 2 * self._rule.least_batch if crowd else 0
            size = most * (sealed_bytes(campaign.upload_bytes) + REPORT_OVERHEAD)
            self._most = max(self._most[0], most), max(self._most[1], size)
        return campaign

    def rule(self, *, timeout: float = 30.0) -> Mixing:
        """The rule by which batches leave: the relay's own, and the campaign's where that has a crowd. Raises LdpError
        where the two do not go together, and what :meth:`campaign` raises.
        """
        if self._rule is None:
            self.campaign(timeout=timeout)
        return self._rule or self.mixing

    def model(self, *, timeout: float = 30.0) -> bytes:
        """The aggregator's model, for a device behind the relay, whose own question would raise the same.

        Raises TransportError.
        """
        return self._fresh("model", self._aggregator.model, timeout)

    def state(self, *, timeout: float = 30.0) -> bytes:
        """The campaign's standing, as the aggregator said at most a minute ago. Raises TransportError."""
        return self._fresh("state", self._aggregator.state, timeout)

    def directory(self, key: str, *, timeout: float = 30.0) -> bytes:
        """The newest directory of the relay's publisher, whose signature devices verify.

        Raises TransportError, also for any other key.
        """
        if key not in self.publishers:
            raise TransportError("no-directory", "the relay has another publisher, or none", 404)
        return self._fresh(f"directory {key}", lambda: self._aggregator.directory(key), timeout)

    def _fresh(self, name: str, fetch: Callable[[], bytes], timeout: float) -> bytes:
        with within(timeout):
            if not self._asking.acquire(timeout):
                # Somebody else asks for it, and has no answer yet.
                raise TransportError("timeout")
            try:
                answer, at = self._handed.get(name, (None, 0.0))
                now = self._clock.monotonic()
                if answer is None or now - at >= MODEL_AGE:
                    try:
                        answer = fetch()
                    except TransportError as error:
                        if error.status != 404:
                            raise
                        answer = error
                    self._handed[name] = answer, now
                if isinstance(answer, TransportError):
                    raise answer.with_traceback(None)
                return answer
            finally:
                self._asking.release()

    def collect(self, upload: bytes, shown: str | None = None, *, timeout: float = 30.0) -> dict[str, str]:
        """Keep the reports of an upload, durably; returns the refused ones, ``{id in hexadecimal: code}``.

        A report whose id waits already is a success, whatever it says: as at the aggregator. With an issuer
        ``shown`` is the upload's header ``Authorization``; a token that was admitted before is a success, too. Raises
        DocumentError (NotAdmittedError without a token) or StorageError, and what :meth:`campaign` raises; nothing of
        the upload is then kept.
        """
        with within(timeout):
            campaign = self.campaign(timeout=timeout)
            if campaign.privacy.crowd is not None:
                raise DocumentError("not-sealed", "answers to a campaign with a crowd are sealed, and taken at /ohttp")
            reports, refused = _read_reports(upload, campaign)
            if campaign.issuer is not None:
                self._keep(_answer(campaign, upload, reports, shown), timeout)
                return refused
            with self._storage.transaction(write=True) as transaction:
                fresh: dict[bytes, Report] = {}
                queues: dict[str, list[Report]] = {}
                for report in reports:
                    name = self._queue_of(report, campaign)
                    mixer = self._mixer(name)
                    duplicate = fresh.get(report.id) or mixer.pool.find(transaction, report.id)
                    duplicate = duplicate or mixer.outbox.find(transaction, report.id)
                    if duplicate is None:
                        fresh[report.id] = report
                        queues.setdefault(name, []).append(report)
                count, size = self._room(transaction)
                if len(fresh) > count or sum(map(size_of, fresh.values())) > size:
                    raise _full()
                for name, waiting in queues.items():
                    mixer = self._mixer(name)
                    mixer.outbox.pad(transaction, campaign.upload_bytes)
                    mixer.pool.put(transaction, waiting, _of_groups(waiting, campaign), self._clock.time())
        if self._driver is not None:
            self._driver.wake()
        return refused

    def collect_sealed(self, sealed: bytes, shown: str | None = None, *, timeout: float = 30.0) -> None:
        """Keep an upload that is sealed to the campaign's gateway, durably, and unread. The same bytes are kept once; a
        device that tries again has sealed anew: where the issuer signs for relays, ``shown`` is the token beside it,
        and one that was admitted before is a success of which nothing is kept; else the aggregator counts it once.

        Raises DocumentError for what cannot have been sealed by a device of the campaign, or where that has no gateway
        (NotAdmittedError without a token); StorageError, and what :meth:`campaign` raises.
        """
        with within(timeout):
            campaign = self.campaign(timeout=timeout)
            report = sealed_report(sealed, campaign.gateway, lengths_of(campaign, self.sealed_lengths))
            self._keep(Arrival(report, sealed_name(len(sealed)), admitted_sealed(campaign, shown)), timeout)

    def _keep(self, arrival: Arrival, timeout: float) -> None:
        self._arrivals.keep(arrival, timeout)
        if arrival.refused is not None:
            raise arrival.refused

    def run_once(self, timeout: float, *, first_delay: float = 0.0) -> bool:
        """Forward within ``timeout`` seconds; True when nothing is left, here or in the pool. Never raises."""
        with within(timeout):
            if not self._sender.run_once(timeout, first_delay=first_delay):
                return False
            try:
                with self._storage.transaction(write=False) as transaction:
                    return not any(mixer.load(transaction)[0] for mixer in self._mixers(transaction))
            except LdpError:
                return False

    def start(self, *, first_delay: float | None = None) -> None:
        """Forward from a background thread; ``first_delay`` (None: the policy's) is how long uploads may gather."""
        if self._driver is None:
            self._driver = BackgroundDriver(self._sender)
        self._driver.start(self.policy.first_delay if first_delay is None else first_delay)

    def close(self, timeout: float | None = None) -> None:
        """Stop the background thread; what is queued stays queued."""
        if self._driver is not None:
            self._driver.close(CLOSE_TIMEOUT if timeout is None else timeout)

    def gathering(self, *, timeout: float = STORAGE_WAIT) -> int:
        """Devices whose reports, sealed or not, wait for others. Raises StorageError."""
        with within(timeout), self._storage.transaction(write=False) as transaction:
            return sum(mixer.pool.gathering(transaction).devices for mixer in self._mixers(transaction))

    def missing(self, *, timeout: float = STORAGE_WAIT) -> int:
        """Devices that the fullest pool still waits for, 0 if a batch is complete. Raises what :meth:`rule` does."""
        with within(timeout):
            rule = self.rule(timeout=timeout)
            with self._storage.transaction(write=False) as transaction:
                waiting = [mixer.pool.gathering(transaction).devices for mixer in self._mixers(transaction)]
        return max(0, rule.least_batch - max(waiting))

    def expired(self, *, timeout: float = STORAGE_WAIT) -> int:
        """Uploads that were thrown away, since their batch did not fill in time. Raises StorageError."""
        with within(timeout), self._storage.transaction(write=False) as transaction:
            return sum(mixer.expired(transaction) for mixer in self._mixers(transaction))

    def queued(self, *, timeout: float = STORAGE_WAIT) -> int:
        """Count what is left of the batches under way. Raises StorageError."""
        with within(timeout), self._storage.transaction(write=False) as transaction:
            return sum(mixer.outbox.delivery(transaction).queued for mixer in self._mixers(transaction))

    def room(self, *, timeout: float = STORAGE_WAIT) -> int:
        """Reports that may be kept beside those that wait; 0 if their bytes are as many as may be. Raises
        StorageError.
        """
        with within(timeout), self._storage.transaction(write=False) as transaction:
            count, size = self._room(transaction)
        return max(0, count) if size > 0 else 0

    @property
    def problem(self) -> str | None:
        """The code of the last failure to forward, None once it went well again."""
        return self._sender.problem

    def _room(self, transaction: Transaction) -> tuple[int, int]:
        """Room that is left: reports, and bytes."""
        sizes = [mixer.load(transaction) for mixer in self._mixers(transaction)]
        count, size = sum(reports for reports, _ in sizes), sum(size for _, size in sizes)
        return self._most[0] - count, self._most[1] - size

    def _keep_whole(self, arrivals: Sequence[Arrival]) -> None:
        """Keep what arrived, as far as there is room. Raises StorageError, and none was kept."""
        with self._storage.transaction(write=True) as transaction:
            count, size = self._room(transaction)
            for arrival in arrivals:
                mixer, token = self._mixer(arrival.name), arrival.admitted
                if token is not None and was_admitted(transaction, token):
                    continue
                if any(queue.find(transaction, arrival.report.id) for queue in (mixer.pool, mixer.outbox)):
                    continue
                count, size = count - 1, size - size_of(arrival.report)
                if count < 0 or size < 0:
                    arrival.refused = _full()
                    continue
                if token is not None:
                    admit(transaction, token)
                mixer.pool.put(transaction, [arrival.report], [1], self._clock.time())
        if self._driver is not None:
            self._driver.wake()

    def _headers(self, body: bytes) -> Mapping[str, str]:
        """The headers of an upload of reports, which come from one queue."""
        campaign = self.campaign()
        reports = list(_reports_of(body, campaign))
        return self._vouch(self._queue_of(reports[0], campaign), [report.id for report in reports])

    def _queue_of(self, report: Report, campaign: Campaign) -> str:
        """The name of its queue: in a series a device hides among those of its window."""
        if campaign.windows is None:
            return self.campaign_id
        return f"{WINDOW}{report.question // len(campaign.questions)}"

    def _mixer(self, name: str) -> Mixer:
        return Mixer(name, self._storage, self._clock)

    def _mixers(self, transaction: Transaction) -> list[Mixer]:
        """Mixers of the campaign, and of every window and every length of which something is here."""
        if has_devices(transaction):  # Their reports would be forwarded as what others brought.
            raise LdpError("bad-storage", "a device answers from this storage; a relay needs one of its own")
        return [self._mixer(name) for name in (*queue_names(transaction), self.campaign_id)]

    def _form(self) -> float | None:
        """Form the batches that are due; the seconds until the next one is, if that is a matter of time."""
        rule = self.rule()
        with self._storage.transaction(write=False) as transaction:
            mixers = self._mixers(transaction)
            done = [mixer for mixer in mixers if is_whole(mixer.name) and not any(mixer.load(transaction))]
        for mixer in done:
            with self._storage.transaction(write=True) as transaction:
                mixer.forget(transaction)
        waits = [mixer.form(rule) for mixer in mixers]
        return min((wait for wait in waits if wait is not None), default=None)

    def _vouch(self, name: str, ids: Collection[bytes]) -> Mapping[str, str]:
        """Headers with the token, and with the number of devices that the reports of these ids were mixed with."""
        headers = {} if self._token is None else {"Authorization": f"Bearer {self._token}"}
        with self._storage.transaction(write=False) as transaction:
            vouched = self._mixer(name).vouched(transaction, ids)
        return {**headers, BATCH_HEADER: str(vouched)} if vouched else headers


class RelayPermits:
    """A relay forwards whatever it was given, and keeps nothing of it."""

    def __init__(self, aggregator: Aggregator, batches: Callable[[str], Aggregator]) -> None:
        self._aggregator, self._batches = aggregator, batches

    def asleep(self, transaction: Transaction) -> bool:
        return False

    def may_leave(self, transaction: Transaction, place: Place) -> bool:
        return True

    def aggregator(self, transaction: Transaction, place: Place) -> Aggregator:
        return self._batches(place.campaign_id) if is_whole(place.campaign_id) else self._aggregator

    def token(self, transaction: Transaction, place: Place) -> None:
        """A token stays with its answer, as the payload of a report."""

    def begin(self, task: Send) -> bool:
        return True

    def was_withdrawn(self, transaction: Transaction, place: Place) -> bool:
        return False

    def settle(self, transaction: Transaction, place: Place, outcome: Outcome) -> None:
        """There is no ledger of others' reports."""


class MixingSender(Sender):
    """A sender whose queue is filled by batches."""

    def __init__(self, form: Callable[[], float | None], *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._form = form

    def next_task(self, first_delay: float = 0.0) -> Task:
        """See :meth:`Sender.next_task`; never raises."""
        try:
            wait = self._form()
        except LdpError as error:
            return self._pause(error.code, error)
        task = super().next_task(first_delay)
        return Wait(wait) if isinstance(task, Idle) and wait is not None else task


def _reports_of(upload: bytes, campaign: Campaign) -> Iterator[Report]:
    """The reports of an upload. Raises DocumentError."""
    for block in decode_upload(upload, campaign):
        width = campaign.counted[block.question].mechanism.width
        for position in range(block.count):
            identifier = block.ids[position * ID_BYTES : (position + 1) * ID_BYTES]
            yield Report(block.question, identifier, block.payloads[position * width : (position + 1) * width])


def _answer(campaign: Campaign, upload: bytes, reports: Sequence[Report], authorization: str | None) -> Arrival:
    """An answer with its token, as it is queued. Raises DocumentError for what is none of one device."""
    if len(upload) != campaign.upload_bytes:
        raise DocumentError("wrong-length", f"an upload to this campaign has {campaign.upload_bytes} bytes")
    windows = {report.question // len(campaign.questions) for report in reports}
    if len(windows) != 1 or max(_of_groups(reports, campaign)) > 1:
        raise DocumentError("too-many-reports", "a token is of one answer: one report to each group, of one window")
    key, token = admitted_answer(campaign, authorization, [report.id for report in reports])
    return Arrival(whole_report(token + upload), shown_name(windows.pop()), key)


def _full() -> StorageError:
    return StorageError("queue-full", "the relay holds as much as it may; try again when some has been forwarded")


def _of_groups(reports: Sequence[Report], campaign: Campaign) -> list[int]:
    """Count reports by the groups that are mixed on their own."""
    pools = campaign.pools
    group_of = {question.index: group for group, members in enumerate(pools) for question in members}
    counted = Counter(group_of[report.question % len(campaign.questions)] for report in reports)
    return [counted[group] for group in range(len(pools))]


def _read_reports(upload: bytes, campaign: Campaign) -> tuple[list[Report], dict[str, str]]:
    """The reports that a device can have sent, and the others with their codes."""
    reports, refused = [], {}
    for report in _reports_of(upload, campaign):
        mechanism = campaign.counted[report.question].mechanism
        try:
            mechanism.check(report.payload)
        except DocumentError as error:
            refused[report.id.hex()] = error.code
        else:
            reports.append(report)
    return reports, refused
