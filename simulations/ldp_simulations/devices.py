"""A fleet of devices: each one the real client, with its own storage, secret and consent, over real HTTP, on a network
that can lose answers on purpose; and devices that lie: valid reports that no honest answer stands behind.

The server cannot tell these apart: every report of theirs is one that an honest device could have sent. What they can
do to a model is limited by their number alone, and this is how to find out what that limit is.
"""

from __future__ import annotations

import json
import os
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from http import HTTPStatus
from typing import Any, Final, Protocol

from ldp_aggregator.mechanisms import analysis_of
from ldp_client import Device, LdpError, Policy, TransportError
from ldp_client.draw import draw_questions
from ldp_client.network.stdlib import HttpTransport
from ldp_client.network.transport import Cancellation, Request, Response, Transport
from ldp_protocols import SYSTEM_COINS, Campaign, Coins, Question, Report, encode_upload
from ldp_protocols.document.questions import INDEX, MOMENT, PRODUCT, signs_of
from ldp_protocols.exact import ONE
from ldp_protocols.framing import ID_BYTES
from ldp_protocols.mechanisms import Moment
from ldp_protocols.wire import MEDIA_TYPE, make_secret
from ldp_simulations.columns import UNIT
from ldp_simulations.fidelities import SeededCoins
from ldp_simulations.tables import Table, python_values, records


def lying_reports(
    campaign: Campaign, questions: tuple[Question, ...], target: int | None, coins: Coins = SYSTEM_COINS
) -> tuple[Report, ...]:
    """One report with a fresh id to each of ``questions``: the most for class ``target``, or (None) a random item's."""
    reports = []
    for question in questions:
        if target is None:
            payload = _random_answer(question, coins)
        else:
            payload = poison(question, target, len(campaign.label.classes), coins)
        reports.append(Report(question.index, os.urandom(ID_BYTES), payload))
    return tuple(reports)


def poison(question: Question, target: int, classes: int, coins: Coins) -> bytes:
    """The valid payload that speaks loudest for the cells of class ``target``.

    Unary encodings let one device support every such cell at once; a subset holds as many of them as it has places; an
    index is one of them; noisy cells go to the end of what the mechanism allows.
    """
    wanted = _cells_of(question, target, classes)
    first = coins.below(len(wanted)) if question.encoding == INDEX else 0
    every = range(question.domain_size)
    return analysis_of(question.mechanism).loudest([*wanted[first:], *wanted[:first]], against=every)


def _cells_of(question: Question, target: int, classes: int) -> list[int]:
    """The cells of a class; a sign question's are ``signs * class + bit`` (``signs``: two bits), a product has none."""
    if question.kind == PRODUCT:
        return [min(question.domain_size - 1, 1)]
    if question.encoding == INDEX:
        return list(range(target, question.domain_size, classes))
    if question.encoding == MOMENT:
        return [target]
    each = signs_of(question, classes)
    bits = each - each % 2  # The last of an odd number says that there is no value.
    return [each * target + end for end in (*reversed(range(bits)), *range(bits, each))]


def _random_answer(question: Question, coins: Coins) -> bytes:
    if question.encoding != MOMENT:
        return question.perturb(coins.below(question.domain_size), coins)
    value = coins.below(2 * UNIT + 1) - UNIT
    return question.perturb(Moment(coins.below(question.domain_size), value), coins)


POLICY: Final = Policy(first_delay=0.0, backoff_base=0.05, backoff_longest=2.0)
"""An app waits minutes before it sends and between its tries; an experiment has no such time."""

PATIENCE: Final = 60.0
"""Seconds. A device that cannot deliver within this time has failed, and the experiment with it."""

TRIES: Final = 20
"""Uploads of one lying device before the experiment gives up."""

THREADS: Final = 32
"""Devices at once."""


class Network:
    """A transport for any number of devices and threads, over ``inner`` (None: the client's own HTTP).

    ``lost_answers`` is the share of uploads whose answer never arrives, although the server has counted them: the
    device tries again. ``seed`` is that of these accidents.
    """

    def __init__(self, inner: Transport | None = None, *, lost_answers: float = 0, seed: int | None = None) -> None:
        self._inner = inner or HttpTransport()
        self._lost_answers = lost_answers
        self._random = random.Random(seed)
        self._lock = threading.Lock()
        self.upload_bytes = 0
        """Bytes of the bodies of all uploads so far."""
        self.first_upload: bytes | None = None
        """The body of the first upload, to look at."""

    def send(self, request: Request, timeout: float, cancellation: Cancellation | None = None) -> Response:
        """See :class:`ldp_client.network.transport.Transport`."""
        if request.method != "POST":
            return self._inner.send(request, timeout, cancellation)
        with self._lock:
            self.first_upload = self.first_upload or request.body
            lose = self._random.random() < self._lost_answers
            self.upload_bytes += len(request.body or b"")
        answer = self._inner.send(request, timeout, cancellation)
        if lose:
            raise TransportError("timeout")
        return answer


@dataclass(frozen=True)
class Behaviour:
    """Everything else in a population: the share of ``liars``, who promote the class of index ``target``."""

    liars: float = 0.0
    target: int | None = None


HONEST: Final = Behaviour()


@dataclass(frozen=True)
class Delivery:
    """Events on the devices, added up; reports of ``liars`` count as accepted, ``refused`` are by the server's code.
    ``bytes_per_report``: bytes of all upload bodies, retries included, over the accepted reports.
    """

    devices: int = 0
    liars: int = 0
    accepted: int = 0
    refused: Mapping[str, int] = field(default_factory=dict)
    retries: int = 0
    bytes_per_report: float = 0.0
    seconds: float = 0.0

    def __add__(self, other: Delivery) -> Delivery:
        """The events of both, one after the other."""
        accepted = self.accepted + other.accepted
        sent = self.bytes_per_report * self.accepted + other.bytes_per_report * other.accepted
        return Delivery(
            devices=self.devices + other.devices,
            liars=self.liars + other.liars,
            accepted=accepted,
            refused=dict(sorted((Counter(self.refused) + Counter(other.refused)).items())),
            retries=self.retries + other.retries,
            bytes_per_report=sent / max(1, accepted),
            seconds=self.seconds + other.seconds,
        )


class Place(Protocol):
    """The place where devices answer: an aggregator, with a relay and an issuer where the campaign has them."""

    @property
    def url(self) -> str: ...

    @property
    def relay_url(self) -> str | None: ...

    def sign(self, person: str, request: bytes) -> bytes: ...


def run_devices(
    place: Place,
    campaign: Campaign,
    people: Table,
    network: Network,
    *,
    seed: int | None = None,
    first: int = 0,
    behaviour: Behaviour = HONEST,
    on_device: Callable[[], object] = lambda: None,
) -> Delivery:
    """Let every person's device fetch the campaign, answer it and deliver its report.

    ``seed`` None takes the operating system's coins, as a real device does, else ``first`` is the number of the first
    device, for its coins. ``on_device`` is called after each device, by one thread at a time. Raises TransportError.
    """
    before, started = network.upload_bytes, time.monotonic()
    crew = _Crew(people, on_device)

    def work() -> None:
        for number, (record, label) in crew:
            coins = SYSTEM_COINS if seed is None else SeededCoins(f"{seed}/{first + number}")
            lies = coins.bernoulli(int(behaviour.liars * ONE))
            try:
                if lies:
                    crew.done(_lie(place.url, campaign, behaviour, network, coins))
                else:
                    person = f"person {first + number} of {campaign.id}"
                    crew.done(_contribute(place, person, campaign, network, coins, record, label))
            except LdpError as error:
                crew.stop(TransportError(error.code, f"{'lying ' * lies}device {number + 1}: {error}"))

    workers = [threading.Thread(target=work, name=f"devices-{place}", daemon=True) for place in range(THREADS)]
    for worker in workers:
        worker.start()
    try:
        for worker in workers:
            worker.join()
    finally:
        crew.stop()
    if crew.failure is not None:
        raise crew.failure
    sent = (network.upload_bytes - before) / max(1, crew.delivery.accepted)
    return replace(crew.delivery, bytes_per_report=sent, seconds=time.monotonic() - started)


def _contribute(
    place: Place,
    person: str,
    campaign: Campaign,
    network: Network,
    coins: Coins,
    record: Mapping[str, Any],
    label: str,
) -> Delivery:
    """Consent, answer, deliver; the device's own account of it."""
    epsilon, crowd = campaign.privacy.epsilon, campaign.privacy.crowd
    device = Device(
        ":memory:", max_total_epsilon=2 * epsilon, transport=network, coins=coins, policy=POLICY, relay=place.relay_url
    )
    most = None if crowd is None else crowd.epsilon
    joined = device.campaign(
        place.url, campaign.id, max_epsilon=epsilon, max_crowd_epsilon=most, max_if_both_collude=epsilon
    )
    joined.grant(timeout=PATIENCE)
    if campaign.issuer is not None:
        joined.obtain_token(partial(place.sign, person))
    joined.contribute(record, label)
    delivered = device.run_once(PATIENCE)
    status = joined.status()
    if not delivered:
        raise TransportError("timeout", f"could not deliver within {PATIENCE:g} seconds ({status.problem})")
    refused = Counter(status.dropped) + Counter(status.quarantined)
    return Delivery(1, accepted=status.sent, refused=refused, retries=status.retries)


def _lie(url: str, campaign: Campaign, behaviour: Behaviour, network: Network, coins: Coins) -> Delivery:
    """Upload made-up reports, as a device that has been tampered with would."""
    reports = lying_reports(campaign, draw_questions(campaign, make_secret(coins)), behaviour.target, coins)
    place = f"{url.rstrip('/')}/v1/campaigns/{campaign.id}/reports"
    body = encode_upload(reports, campaign)
    for attempt in range(1, TRIES + 1):
        try:
            answer = network.send(Request("POST", place, {"Content-Type": MEDIA_TYPE}, body, attempt), PATIENCE)
        except TransportError:
            continue
        if answer.status == HTTPStatus.OK:
            return Delivery(1, liars=1, accepted=len(reports) - len(json.loads(answer.body)["rejected"]))
    raise TransportError("timeout", f"could not deliver in {TRIES} tries")


class _Crew:
    """Hands the people out to the threads, one at a time, and adds up what became of them."""

    def __init__(self, people: Table, on_device: Callable[[], object]) -> None:
        self.delivery = Delivery()
        self.failure: TransportError | None = None
        self._waiting = enumerate(zip(records(people.frame), python_values(people.labels), strict=True))
        self._on_device = on_device
        self._stopped = False
        self._lock = threading.Lock()

    def __iter__(self) -> Iterator[tuple[int, tuple[Mapping[str, Any], str]]]:
        while True:
            with self._lock:
                next_one = None if self._stopped else next(self._waiting, None)
            if next_one is None:
                return
            yield next_one

    def done(self, delivery: Delivery) -> None:
        """A device has finished."""
        with self._lock:
            self.delivery += delivery
            self._on_device()

    def stop(self, failure: TransportError | None = None) -> None:
        """Hand nobody out any more; the first failure is kept."""
        with self._lock:
            self._stopped = True
            self.failure = self.failure or failure
