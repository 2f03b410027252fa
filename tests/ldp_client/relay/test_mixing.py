"""What leaves a relay leaves together, and says nothing of when or with whom it came."""

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

from ldp_client import MemoryStorage, StorageError, TransportError, perturb
from ldp_client.network.stdlib import HttpTransport
from ldp_client.relay import BATCH_HEADER, RELAY_POLICY, Mixing, Relay
from ldp_client.relay.forwarding import Pool
from ldp_client.testing import Answer
from protocols import LdpError, Report, decode_upload, encode_upload
from protocols.wire import MEDIA_TYPE


class Noting:
    """The real transport; notes the uploads' batch headers, and can be made to fail after the server has counted."""

    def __init__(self):
        self.batches = []
        self.lose = False

    def send(self, request, timeout, cancellation=None):
        if request.method == "POST":
            self.batches.append(request.headers.get(BATCH_HEADER))
        answer = HttpTransport(proxies={}).send(request, timeout)
        if self.lose and request.method == "POST":
            raise TransportError("timeout")
        return answer


@pytest.fixture
def network():
    return Noting()


@pytest.fixture
def build(server, campaign, clock, network):
    storage = MemoryStorage()

    def made(least=10, longest=None, **options):
        options.setdefault("mixing", Mixing(least, longest))
        options.setdefault("storage", storage)
        identifier = options.pop("campaign_id", campaign.id)
        return Relay(server.url, identifier, **{"clock": clock, "transport": network, **options})

    return made


def report(campaign):
    return perturb(campaign, RECORD, "yes")


def collect(relay, devices):
    """Uploads of so many devices, one after another."""
    kept = []
    for _ in range(devices):
        answers = report(relay.campaign())
        assert relay.collect(encode_upload(answers, relay.campaign())) == {}
        kept.extend(answers)
    return kept


def test_nothing_leaves_before_the_least_batch_is_there_however_long_it_takes(build, server, network, clock):
    relay = build(10)
    collect(relay, 9)
    assert not relay.run_once(5)
    clock.advance(1e9)
    assert not relay.run_once(5)
    assert server.uploads == []
    assert relay.gathering() == 9
    collect(relay, 1)
    assert relay.run_once(5)
    assert server.counted(relay.campaign_id) == 10
    assert network.batches == ["10"]
    assert relay.gathering() == 0


def test_after_the_longest_wait_fewer_leave_for_whom_nobody_vouches_and_nobody_alone_unless_they_may(
    build, server, clock, network
):
    relay = build(10, 100.0)
    collect(relay, 3)
    clock.advance(50)
    collect(relay, 1)
    assert not relay.run_once(5)
    clock.advance(50)
    assert relay.run_once(5)
    assert server.counted(relay.campaign_id) == 4
    collect(relay, 1)
    clock.advance(1e6)
    assert not relay.run_once(5)
    assert len(server.uploads) == 1
    assert build(mixing=Mixing(10, 100.0, least_late_batch=1)).run_once(5)
    assert network.batches == [None, None]


def test_the_wait_survives_a_restart_and_a_clock_that_is_set_back(build, server, clock):
    collect(build(10, 100.0), 2)
    clock.jump(-1e6)
    assert not build(10, 100.0).run_once(5)
    clock.advance(99)
    assert not build(10, 100.0).run_once(0.5)
    clock.advance(1)
    assert build(10, 100.0).run_once(5)
    assert server.counted(build().campaign_id) == 2


def test_a_batch_that_was_tried_never_grows(build, server, network):
    """The aggregator may hold it already: whoever joined would be told from the others by the second try."""
    relay = build(10)
    first = {answer.id for answer in collect(relay, 12)}
    network.lose = True
    assert not relay.run_once(5)
    collect(relay, 15)
    assert not relay.run_once(5)
    network.lose = False
    assert relay.run_once(1e4)
    campaign = relay.campaign()
    sets = [
        {block.ids[at : at + 16] for block in decode_upload(body, campaign) for at in range(0, len(block.ids), 16)}
        for body in server.uploads
    ]
    assert len(sets) >= 3
    assert all(sent == first or not sent & first for sent in sets)
    assert server.counted(campaign.id) == 27
    assert set(network.batches) == {"10"}


def test_neither_order_nor_time_of_arrival_is_kept_or_sent(build, server, clock):
    """Two relays that met the same devices in opposite orders, and at other times, keep and send the same bytes."""
    storages = [MemoryStorage(), MemoryStorage()]
    relays = [build(40, storage=storage) for storage in storages]
    uploads = [encode_upload(report(relays[0].campaign()), relays[0].campaign()) for _ in range(40)]
    for body in uploads:
        relays[0].collect(body)
    for position, body in enumerate(reversed(uploads)):
        relays[1].collect(body)
        clock.advance(60 * (position < 39))
    kept = []
    for storage in storages:
        with storage.transaction(write=False) as transaction:
            kept.append([entry for entry in transaction.items("") if "/pool/" in entry[0]])
    assert len(kept[0]) == 40
    assert kept[0] == kept[1]
    for relay in relays:
        assert relay.run_once(5)
    first, second = server.uploads
    assert first == second


def test_a_large_batch_in_several_uploads_is_one_batch(build, server, network):
    relay = build(30)
    server.largest_upload = 300
    collect(relay, 30)
    assert relay.run_once(1e4)
    assert server.counted(relay.campaign_id) == 30
    assert len(network.batches) == 3  # refused once, then two halves
    assert set(network.batches) == {"30"}


def test_a_batch_is_vouched_for_with_what_held_when_it_was_made(build, server, network):
    server.answer_with = lambda number: Answer(503, headers={"Retry-After": "30"}) if number == 0 else None
    relay = build(5)
    collect(relay, 5)
    assert not relay.run_once(5)
    assert build(1000).run_once(1e4)
    assert network.batches == ["5", "5"]


def test_nobody_vouches_for_reports_that_are_not_in_the_batch(build):
    """Another process has settled this batch and made the next one, meanwhile."""
    relay = build(5)
    collect(relay, 5)
    relay._form()
    stranger = encode_upload(report(relay.campaign()), relay.campaign())
    assert BATCH_HEADER not in relay._headers(stranger)


def test_devices_that_answer_everything_are_counted_and_not_their_reports(build, server, all_campaign, network):
    relay = build(5, campaign_id=all_campaign.id)
    collect(relay, 4)
    assert relay.gathering() == 4
    label_only = [answers[0] for answers in (report(all_campaign) for _ in range(20))]
    relay.collect(encode_upload(label_only, all_campaign))
    assert not relay.run_once(5)
    collect(relay, 1)
    assert relay.run_once(5)
    assert network.batches == ["5"]
    assert server.counted(all_campaign.id) == 5 * len(all_campaign.groups) + 20


def test_a_started_relay_forwards_the_batch_that_gathered_while_another_was_under_way(build, server, eventually):
    relay = build(5, clock=time)
    relay.start(first_delay=0.0)
    for _ in range(3):
        collect(relay, 5)
    # Where the thread came late, a batch is larger than five, and what is left may be fewer, which wait for company.
    assert eventually(lambda: server.counted(relay.campaign_id) >= 11)
    relay.close()
    assert server.counted(relay.campaign_id) + relay.gathering() == 15
    assert relay.gathering() < 5


def test_the_aggregator_does_not_learn_when_a_device_asks_for_the_model(build, server, clock, model):
    relay = build()
    server.publish_model(relay.campaign_id, model)
    for _ in range(5):
        assert relay.model() == model.encode()
    assert len(server.requests) == 1
    clock.advance(61)
    server.publish_model(relay.campaign_id, model + " ")
    assert relay.model() == (model + " ").encode()
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("named", "impossible"),
    [
        ("at least 1", [(0,), (-1,), (10, 1.0, 0)]),
        ("longest_wait", [(10, -1.0), (10, float("nan"))]),
        ("most_queued_reports", [(100_001,)]),
    ],
)
def test_a_mixing_that_cannot_be_is_refused(build, impossible, named):
    for mixing in impossible:
        with pytest.raises(LdpError, match=named):
            build(mixing=Mixing(*mixing))


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


def test_a_full_queue_refuses_an_upload_whole(server, campaign):
    policy = replace(RELAY_POLICY, most_queued_reports=5)
    relay = Relay(server.url, campaign.id, storage=":memory:", mixing=ALONE, policy=policy)
    relay.collect(upload(campaign, 4))
    with pytest.raises(StorageError):
        relay.collect(upload(campaign, 2))
    assert relay.gathering() == 4


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
