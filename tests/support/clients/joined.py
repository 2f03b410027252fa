"""Fixtures: a campaign, a fake server, and devices that take part."""

import copy
import json
import threading
import time
from dataclasses import replace

import credit_draft
import pytest
from records import RECORD

import ldp_client.answering
from ldp_client import Device, MemoryStorage, Policy
from ldp_client.testing import FakeClock, FakeServer

DRAFT = {**credit_draft.DRAFT, "privacy": {"epsilon": 1.0}, "closes": None}

MODEL = {
    "version": 1,
    "kind": "naive-bayes",
    "label": "missed_payment",
    "classes": ["yes", "no"],
    "prior": [0.4, 0.6],
    "features": [
        {"name": "age", "kind": "categorical", "values": ["young", "old"], "likelihood": [[0.5, 0.2], [0.5, 0.8]]}
    ],
    "projection": None,
    "training": {},
}


@pytest.fixture
def draft():
    return copy.deepcopy(DRAFT)


@pytest.fixture
def model():
    return json.dumps(MODEL)


@pytest.fixture
def eventually():
    """Whether something holds before long: seconds that only what is stuck takes, on any machine."""

    def becomes(holds, seconds=20.0):
        until = time.monotonic() + seconds
        while not holds() and time.monotonic() < until:
            time.sleep(0.005)
        return holds()

    return becomes


@pytest.fixture
def renewed():
    """Wait until what is fetched for the next call is there."""

    def wait():
        for one in threading.enumerate():
            if isinstance(one, threading.Timer):
                one.join(20)

    return wait


@pytest.fixture
def threads_of():
    """Count the threads of a name that this test has started: another test's may end, or hang on, meanwhile."""
    before = set(threading.enumerate())
    return lambda name: sum(one.name == name and one not in before for one in threading.enumerate())


@pytest.fixture
def perturbations(monkeypatch):
    """One entry for every perturbation."""
    made = []
    real = ldp_client.answering.perturb

    def counted(*arguments, **options):
        made.append(arguments[2])
        return real(*arguments, **options)

    monkeypatch.setattr(ldp_client.answering, "perturb", counted)
    return made


@pytest.fixture
def server():
    with FakeServer() as fake:
        yield fake


@pytest.fixture
def campaign(server, draft):
    return server.publish(draft)


@pytest.fixture
def all_campaign(server, draft):
    """Every device answers one question of each of four groups."""
    return server.publish({**draft, "privacy": {"epsilon": 4.0, "answers": "all"}})


class Holding:
    """An answer that the server holds back until it may ``leave``; ``arrived`` tells that an upload is there."""

    def __init__(self):
        self.arrived, self.leave = threading.Event(), threading.Event()

    def __call__(self, _):
        self.arrived.set()
        self.leave.wait(10)


@pytest.fixture
def held_answer(server):
    server.answer_with = Holding()
    return server.answer_with


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def join(server, campaign, clock):
    """A device and its part in a campaign, granted unless told otherwise, on a memory storage of its own.

    Where it has ``answered``, it has contributed ``RECORD``, of the class "yes".
    """

    def make(
        *, of=campaign, device=None, granted=True, answered=False, url=None, max_epsilon=4, limits=None, **options
    ):
        if device is None:
            options = {"storage": MemoryStorage(), "clock": clock, "max_total_epsilon": 8, **options}
            device = Device(options.pop("storage"), policy=replace(Policy(), **(limits or {})), **options)
        part = device.campaign(server.url if url is None else url, of.id, max_epsilon=max_epsilon)
        if granted:
            part.load(of.document)
            part.grant()
        if answered:
            part.contribute(RECORD, "yes")
        return device, part

    return make


@pytest.fixture
def start(join, tmp_path):
    """Start the app once more on the same file."""
    return lambda **options: join(**{"storage": tmp_path / "device.db", "granted": False, **options})
