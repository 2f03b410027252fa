"""A log tells each step and each failure with its cause, and nothing of a person."""

import errno
import http.client
import logging
import socket
import ssl
import time

import pytest
from holding import Failing
from issuing import issuer, sign
from records import RECORD

import ldp_client
from ldp_client import LdpError, StorageError, TransportError
from ldp_client.ledger import read_installation
from ldp_client.log import Step, cause_of
from ldp_client.manual import ManualDelivery
from ldp_client.network.stdlib import HttpTransport
from ldp_client.network.transport import Response
from ldp_client.testing import Answer
from ldp_protocols import decode_upload

CERTIFICATE = ssl.SSLCertVerificationError(1, "x")
CERTIFICATE.verify_message = "self-signed certificate"
FAULTS = {
    "dns": (socket.gaierror(-2, "Name or service not known"), "unreachable", "dns: Name or service not known"),
    "tls": (CERTIFICATE, "tls-untrusted", "tls: self-signed certificate"),
    "timeout": (TimeoutError(), "timeout", "timeout: TimeoutError"),
    "refused": (ConnectionRefusedError(111, "Connection refused"), "unreachable", "refused: Connection refused"),
    "reset": (
        ConnectionResetError(104, "Connection reset by peer"),
        "connection-lost",
        "reset: Connection reset by peer",
    ),
    "network": (OSError(errno.ENETUNREACH, "Network is unreachable"), "unreachable", "network: Network is unreachable"),
    "http": (http.client.BadStatusLine("who are you"), "connection-lost", "BadStatusLine"),
}


@pytest.fixture
def steps():
    return []


def named(steps):
    return [(step.name, step.code) for step in steps]


def test_every_step_of_a_contribution_is_told_with_its_time_and_campaign(join, campaign, clock, steps):
    device, part = join(granted=False, log=steps.append)
    assert part.next_step().step == "ask"
    part.decide(True)
    part.contribute(RECORD, "yes")
    assert device.run_once(5)
    assert named(steps) == [
        ("document", None),
        ("state", None),
        ("next-step", "ask"),
        ("grant", None),
        ("decide", "contribute"),
        ("contribute", None),
        ("upload", None),
    ]
    assert {step.campaign_id for step in steps} == {campaign.id}
    assert {step.time for step in steps} == {clock.time()}
    assert {step.cause for step in steps} == {None}


@pytest.mark.parametrize("kind", FAULTS)
def test_why_a_server_is_not_reached_is_told_by_kind_and_in_the_systems_own_words(kind, join, steps, monkeypatch):
    error, code, cause = FAULTS[kind]

    def fails(*_):
        raise error

    monkeypatch.setattr(HttpTransport, "_exchange", fails)
    _, part = join(granted=False, log=steps.append)
    assert part.next_step() == ("nothing", code)
    assert {step[2:] for step in steps} == {("document", code, cause), ("next-step", code, cause)}


def test_a_name_that_nobody_knows_is_told_from_the_thread_that_asked(join, steps, monkeypatch):
    def unknown(*_, **__):
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    _, part = join(granted=False, url="https://nobody.example", log=steps.append)
    part.next_step()
    assert steps[-1].cause == "dns: Name or service not known"


def test_a_refusal_of_the_server_and_a_storage_that_fails_are_told(join, server, steps):
    storage = Failing(StorageError("storage-full"))
    device, part = join(storage=storage, answered=True, log=steps.append)
    server.answer_with = lambda _: Answer(503, "overloaded")
    device.run_once(1)
    assert ("upload", "overloaded") in named(steps)
    storage.fails = "write"
    del steps[:]
    with pytest.raises(StorageError):
        part.withdraw()
    assert named(steps) == [("withdraw", "storage-full")]


def test_a_database_that_is_none_is_told_with_its_error(join, steps, tmp_path):
    (tmp_path / "device.db").write_bytes(b"no database" * 100)
    _, part = join(storage=tmp_path / "device.db", clock=time, granted=False, log=steps.append)
    assert part.next_step().reason == "storage-corrupt"
    assert steps[-1].cause == "DatabaseError"


def test_what_an_apps_own_code_raises_is_told_by_its_type_alone(join, steps):
    class Chatty:
        def send(self, request, timeout, cancellation=None):
            raise RuntimeError(f"{RECORD} {request.body!r}")

    device, part = join(transport=Chatty(), answered=True, log=steps.append)
    device.run_once(0.01)
    assert steps[-1].cause == "RuntimeError"
    assert part.next_step().reason == "answered"


def test_no_step_ever_holds_a_value_an_id_a_token_a_secret_or_a_payload(join, server, draft, steps):
    """Planted faults: of the storage, the network, the server, the app's own code."""
    of = server.publish({**draft, "issuer": issuer()})
    record = {"age": "young", "hours": 3.14159}
    storage = Failing(StorageError("storage-full"))
    device, part = join(of=of, storage=storage, log=steps.append, headers=lambda body: {"X-App": body.hex()})
    part.obtain_token(sign)
    part.contribute(record, "yes")
    storage.fails = "write"
    device.run_once(0.01)
    storage.fails = None
    for answer in (Answer(503, "overloaded"), Answer(401, "wrong-token"), Answer(429, "overloaded")):
        server.answer_with = lambda _, answer=answer: answer
        device.run_once(0.01)
        device._install.sender._storage_pause = 0
    server.answer_with = lambda _: None
    for wrong in ("neither", "young"):
        with pytest.raises(LdpError):
            join(of=of, log=steps.append)[1].contribute(record, wrong)
    assert device.run_once(30)
    with storage.transaction(write=False) as transaction:
        secret = read_installation(transaction).secret
        token = transaction.get(f"token/{of.id}")
    planted = ["young", "3.14159", secret.hex(), token.hex(), repr(secret), repr(token)]
    for upload in server.uploads:
        for block in decode_upload(upload, of):
            planted += [block.ids.hex(), repr(block.ids), repr(block.payloads), upload.hex()]
    told = "\n".join(map(repr, steps))
    assert len(steps) > 8
    assert len(planted) > 8
    assert not [one for one in planted if one in told]


def test_a_log_that_raises_troubles_nobody_and_none_is_told_by_default(join):
    def fails(_):
        raise RuntimeError

    assert join(log=fails)[1].next_step().step == "contribute"


def test_what_an_app_sends_itself_is_told_too(join, steps):
    device, _ = join(answered=True, log=steps.append)
    task = ManualDelivery(device).next_task()
    ManualDelivery(device).on_result(task, TransportError("unreachable"))
    ManualDelivery(device).on_result(task, Response(200, {}, b'{"rejected": []}'))
    assert named(steps)[-2:] == [("upload", "unreachable"), ("upload", None)]


def test_the_standard_librarys_logging_takes_it(join, caplog):
    caplog.set_level(logging.INFO, "ldp_client")
    _, part = join(log=ldp_client.to_logging)
    assert part.next_step().step == "contribute"
    assert "next-step: contribute (None)" in caplog.text
    ldp_client.to_logging(Step(0.0, "c", "upload", "timeout", "timeout"))
    assert [one.levelname for one in caplog.records][-2:] == ["INFO", "WARNING"]


def test_an_error_without_another_behind_it_has_no_cause_but_a_timeout_and_a_document():
    assert cause_of(StorageError("storage-full")) is None
    assert cause_of(TransportError("timeout")) == "timeout"
