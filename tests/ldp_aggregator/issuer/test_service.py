"""The issuer as a server: bodies in pieces, one name in one form, bounded times, a clean stop, health and metrics."""

import json
import re
import signal
import socket
import sqlite3
import stat
import subprocess
import time
import tomllib
from contextlib import closing, contextmanager

import pytest
from drafts import draft, text
from forked import programs
from issuing import issuer

from ldp_client.tokens import finished_token, token_request
from ldp_protocols import Campaign, LdpError
from ldp_protocols.tokens import REQUEST_BYTES, REQUEST_TYPE

pytest.importorskip("gmpy2")

from ldp_aggregator.issuer.issuing import make_issuer_key
from ldp_aggregator.issuer.service import Service, _answering

PORTS = re.compile(r"signs at http://127.0.0.1:(\d+)/token-request, watched at http://127.0.0.1:(\d+)")


class Issuer:
    """The program, as a process; ``request`` is one for its key, another for each number."""

    def __init__(self, folder, *options):
        self.folder, self.people = folder, folder / "people.sqlite"
        line = [str(programs() / "python"), "-m", "ldp_aggregator.issuer", str(folder / "issuer.pem"), *options]
        self._line = [*line, "--people", str(self.people), "--port", "0", "--operations-port", "0"]
        self.log = folder / "issuer.log"

    @contextmanager
    def running(self):
        with self.log.open("ab") as log:
            process = subprocess.Popen(self._line, stdout=subprocess.PIPE, stderr=log, text=True)
        try:
            self.published = process.stdout.readline()
            self.port, self.watched = map(int, PORTS.match(process.stdout.readline()).groups())
            self.process = process
            yield self
        finally:
            process.kill()
            process.wait()
            process.stdout.close()

    def refusal(self):
        """What it says where it does not start."""
        done = subprocess.run(self._line, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode != 0
        return done.stderr

    def request(self, number):
        from ldp_aggregator.issuer import read_issuer_key
        from ldp_aggregator.issuer.issuing import TokenIssuer

        key = read_issuer_key(self.folder / "issuer.pem")
        key_id = TokenIssuer(key, self.folder / "other.sqlite")._key_id
        return b"\0\2" + key_id[-1:] + (number + 2).to_bytes(256, "big")


def head(person, length=REQUEST_BYTES, more=()):
    names = person if isinstance(person, list) else [person]
    lines = [b"POST /token-request HTTP/1.1", b"Host: x", b"Connection: close"]
    lines += [b"X-Remote-User: " + (name if isinstance(name, bytes) else name.encode()) for name in names]
    lines += [f"Content-Type: {REQUEST_TYPE}".encode(), b"Content-Length: %d" % length, *more, b"", b""]
    return b"\r\n".join(lines)


def ask(port, *pieces):
    """Status and body of the answer to what comes in pieces."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as line:
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for number, piece in enumerate(pieces):
            time.sleep(0.02 if number else 0)
            line.sendall(piece)
        answer = b""
        while piece := line.recv(65536):
            answer += piece
    top, _, body = answer.partition(b"\r\n\r\n")
    return int(top[9:12]), body


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with Issuer(tmp_path_factory.mktemp("issuer")).running() as running:
        yield running


def test_a_request_may_come_in_any_number_of_pieces(served):
    body = served.request(1)
    whole = ask(served.port, head("ann"), body)
    assert (whole[0], len(whole[1])) == (200, 256)
    assert ask(served.port, head("ann") + body[:100], body[100:]) == whole
    assert ask(served.port, head("ann"), *(body[at : at + 20] for at in range(0, len(body), 20))) == whole


@pytest.mark.parametrize(
    ("person", "status", "code"),
    [
        (["ann", "victim"], 401, "two-people"),
        (["ann", "ann"], 401, "two-people"),
        ("", 401, "no-person"),
        (b"J\xf6rg", 401, "malformed-person"),
        ("x" * 257, 401, "malformed-person"),
        ("a\u200bb", 401, "malformed-person"),
    ],
)
def test_who_is_not_named_once_and_in_words_is_refused_with_a_sentence(served, person, status, code):
    answered, body = ask(served.port, head(person), served.request(1))
    assert (answered, f'"code": "{code}"'.encode() in body) == (status, True), body
    assert served.log.read_bytes() == b"", "and nothing is written down about it"


def test_a_person_is_one_however_the_name_is_written(served):
    signed = [ask(served.port, head(name), served.request(5))[0] for name in ("Zo\u00eb", "ZO\u00cb", "zoe\u0308 ")]
    assert signed == [200] * 3
    assert ask(served.port, head("zo\u00cb"), served.request(6))[0] == 403


@pytest.mark.parametrize("length", [0, REQUEST_BYTES - 1, REQUEST_BYTES + 1, 4_000_000])
def test_another_length_is_refused_by_the_head(served, length):
    status, body = ask(served.port, head("ann", length))
    assert (status, b'"malformed-request"' in body) == (422, True)


def test_everything_else_is_refused_in_words_of_its_own(served):
    asked = {
        b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n": (404, b"not-found"),
        b"GET /token-request HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n": (405, b"method-not-allowed"),
        b"no request\r\n\r\n": (400, b"malformed-request"),
    }
    for data, (status, code) in asked.items():
        answered, body = ask(served.port, data)
        assert (answered, b'"code": "' + code + b'"' in body) == (status, True)


def test_health_and_metrics_are_on_a_port_of_their_own(served):
    get = "GET {} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    assert ask(served.watched, get.format("/healthz").encode()) == (200, b'{"status": "ok"}')
    assert ask(served.watched, get.format("/readyz").encode()) == (200, b'{"status": "ready"}')
    ask(served.port, head("ann"), served.request(1))
    status, told = ask(served.watched, get.format("/metrics").encode())
    assert status == 200
    assert b'ldp_issuer_tokens_total{outcome="signed"}' in told
    assert b'ldp_requests_total{method="POST",route="/token-request",status="200"}' in told
    assert ask(served.port, get.format("/metrics").encode())[0] == 404


def test_every_outcome_is_counted_under_its_code(served):
    names = (
        'ldp_issuer_tokens_total{outcome="signed"}',
        'ldp_issuer_tokens_total{outcome="tokens-spent"}',
        'ldp_refusals_total{code="tokens-spent"}',
        'ldp_requests_total{method="POST",route="/token-request",status="403"}',
    )

    def counted():
        _, told = ask(served.watched, b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        lines = dict(line.rsplit(" ", 1) for line in told.decode().splitlines() if " " in line)
        return [float(lines.get(name, 0)) for name in names]

    before = counted()
    assert [ask(served.port, head("somebody"), served.request(number))[0] for number in (7, 8, 8)] == [200, 403, 403]
    assert [after - then for after, then in zip(counted(), before, strict=True)] == [1, 2, 2, 2]


async def test_an_issuer_that_could_keep_nothing_is_not_ready_and_says_so_as_every_answer_of_a_server():
    class Full:
        public_keys = ()

        def check(self):
            raise LdpError("people-unavailable", "the disk is full")

    service = Service(Full(), "X-Remote-User")
    answer = await _answering(service.readiness, "/readyz", "GET", service.metrics)(None)
    assert (answer.status, json.loads(answer.text)["code"]) == (503, "people-unavailable")
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_the_files_are_their_owners_alone_and_a_stop_waits_for_nobody_who_is_silent(tmp_path):
    with Issuer(tmp_path).running() as running:
        for name in ("issuer.pem", "people.sqlite"):
            assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
        silent = [socket.create_connection(("127.0.0.1", running.port)) for _ in range(40)]
        for line in silent[:20]:
            line.sendall(head("ann"))
        assert ask(running.port, head("ann"), running.request(1))[0] == 200
        started = time.monotonic()
        running.process.send_signal(signal.SIGTERM)
        assert running.process.wait(20) == 0
        assert time.monotonic() - started < 10
        for line in silent:
            line.close()


def test_the_number_of_tokens_is_kept_and_compared_with_the_documents(tmp_path):
    with Issuer(tmp_path, "--tokens", "3").running() as running:
        key = re.search(r'key = "([^"]+)"', running.published)[1]
    assert "begun with 3 tokens for each person, not 2" in Issuer(tmp_path, "--tokens", "2").refusal()
    document = tmp_path / "campaign.json"
    named = {"name": "issuer.example", "key": key, "tokens": 3}
    cases = {"promises 4 tokens": named | {"tokens": 4}, "has another key": issuer(tokens=3)}
    for told, one in cases.items():
        document.write_bytes(Campaign.compile(draft(text("colour", "red", "green"), issuer=one)).document)
        assert told in Issuer(tmp_path, "--tokens", "3", "--document", str(document)).refusal()
    document.write_bytes(Campaign.compile(draft(text("colour", "red", "green"), issuer=named)).document)
    with Issuer(tmp_path, "--tokens", "3", "--document", str(document)).running() as running:
        assert ask(running.port, head("ann"), running.request(1))[0] == 200


def test_with_a_key_for_relays_it_shows_both_and_signs_one_of_each_for_a_person(tmp_path):
    with Issuer(tmp_path, "--relay-key", str(tmp_path / "relays.pem")).running() as served:
        named = tomllib.loads(served.published)["issuer"]
        named["name"] = "issuer.example"
        campaign = Campaign.compile(draft(text("ill", "yes", "no"), issuer=named))
        secret = bytes(32)
        for for_relay in (False, True):
            signed, again, other = (
                ask(served.port, head("ann"), token_request(campaign, one, for_relay=for_relay))
                for one in (secret, secret, bytes([1] * 32))
            )
            assert (signed[0], again, other[0]) == (200, signed, 403)
            assert finished_token(campaign, secret, signed[1], for_relay=for_relay)
        line = b"GET /.well-known/private-token-issuer-directory HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        listed = json.loads(ask(served.port, line)[1])["token-keys"]
        assert [one["token-key"].rstrip("=") for one in listed] == [named["key"], named["relay_key"]]
        document = tmp_path / "campaign.json"
        document.write_bytes(campaign.document)
    assert "has another key" in Issuer(tmp_path, "--document", str(document)).refusal()


def test_files_that_are_not_what_they_are_named_as_are_refused_and_left_alone(tmp_path):
    """The same key twice, and a database of another program, whose tables it would stand among."""
    key = tmp_path / "issuer.pem"
    make_issuer_key(key)
    assert "make another key for relays" in Issuer(tmp_path, "--relay-key", str(key)).refusal()
    with closing(sqlite3.connect(tmp_path / "people.sqlite")) as other:
        other.execute("CREATE TABLE reports (id)")
    before = (tmp_path / "people.sqlite").read_bytes()
    assert "is a database of another program" in Issuer(tmp_path).refusal()
    assert (tmp_path / "people.sqlite").read_bytes() == before
