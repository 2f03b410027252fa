"""The background thread."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ldp_client import Client, Event
from ldp_client.network.transport import Request, Response
from ldp_client.testing import Answer, FakeServer
from protocols import Campaign

RECORD = {"age": "young"}
MakeClient = Callable[..., Client]


def eventually(holds: Callable[[], bool], seconds: float = 10.0) -> bool:
    until = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > until:
            return False
        time.sleep(0.005)
    return True


@pytest.fixture
def make(make_client: MakeClient) -> MakeClient:
    def made(**options: object) -> Client:
        return make_client(clock=time, limits={"backoff_base": 0.01, "close_timeout": 0.5}, **options)

    return made


def test_what_is_contributed_is_delivered_and_retried_without_the_host(
    make: MakeClient, server: FakeServer, campaign: Campaign
) -> None:
    server.answer_with = lambda number: Answer(503) if number < 2 else None
    client = make()
    client.start(first_delay=0.0)
    client.contribute(RECORD, "yes")
    assert eventually(lambda: client.status().sent == 1)
    assert server.counted(campaign.id) == 1
    client.close()
    assert not client.status().running


def test_what_a_former_run_left_is_delivered_at_start(
    make: MakeClient, server: FakeServer, campaign: Campaign, tmp_path: Path
) -> None:
    make(storage=tmp_path / "device.db").contribute(RECORD, "yes")
    client = make(storage=tmp_path / "device.db")
    client.start(first_delay=0.0)
    assert eventually(lambda: server.counted(campaign.id) == 1)
    client.close()


def test_the_first_send_waits_for_a_random_time(make: MakeClient, server: FakeServer) -> None:
    client = make()
    client.start()
    client.contribute(RECORD, "yes")
    assert eventually(lambda: client.status().next_try is not None)
    delay = client.status().next_try
    assert delay is not None
    assert 0 < delay < client.policy.first_delay
    client.close()
    assert not server.uploads


def test_close_is_bounded_while_a_send_hangs(make: MakeClient, server: FakeServer) -> None:
    arrived, leave = threading.Event(), threading.Event()

    def hang(_: int) -> Answer:
        arrived.set()
        leave.wait(10)
        return Answer(503)

    server.answer_with = hang
    client = make()
    client.start(first_delay=0.0)
    client.contribute(RECORD, "yes")
    assert arrived.wait(10)
    started = time.monotonic()
    client.close(0.1)
    assert time.monotonic() - started < 2
    leave.set()
    assert eventually(lambda: not client.status().running)
    assert client.status().queued == 1


def test_a_closed_client_can_be_started_again(make: MakeClient, server: FakeServer, campaign: Campaign) -> None:
    client = make()
    client.start(first_delay=0.0)
    client.close()
    client.contribute(RECORD, "yes")
    client.start(first_delay=0.0)
    assert eventually(lambda: server.counted(campaign.id) == 1)
    client.close()


def test_closing_without_starting_is_no_error(make: MakeClient) -> None:
    make().close()


def test_nothing_raised_inside_reaches_the_host(
    make: MakeClient, campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    raised: list[object] = []
    monkeypatch.setattr(threading, "excepthook", raised.append)

    class Broken:
        def send(self, request: Request, timeout: float, cancellation: object = None) -> Response:
            raise MemoryError

    def callback(event: Event) -> None:
        raise KeyError(event)

    client = make(transport=Broken(), on_event=callback)
    client.load_campaign(campaign.document)
    client.contribute(RECORD, "yes")
    client.start(first_delay=0.0)
    assert eventually(lambda: client.status().retries >= 3)
    assert client.status().running
    client.close()
    assert not raised


_FORGETFUL = """
import sys, time
from ldp_client import Client
client = Client(sys.argv[1], sys.argv[2], storage=sys.argv[3], max_epsilon=4, max_total_epsilon=4)
client.grant()
client.start(first_delay=0.0)
client.contribute({"age": "young"}, "yes")
until = time.monotonic() + 10
while not client.status().retries and time.monotonic() < until:
    time.sleep(0.01)
"""


def test_an_app_that_forgets_to_close_exits_quickly_and_silently(
    server: FakeServer, campaign: Campaign, tmp_path: Path
) -> None:
    server.answer_with = lambda _: Answer(503, "overloaded", {"Retry-After": "3600"})
    arguments = [sys.executable, "-W", "error", "-c", _FORGETFUL, server.url, campaign.id, str(tmp_path / "device.db")]
    ran = subprocess.run(arguments, capture_output=True, text=True, timeout=30)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
    assert len(server.uploads) == 1
