"""A relay's own calls: what it takes part in, which storage it takes, and that each keeps its ``timeout``, here against
a file that another process really holds, a thread that does, and a server that is silent.
"""

import inspect
import json
import re
import socket
import subprocess
import sys
import threading
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from holding import PATIENCE, code_of, held, returned, silent_server

import ldp_client.storage.contract
import ldp_client.storage.sqlite
from ldp_aggregator.relay import Relay
from ldp_aggregator.relay.__main__ import main
from ldp_client import TransportError
from ldp_client.storage.sqlite import SqliteStorage
from ldp_protocols import LdpError

WRONG_USAGE = 2
SHORT = 0.02
NEVER = 600.0
"""Seconds, more than any test takes; what waits so long has not kept its timeout."""

BUSY = "storage-busy"
KEY = "K" * 43
CALLS = {
    "campaign": (lambda relay, _: relay.campaign(timeout=SHORT), "timeout"),
    "model": (lambda relay, _: relay.model(timeout=SHORT), "timeout"),
    "state": (lambda relay, _: relay.state(timeout=SHORT), "timeout"),
    "directory": (lambda relay, _: relay.directory(KEY, timeout=SHORT), "timeout"),
    "collect": (lambda relay, upload: relay.collect(upload, timeout=SHORT), "timeout"),
    "collect_sealed": (lambda relay, sealed: relay.collect_sealed(sealed, timeout=SHORT), "timeout"),
    "run_once": (lambda relay, _: relay.run_once(SHORT), False),
    "gathering": (lambda relay, _: relay.gathering(timeout=SHORT), BUSY),
    "queued": (lambda relay, _: relay.queued(timeout=SHORT), BUSY),
    "room": (lambda relay, _: relay.room(timeout=SHORT), BUSY),
    "rule": (lambda relay, _: relay.rule(timeout=SHORT), "timeout"),
    "missing": (lambda relay, _: relay.missing(timeout=SHORT), "timeout"),
    "expired": (lambda relay, _: relay.expired(timeout=SHORT), BUSY),
    "close": (lambda relay, _: relay.close(timeout=SHORT), None),
}


@pytest.fixture
def no_timeout_but_the_calls(monkeypatch):
    """The limit of a call that is given none would hide one that is not kept."""
    for module in (ldp_client.storage.sqlite, ldp_client.storage.contract):
        monkeypatch.setattr(module, "STORAGE_WAIT", NEVER)


def test_it_ends_before_it_listens_where_its_storage_is_a_devices(server, join, campaign, tmp_path, capsys):
    join(storage=tmp_path / "device.db", answered=True)
    files = {path: path.read_bytes() for path in tmp_path.iterdir()}
    assert main([server.url, campaign.id, "--storage", str(tmp_path / "device.db")]) == WRONG_USAGE
    assert "a relay needs one of its own" in capsys.readouterr().err
    assert files == {path: path.read_bytes() for path in tmp_path.iterdir()}


def test_every_public_method_takes_a_timeout_and_stands_in_the_table_or_waits_for_nobody():
    members = inspect.getmembers(Relay, callable)
    methods = {name: inspect.signature(member).parameters for name, member in members if not name.startswith("_")}
    assert {name for name, parameters in methods.items() if "timeout" not in parameters} == {"start"}
    assert methods.keys() == {*CALLS, "start"}


@pytest.mark.usefixtures("no_timeout_but_the_calls")
@pytest.mark.parametrize("name", CALLS)
def test_no_call_of_a_relay_waits_longer_than_its_timeout_for_a_held_file_and_a_silent_server(name, campaign, tmp_path):
    path = tmp_path / "relay.db"
    with SqliteStorage(path).transaction(write=True) as transaction:
        transaction.put("scope/relay/x", b"")
    call, expected = CALLS[name]
    with silent_server() as url, held(path):
        end = returned(lambda: call(Relay(url, campaign.id, storage=path, publisher=KEY), b""))
    assert (end.code if isinstance(end, LdpError) else end) == expected


@pytest.mark.usefixtures("no_timeout_but_the_calls")
def test_who_asks_a_relay_while_another_asks_for_it_waits_no_longer_than_the_timeout(campaign):
    asked, answer = threading.Event(), threading.Event()

    class Stuck:
        def send(self, request, timeout, cancellation=None):
            asked.set()
            answer.wait(PATIENCE)
            raise TransportError("unreachable")

    relay = Relay("https://collect.example.org", campaign.id, storage=":memory:", transport=Stuck())
    first = threading.Thread(target=lambda: code_of(relay.model))
    first.start()
    assert asked.wait(PATIENCE)
    assert code_of(lambda: relay.model(timeout=SHORT)) == "timeout"
    assert first.is_alive()
    answer.set()
    first.join(PATIENCE)


@pytest.mark.parametrize("text", [None, b"", b"\xc4", b"two\nlines"])
def test_a_file_without_a_token_is_named_before_it_listens(text, campaign, tmp_path, capsys):
    path = tmp_path / "token"
    if text is not None:
        path.write_bytes(text)
    line = ["http://127.0.0.1:1", campaign.id, "--storage", str(tmp_path / "relay.db"), "--token-file", str(path)]
    assert main(line) == WRONG_USAGE
    assert f"--token-file {path} " in capsys.readouterr().err
    assert not (tmp_path / "relay.db").exists()


@pytest.mark.parametrize("name", ["no.such.module:check", "json:nothing", "math:pi", ""])
def test_a_check_that_is_no_function_is_named_before_it_listens(name, campaign, tmp_path, capsys):
    line = ["http://127.0.0.1:1", campaign.id, "--storage", str(tmp_path / "relay.db"), "--admission", name]
    assert main(line) == WRONG_USAGE
    assert f"--admission: {name!r} " in capsys.readouterr().err
    assert not (tmp_path / "relay.db").exists()


class Documents(BaseHTTPRequestHandler):
    """Answers with a document, whatever is asked."""

    def __init__(self, document, *arguments):
        self.document = document
        super().__init__(*arguments)

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(self.document)))
        self.end_headers()
        self.wfile.write(self.document)

    def log_message(self, *_):
        """Silent."""


def status_of(address):
    try:
        with urlopen(address, timeout=20) as answer:
            return answer.status
    except HTTPError as refused:
        refused.close()
        return refused.code


def test_a_relay_waits_for_an_aggregator_that_is_not_up_says_so_in_its_log_and_forwards_nothing_meanwhile(
    campaign, tmp_path
):
    """Its doors are open: devices are told to come back, and whoever watches it that it is not ready."""
    with socket.create_server(("127.0.0.1", 0)) as bound:
        place = bound.getsockname()
    url = f"http://127.0.0.1:{place[1]}"
    line = [sys.executable, "-m", "ldp_aggregator.relay", url, campaign.id, "--storage", str(tmp_path / "relay.db")]
    line += ["--port", "0", "--operations-port", "0", "--least-batch", "2"]
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            told = process.stdout.readline()
            ports = re.search(r"^waiting for the aggregator, relaying on (\S+), watched on (\S+)$", told)
            first = json.loads(process.stderr.readline())
            assert (first["level"], first["event"]) == ("warning", "waiting for the aggregator")
            assert url.removeprefix("http://") in first["reason"]
            asked = {f"http://{ports[2]}/healthz": 200, f"http://{ports[2]}/readyz": 503}
            for address, status in {**asked, f"http://{ports[1]}/v1/campaigns/{campaign.id}": 503}.items():
                assert status_of(address) == status
            with HTTPServer(place, partial(Documents, campaign.document)) as aggregator:
                aggregator.handle_request()
                told = json.loads(process.stderr.readline())
            assert told["event"] == "the aggregator is there"
            assert status_of(f"http://{ports[2]}/readyz") == 200
        finally:
            process.terminate()
            assert [json.loads(line)["event"] for line in process.stderr] == ["stopping", "stopped"]
            assert process.wait(20) == 0
