"""A gateway that forwards for many devices."""

import http.client
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest
from records import RECORD

from ldp_client import StorageError, perturb
from ldp_client.network.stdlib import HttpTransport
from ldp_client.relay import RELAY_POLICY, Mixing, Relay
from ldp_client.relay.forwarding import Pool
from ldp_client.testing import Answer
from protocols import DocumentError, Report, decode_upload, encode_upload
from protocols.wire import MEDIA_TYPE

ALONE = Mixing(least_batch=1)
"""What gathers is forwarded, however little it is: these tests are about the queue."""


@pytest.fixture
def relay(server, campaign, clock, tmp_path):
    return Relay(server.url, campaign.id, storage=tmp_path / "relay.db", mixing=ALONE, clock=clock)


def upload(campaign, devices=1):
    return encode_upload((report for _ in range(devices) for report in perturb(campaign, RECORD, "yes")), campaign)


def test_uploads_of_many_devices_are_forwarded_in_one_merged_block_per_question(relay, server, campaign):
    sent = [upload(campaign) for _ in range(30)]
    for body in sent:
        assert relay.collect(body) == {}
    assert relay.run_once(5)
    (forwarded,) = server.uploads
    assert sum(block.count for block in decode_upload(forwarded, campaign)) == 30
    assert len(forwarded) < sum(map(len, sent))
    payloads = {block.ids: block.payloads for body in sent for block in decode_upload(body, campaign)}
    assert server.reports(campaign.id) == payloads


def test_a_relay_keeps_nothing_of_what_it_forwarded(relay, campaign, tmp_path):
    body = upload(campaign)
    identifier = decode_upload(body, campaign)[0].ids
    relay.collect(body)
    assert identifier.hex().encode() in (tmp_path / "relay.db").read_bytes()
    assert relay.run_once(5)
    with relay._storage.transaction(write=False) as transaction:
        kept = [key for key, _ in transaction.items("")]
    assert kept == [f"batch/{campaign.id}", f"campaign/{campaign.id}", f"delivery/{campaign.id}"]
    assert identifier.hex().encode() not in (tmp_path / "relay.db").read_bytes()


def test_a_report_that_is_queued_already_is_a_success(relay, server, campaign):
    body = upload(campaign)
    assert relay.collect(body) == relay.collect(body) == {}
    assert relay.gathering() == 1
    assert relay.run_once(5)
    assert relay.collect(body) == {}
    assert relay.run_once(5)
    assert server.counted(campaign.id) == 1


def test_another_answer_under_a_queued_id_and_a_payload_that_no_device_sends_are_refused_alone(relay, campaign):
    width = campaign.questions[0].mechanism.width
    first, other = (Report(0, b"\x07" * 16, bytes([n]).ljust(width, b"\0")) for n in (0, 1))
    bad, good = Report(0, b"\x01" * 16, b"\xff" * width), Report(0, b"\x02" * 16, b"\0" * width)
    assert relay.collect(encode_upload([first], campaign)) == {}
    told = relay.collect(encode_upload([other, bad, good], campaign))
    assert told == {first.id.hex(): "conflicting-report", bad.id.hex(): "index-out-of-range"}
    assert relay.gathering() == 2


@pytest.mark.parametrize("body", [b"", b"\x92\x01\x90", b"not msgpack"])
def test_bytes_that_are_no_upload_queue_nothing(relay, body):
    with pytest.raises(DocumentError):
        relay.collect(body)
    assert relay.gathering() == 0


def test_a_full_queue_refuses_an_upload_whole(server, campaign):
    policy = replace(RELAY_POLICY, most_queued_reports=5)
    relay = Relay(server.url, campaign.id, storage=":memory:", mixing=ALONE, policy=policy)
    relay.collect(upload(campaign, 4))
    with pytest.raises(StorageError):
        relay.collect(upload(campaign, 2))
    assert relay.gathering() == 4


def test_what_is_too_large_is_split_and_poison_is_set_apart(relay, server, campaign):
    server.largest_upload = 400
    poison = perturb(campaign, RECORD, "yes")[0]
    relay.collect(encode_upload([poison], campaign))
    relay.collect(upload(campaign, 40))
    server.answer_with = lambda number: Answer(400, "malformed-upload") if poison.id in server.uploads[number] else None
    assert relay.run_once(1e6)
    delivery = relay.delivery()
    assert (delivery.sent, delivery.queued, delivery.quarantined) == (40, 0, {"malformed-upload": 1})
    assert server.counted(campaign.id) == 40


def test_a_relay_shows_its_token_with_uploads_and_with_nothing_else(server, campaign, clock):
    seen = []

    class Noting:
        def send(self, request, timeout, cancellation=None):
            seen.append(request)
            return HttpTransport().send(request, timeout)

    options = {"mixing": ALONE, "transport": Noting(), "token": "secret", "clock": clock}
    relay = Relay(server.url, campaign.id, storage=":memory:", **options)
    relay.collect(upload(campaign))
    assert relay.run_once(5)
    shown = [(request.method, request.headers.get("Authorization")) for request in seen]
    assert shown == [("GET", None), ("POST", "Bearer secret")]


def test_a_relay_and_a_device_share_a_file(join, relay, server, campaign, tmp_path):
    relay.collect(upload(campaign))
    _, part = join(storage=tmp_path / "relay.db", answered=True)
    part.withdraw()
    assert relay.run_once(5)
    assert server.counted(campaign.id) == 1


def test_a_client_speaks_to_a_gateway_as_to_the_aggregator(join, gateway, relay, server, campaign, model):
    for _ in range(5):
        device, part = join(url=gateway.url, granted=False)
        part.grant()
        part.contribute(RECORD, "yes")
        assert device.run_once(5)
        assert part.status().sent == 1
    assert not server.uploads
    assert relay.run_once(5)
    assert server.counted(campaign.id) == 5
    assert len(server.uploads) == 1
    server.publish_model(campaign.id, model)
    assert part.classifier().predict({"age": "old"}) == "no"
    assert part.classifier().predict({"age": "old"}) == "no"


def test_a_gateway_that_cannot_write_says_later(gateway, relay, campaign, monkeypatch):
    relay.campaign()

    def full(*_):
        raise StorageError("storage-full")

    monkeypatch.setattr(Pool, "put", full)
    connection = http.client.HTTPConnection("127.0.0.1", gateway.server_port, timeout=5)
    connection.request("POST", f"/v1/campaigns/{campaign.id}/reports", upload(campaign), {"Content-Type": MEDIA_TYPE})
    answer = connection.getresponse()
    assert (answer.status, json.loads(answer.read())["code"]) == (503, "storage-full")
    assert answer.headers["Retry-After"]
    connection.close()


def test_a_relay_process_killed_at_any_time_loses_nothing_it_acknowledged(server, campaign, tmp_path, join, eventually):
    command = [sys.executable, "-m", "ldp_client", "relay", server.url, campaign.id]
    command += ["--storage", str(tmp_path / "relay.db"), "--port", "0", "--gather", "0.02", "--least-batch", "1"]
    devices = []
    for number in range(3):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        url = "http://" + process.stdout.readline().split()[-1]
        for _ in range(10):
            device, _ = join(url=url, clock=time, answered=True)
            assert device.run_once(5)
            devices.append(device)
        if number < 2:
            os.kill(process.pid, signal.SIGKILL)
        else:
            assert eventually(lambda: server.counted(campaign.id) == len(devices))
            process.terminate()
        process.communicate(timeout=10)
    assert process.returncode == 0
    assert server.counted(campaign.id) == len(devices) == 30
