"""README's snippet, as printed, in a process of its own, with something wrong: it reaches its last line in time."""

import json
import os
import re
import socket
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from issuing import issuer

from ldp_aggregator.service.signing import public_key
from ldp_client import Device
from ldp_protocols import Campaign
from ldp_protocols.campaign import document_id

README = Path(__file__).parents[2] / "README.md"
(SNIPPET,) = re.findall(r"^```python\n(from ldp_client import Device\n.*?)^```", README.read_text("utf-8"), re.M | re.S)
SECONDS = 6.0
PROGRAM = """
import json, resource, signal, sys, time
url, campaign_id, answer, limit = json.loads(sys.argv[1])
if limit is not None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
def agrees(*told):
    print("asked", flush=True)
    return answer
begun = time.monotonic()
SNIPPET
print(f"ended {time.monotonic() - begun:.3f}", json.dumps(campaign.next_step(timeout=0.5)), flush=True)
device.close(0)
"""
BIND = 'mount --bind . . && mount -o remount,ro,bind . && cd "$PWD" && exec "$@"'
READ_ONLY = ["unshare", "-m", "sh", "-c", BIND, "sh"]
"""Runs what follows where the folder of now cannot be written."""
NEWER = json.dumps({"version": 99, "title": "of a later time"}).encode()


@pytest.fixture
def run(tmp_path, server, campaign):
    """Runs the snippet; whether it asked, and what its next step is at the end."""

    def ran(*, url=server.url, of=campaign.id, answer=True, limit=None, publisher=None, before=()):
        pinned = "max_epsilon=2)" if publisher is None else f"max_epsilon=2, publisher={publisher!r})"
        program = PROGRAM.replace("SNIPPET", SNIPPET.replace("max_epsilon=2)", pinned))
        given = json.dumps([url, of, answer, limit])
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(
            [*before, sys.executable, "-c", program, given],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        *asked, last = done.stdout.splitlines()
        seconds, step = re.fullmatch(r"ended (\S+) (.*)", last).groups()
        assert float(seconds) < SECONDS
        return bool(asked), tuple(json.loads(step))

    return ran


@pytest.fixture
def agreed(tmp_path, server, campaign):
    """The storage of somebody who agreed, and has not answered yet."""
    path = tmp_path / "ldp.sqlite"
    with Device(path, max_total_epsilon=4) as device:
        assert device.campaign(server.url, campaign.id, max_epsilon=2).decide(agreed=True).step == "contribute"
    return path


@contextmanager
def saying(said):
    """The address of a server that answers everything so; with nothing it is silent."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:

        def answer():
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                with connection:
                    connection.recv(1 << 16)
                    connection.sendall(said)

        if said is not None:
            threading.Thread(target=answer, daemon=True).start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        listening.shutdown(socket.SHUT_RDWR)


def test_nothing_is_wrong(run):
    assert run() == (True, ("nothing", "answered"))
    assert run() == (False, ("nothing", "answered"))


@pytest.mark.parametrize("damage", ["letter", "page", "value"])
def test_the_storage_is_damaged_and_can_be_erased(run, agreed, server, campaign, damage):
    if damage == "letter":
        agreed.write_bytes(b"this is somebody's letter, not a database " * 100)
    elif damage == "page":
        agreed.write_bytes(agreed.read_bytes()[:4096] + bytes(len(agreed.read_bytes()) - 4096))
    else:
        with closing(sqlite3.connect(agreed)) as connection, connection:
            connection.execute("UPDATE entries SET value = x'00'")
    assert run() == (False, ("nothing", "storage-corrupt"))
    with Device(agreed, max_total_epsilon=4) as device:
        device.erase()
        assert device.ledger().receipts == ()
    assert run() == (True, ("nothing", "answered"))


def test_the_disk_is_full(run, agreed, tmp_path):
    assert run(limit=0) == (False, ("nothing", "storage-full"))
    agreed.unlink()
    assert run(limit=0) == (False, ("nothing", "storage-full"))
    assert not list(tmp_path.glob("ldp.sqlite*.room"))
    assert run() == (True, ("nothing", "answered"))


@pytest.mark.parametrize("is_new", [True, False])
def test_the_disk_is_read_only(run, agreed, is_new):
    if subprocess.run([*READ_ONLY, "true"], cwd=agreed.parent, check=False).returncode:
        pytest.skip("this user mounts nothing")
    if is_new:
        agreed.unlink()
    assert run(before=READ_ONLY) == (False, ("nothing", "storage-read-only"))


@pytest.mark.parametrize("way", ["no folder", "a file in the way"])
def test_there_is_no_place_for_the_storage(run, tmp_path, monkeypatch, way):
    if way == "a file in the way":
        (tmp_path / "device").write_bytes(b"")
    monkeypatch.setitem(globals(), "SNIPPET", SNIPPET.replace("ldp.sqlite", "device/ldp.sqlite"))
    assert run() == (False, ("nothing", "storage-unavailable"))


def test_a_later_version_wrote_the_storage_and_it_can_be_erased(run, agreed):
    with closing(sqlite3.connect(agreed)) as connection, connection:
        connection.execute("PRAGMA user_version = 99")
    assert run() == (False, ("nothing", "storage-newer"))
    Device(agreed, max_total_epsilon=4).erase()
    assert run() == (True, ("nothing", "answered"))


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (None, "timeout"),
        (b"", "connection-lost"),
        (b"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n", "http-500"),
        (b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\n<html>", "not-the-aggregator"),
        (b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n[]", "wrong-hash"),
        (b"\x00\xff garbage \r\n\r\n" * 99, "connection-lost"),
    ],
)
def test_the_network_is_silent_or_says_something_else(run, said, reason):
    with saying(said) as url:
        asked, (step, why) = run(url=url)
    assert (asked, step) == (False, "nothing")
    assert why in {reason, "timeout"}  # At the end it is asked again, for half a second.


def test_nobody_listens(run):
    with closing(socket.create_server(("127.0.0.1", 0))) as gone:
        url = f"http://127.0.0.1:{gone.getsockname()[1]}"
    assert run(url=url) == (False, ("nothing", "unreachable"))


def test_the_document_is_newer(run):
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(NEWER)
    with saying(head + NEWER) as url:
        assert run(url=url, of=document_id(NEWER)) == (False, ("nothing", "invalid-document"))


def test_the_campaign_has_an_issuer(run, server, draft):
    of = server.publish(Campaign.compile({**draft, "issuer": issuer()}))
    assert run(of=of.id) == (True, ("token", None))


def test_the_publisher_has_signed_nothing(run):
    assert run(publisher=public_key(bytes(32))) == (False, ("nothing", "no-directory"))
