"""The background thread."""

import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from records import RECORD

from ldp_client.delivery import sender
from ldp_client.testing import Answer

_FORGETFUL = """
import sys, time
from ldp_client import Device
device = Device(sys.argv[3], max_total_epsilon=4)
part = device.campaign(sys.argv[1], sys.argv[2], max_epsilon=4)
part.grant()
device.start(first_delay=0.0)
part.contribute({"age": "young"}, "yes")
until = time.monotonic() + 10
while not part.status().retries and time.monotonic() < until:
    time.sleep(0.01)
"""


@pytest.fixture
def senders():
    """Counts the client's threads, but for those of other tests: a killed page's, or a host's that never closed."""
    before = set(threading.enumerate())
    return lambda: sum(one.name == "ldp-client" and one not in before for one in threading.enumerate())


@pytest.fixture
def make(join):
    def made(**options):
        return join(clock=time, limits={"backoff_base": 0.01}, **options)

    return made


def test_what_is_contributed_is_delivered_and_retried_without_the_host(make, server, campaign, eventually):
    server.answer_with = lambda number: Answer(503) if number < 2 else None
    device, part = make()
    with device:
        device.start(first_delay=0.0)
        part.contribute(RECORD, "yes")
        assert eventually(lambda: part.status().sent == 1)
        assert server.counted(campaign.id) == 1
        assert device.status().running
    assert not device.status().running


def test_what_a_former_run_left_is_delivered_at_start_and_a_closed_device_can_be_started_again(
    make, server, campaign, tmp_path, eventually
):
    make(storage=tmp_path / "device.db", answered=True)
    device, _ = make(storage=tmp_path / "device.db", granted=False)
    device.start(first_delay=0.0)
    assert eventually(lambda: server.counted(campaign.id) == 1)
    device.close()
    make(device=device.scope("user"), answered=True)
    device.start(first_delay=0.0)
    assert eventually(lambda: server.counted(campaign.id) == 2)
    device.close()


def test_close_is_bounded_while_a_send_hangs(make, held_answer, eventually):
    device, part = make()
    device.start(first_delay=0.0)
    part.contribute(RECORD, "yes")
    assert held_answer.arrived.wait(10)
    device.close(0.1)
    assert not held_answer.leave.is_set()
    held_answer.leave.set()
    assert eventually(lambda: not device.status().running)
    assert part.status().sent == 1


def test_nothing_raised_inside_reaches_the_host(make, campaign, monkeypatch, eventually):
    raised = []
    monkeypatch.setattr(threading, "excepthook", raised.append)

    class Broken:
        def send(self, request, timeout, cancellation=None):
            raise MemoryError

    def callback(event):
        raise KeyError(event)

    device, part = make(transport=Broken(), on_event=callback)
    part.contribute(RECORD, "yes")
    device.start(first_delay=0.0)
    assert eventually(lambda: part.status().retries >= 3)
    assert device.status().running
    device.close()
    assert not raised


def test_an_app_that_forgets_to_close_exits_quickly_and_silently(server, campaign, tmp_path):
    server.answer_with = lambda _: Answer(503, "overloaded", {"Retry-After": "3600"})
    arguments = [sys.executable, "-W", "error", "-c", _FORGETFUL, server.url, campaign.id, str(tmp_path / "device.db")]
    ran = subprocess.run(arguments, capture_output=True, text=True, timeout=30)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
    assert len(server.uploads) == 1


def test_at_exit_all_devices_together_wait_for_as_long_as_one(monkeypatch):
    now = 100.0
    waited = []

    class Hanging:
        def stop(self):
            waited.append("stopped")

        def close(self, timeout):
            nonlocal now
            waited.append(max(0.0, timeout))
            now += max(0.0, timeout)

    monkeypatch.setattr(sender, "_ALL", [Hanging(), Hanging(), Hanging()])
    monkeypatch.setattr(sender.time, "monotonic", lambda: now)
    sender._close_all()
    assert waited == ["stopped", "stopped", "stopped", 2.0, 0.0, 0.0]


def test_threads_that_contribute_first_at_once_start_one_thread(make, senders, eventually):
    for _ in range(30):
        device, _ = make()
        gate = threading.Barrier(4)
        device._install.driver._wanted = True

        def first(_, device=device, gate=gate):
            gate.wait()
            device._install.driver.wake()

        with ThreadPoolExecutor(4) as threads:
            list(threads.map(first, range(4)))
        assert senders() == 1
        device.close()
        assert eventually(lambda: senders() == 0)


def test_campaigns_and_users_of_one_device_share_one_thread(make, server, campaign, senders, eventually):
    device, part = make()
    device.start(first_delay=0.0)
    part.contribute(RECORD, "yes")
    for user in range(3):
        scope = device.scope(str(user))
        scope.start(first_delay=0.0)
        make(device=scope, answered=True)
    assert senders() == 1
    assert eventually(lambda: server.counted(campaign.id) == 4)
    device.close()
