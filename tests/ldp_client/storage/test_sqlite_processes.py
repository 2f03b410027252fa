"""Several processes, forks and kill -9 on one storage file."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from importlib.abc import SourceLoader
from importlib.util import spec_from_loader
from multiprocessing import get_context
from pathlib import Path

import pytest
from forking import holds_in_a_child, needs_fork
from records import RECORD

import ldp_client
from ldp_client import MemoryStorage
from ldp_client.testing import Answer
from ldp_protocols import decode_upload

# Draws anew what its record says, as a device whose data changes between two starts.
_DEVICE = """
import random, sys
from dataclasses import replace
from ldp_client import Device, Policy
url, campaign_id, folder, first, last = *sys.argv[1:4], int(sys.argv[4]), int(sys.argv[5])
policy = replace(Policy(), backoff_base=0.001, backoff_longest=0.02, request_timeout=2.0)
print("ready", flush=True)
for device in range(first, last):
    path = f"{folder}/{device}.db"
    client = Device(path, max_total_epsilon=4, policy=policy)
    part = client.campaign(url, campaign_id, max_epsilon=4)
    part.grant()
    part.contribute({"age": random.choice(["young", "old"])}, random.choice(["yes", "no"]))
    client.start(first_delay=0.0)
    while client.status().queued:
        client.run_once(0.05)
    client.close()
print("done", flush=True)
"""


def _start(server, campaign, folder, devices):
    arguments = [sys.executable, "-c", _DEVICE, server.url, campaign.id, str(folder)]
    arguments += [str(devices.start), str(devices.stop)]
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("most", [5, pytest.param(200, marks=pytest.mark.long)])
def test_a_client_killed_at_random_instants_counts_every_device_exactly_once(server, campaign, tmp_path, most):
    chance = random.Random(20261124)

    def drops_three_in_ten(_):
        return Answer(drop=True, commit=True) if chance.random() < 0.3 else None

    server.answer_with = drops_three_in_ten
    kills = last = 0
    while kills < most:
        # Windows of devices that overlap: most are met by several clients that are killed.
        devices = range(3 * kills, 3 * kills + 40)
        last = devices.stop
        process = _start(server, campaign, tmp_path, devices)
        process.stdout.readline()
        time.sleep(chance.uniform(0.0, 0.3))
        if process.poll() is None:
            os.kill(process.pid, signal.SIGKILL)
            kills += 1
        process.communicate()
    final = _start(server, campaign, tmp_path, range(last))
    # Only one that is stuck takes so long, on any machine.
    _, errors = final.communicate(timeout=3600)
    assert final.returncode == 0, errors

    assert server.counted(campaign.id) == last
    by_id = {}
    for upload in server.uploads:
        (block,) = decode_upload(upload, campaign)
        by_id.setdefault(block.ids, set()).add(upload)
    assert len(by_id) == last
    assert {len(uploads) for uploads in by_id.values()} == {1}


@needs_fork
@pytest.mark.parametrize("shared", [False, True], ids=["each opens it", "forks of one device"])
def test_processes_on_one_file_contribute_once(start, server, campaign, tmp_path, shared):
    device, part = start(clock=time, granted=True) if shared else (None, None)
    at_once, receipts = get_context("fork").Barrier(4), tmp_path / "receipts"

    def contributes(label):
        own, joined = (device, part) if shared else start(clock=time, granted=True)
        at_once.wait(20)
        receipt = joined.contribute({"age": "old"}, label)
        with receipts.open("a", encoding="ascii") as file:
            file.write(f"{receipt.at}\n")
        return own.run_once(20) and joined.status().sent == 1

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(lambda label: holds_in_a_child(lambda: contributes(label)), ["yes", "no"] * 2))
    assert len(set(receipts.read_text(encoding="ascii").splitlines())) == 1
    assert len(set(server.uploads)) == 1
    assert server.counted(campaign.id) == 1


@needs_fork
def test_a_child_starts_its_own_background_thread(join, server, campaign, tmp_path, eventually):
    device, part = join(storage=tmp_path / "device.db", clock=time)
    device.start(first_delay=0.0)
    assert device.status().running

    def delivers():
        ran_before = device.status().running
        part.contribute(RECORD, "yes")
        return eventually(lambda: part.status().sent == 1) and not ran_before

    assert holds_in_a_child(delivers)
    assert part.status().sent == 1
    device.close()
    assert server.counted(campaign.id) == 1


@needs_fork
def test_a_fork_while_threads_send_leaves_no_lock_behind(join, server, campaign, tmp_path):
    stop = threading.Event()

    def busy(number):
        while not stop.is_set():
            device, _ = join(storage=MemoryStorage() if number else tmp_path / "busy.db", clock=time, answered=True)
            device.run_once(5)

    threads = [threading.Thread(target=busy, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    try:
        for number in range(8):

            def delivers(number=number):
                signal.alarm(20)
                device, _ = join(storage=tmp_path / f"child-{number}.db", clock=time, answered=True)
                return device.run_once(10)

            assert holds_in_a_child(delivers)
    finally:
        stop.set()
        for thread in threads:
            thread.join()


@needs_fork
def test_what_a_thread_imports_while_another_forks_can_be_imported_in_the_child(monkeypatch):
    """Python copies the lock of a module under way into the child, where nobody gives it back."""
    found, read = threading.Event(), threading.Event()

    class Slow(SourceLoader):
        def find_spec(self, name, path=None, target=None):
            if name == "ldp_protocols.later":
                found.set()
                time.sleep(0.2)  # Here the module has a lock and nothing else.
                return spec_from_loader(name, self)
            return None

        def get_filename(self, name):
            return name

        def get_data(self, path):
            read.set()
            return b"import time; time.sleep(0.2)"

    monkeypatch.setattr(sys, "meta_path", [Slow(), *sys.meta_path])
    for moment in (found, read):
        thread = threading.Thread(target=import_module, args=("ldp_protocols.later",))
        thread.start()
        assert moment.wait(10)
        assert holds_in_a_child(lambda: signal.alarm(10) or import_module("ldp_protocols.later"))
        thread.join()
        monkeypatch.delitem(sys.modules, "ldp_protocols.later")


def test_one_registry_knows_what_a_fork_changes():
    """What registers itself elsewhere would be told in an order that nobody chose, and never be forgotten."""
    client = Path(ldp_client.__file__).parent
    hooks = [path.name for path in client.rglob("*.py") if "register_at_fork(" in path.read_text(encoding="utf-8")]
    assert hooks == ["runtime.py"]
