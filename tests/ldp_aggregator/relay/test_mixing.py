"""What leaves a relay leaves together, and says nothing of when or with whom it came."""

import os
import signal
import subprocess
import sys
import time

import pytest
from records import RECORD

from ldp_aggregator.relay import BATCH_HEADER, Mixing, Relay
from ldp_client import MemoryStorage, StorageError, perturb
from ldp_client.network.stdlib import HttpTransport
from ldp_client.testing import Answer
from ldp_protocols import LdpError, Report, decode_upload, encode_upload


class Noting(HttpTransport):
    """Notes the uploads' batch headers."""

    def __init__(self):
        super().__init__(proxies={})
        self.batches = []

    def send(self, request, timeout, cancellation=None):
        if request.method == "POST":
            self.batches.append(request.headers.get(BATCH_HEADER))
        return super().send(request, timeout, cancellation)


@pytest.fixture
def network():
    return Noting()


@pytest.fixture
def build(server, campaign, clock, network):
    storage = MemoryStorage()

    def made(least=10, longest=None, *, of=campaign, **options):
        options = {"mixing": Mixing(least, longest), "storage": storage, "clock": clock, **options}
        return Relay(server.url, of.id, transport=network, **options)

    return made


def upload(campaign):
    return encode_upload(perturb(campaign, RECORD, "yes"), campaign)


def collect(relay, devices):
    """Uploads of so many devices, one after another."""
    bodies = [upload(relay.campaign()) for _ in range(devices)]
    for body in bodies:
        assert relay.collect(body) == {}
    return bodies


def ids_of(body, campaign):
    return {block.ids[at : at + 16] for block in decode_upload(body, campaign) for at in range(0, len(block.ids), 16)}


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
    campaign = relay.campaign()
    first = set().union(*(ids_of(body, campaign) for body in collect(relay, 12)))
    server.answer_with = lambda _: Answer(drop=True, commit=True)
    assert not relay.run_once(5)
    collect(relay, 15)
    assert not relay.run_once(5)
    server.answer_with = lambda _: None
    assert relay.run_once(1e4)
    sets = [ids_of(body, campaign) for body in server.uploads]
    assert len(sets) >= 3
    assert all(sent == first or not sent & first for sent in sets)
    assert server.counted(campaign.id) == 27
    assert set(network.batches) == {"10"}


class SharedStorage(MemoryStorage):
    """A storage on which another process is faster: it runs before the next transaction that writes."""

    faster = None

    def transaction(self, *, write, **options):
        if write and self.faster is not None:
            other, self.faster = self.faster, None
            other()
        return super().transaction(write=write, **options)


def test_of_two_processes_that_find_a_pool_full_one_makes_the_batch_and_it_never_grows(build, server, network):
    storage = SharedStorage()
    mine, theirs = build(10, storage=storage), build(10, storage=storage)
    campaign = mine.campaign()
    first = set().union(*(ids_of(body, campaign) for body in collect(mine, 10)))
    server.answer_with = lambda _: Answer(drop=True, commit=True)

    def other_process():
        assert not theirs.run_once(5)
        collect(theirs, 3)

    storage.faster = other_process
    assert not mine.run_once(5)
    assert mine.gathering() == 3
    server.answer_with = lambda _: None
    assert not mine.run_once(1e4)
    assert {frozenset(ids_of(body, campaign)) for body in server.uploads} == {frozenset(first)}
    assert set(network.batches) == {"10"}
    assert server.counted(campaign.id) == 10


def test_neither_order_nor_time_of_arrival_is_kept_or_sent(build, server, clock):
    """Two relays that met the same devices in opposite orders, and at other times, keep and send the same bytes."""
    storages = [MemoryStorage(), MemoryStorage()]
    relays = [build(40, storage=storage) for storage in storages]
    for position, body in enumerate(reversed(collect(relays[0], 40))):
        relays[1].collect(body)
        clock.advance(60 * (position < 39))
    kept = []
    for storage in storages:
        with storage.transaction(write=False) as transaction:
            kept.append([entry for entry in transaction.items("") if entry[0].startswith("pool/")])
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
    assert BATCH_HEADER not in relay._headers(upload(relay.campaign()))


def test_devices_that_answer_everything_are_counted_and_not_their_reports(build, server, all_campaign, network):
    relay = build(5, of=all_campaign)
    collect(relay, 4)
    assert relay.gathering() == 4
    label_only = [perturb(all_campaign, RECORD, "yes")[0] for _ in range(20)]
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


def test_in_a_series_each_window_is_mixed_on_its_own_and_who_is_late_waits_for_others_of_its_window(
    build, server, draft, network, clock
):
    del draft["closes"]
    series = server.publish({**draft, "windows": {"from": "2026-01-01T00:00:00Z", "length": "P1D", "count": 2}})
    relay = build(of=series)
    of_windows = {0: [], 1: []}
    while any(len(bodies) < 12 for bodies in of_windows.values()):
        body = upload(series)
        of_windows[decode_upload(body, series)[0].question // len(series.questions)].append(body)
    first, second = (bodies[:12] for bodies in of_windows.values())
    for body in (*first[:10], *second[:3]):
        assert relay.collect(body) == {}
    assert relay.collect(second[0]) == {}, "it waits already"
    assert relay.gathering() == 13
    assert not relay.run_once(5)
    assert (relay.gathering(), network.batches) == (3, ["10"])
    assert {one.question // len(series.questions) for one in decode_upload(server.uploads[0], series)} == {0}
    again = build(of=series)  # a process that begins anew
    for body in second[3:12]:
        assert again.collect(body) == {}
    assert again.run_once(5)
    assert (again.gathering(), network.batches) == (0, ["10", "10"])
    assert {one.question // len(series.questions) for one in decode_upload(server.uploads[1], series)} == {1}
    assert server.counted(series.id) == 22


def test_the_next_batch_is_awaited_of_all_windows_until_the_first_is_due(build, server, draft, clock):
    del draft["closes"]
    series = server.publish({**draft, "windows": {"from": "2026-01-01T00:00:00Z", "length": "P1D", "count": 2}})
    relay, of_windows = build(longest=300.0, of=series), {0: {}, 1: {}}
    while min(map(len, of_windows.values())) < 2:
        body = upload(series)
        of_windows[decode_upload(body, series)[0].question // len(series.questions)][body] = None
    assert relay._form() is None
    for (one, other, *_), wait in zip(of_windows.values(), (300.0, 200.0), strict=True):
        assert (relay.collect(one), relay.collect(other)) == ({}, {})
        assert relay._form() == wait
        clock.advance(100.0)


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


def test_the_aggregator_does_not_learn_when_a_device_asks_for_the_state_which_is_a_minute_old_at_most(
    build, server, clock
):
    relay = build()
    for _ in range(5):
        assert relay.state() == b'{"state": "open"}'
    server.states[relay.campaign_id] = "closing"
    clock.advance(59)
    assert relay.state() == b'{"state": "open"}'
    assert len(server.requests) == 1
    clock.advance(2)
    assert relay.state() == b'{"state": "closing"}'
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


@pytest.fixture
def relay(build, tmp_path):
    """What gathers is forwarded, however little it is: these tests are about the queue."""
    return build(1, storage=tmp_path / "relay.db")


def test_uploads_of_many_devices_are_forwarded_in_one_merged_block_per_question(relay, server, campaign):
    sent = collect(relay, 30)
    assert relay.run_once(5)
    (forwarded,) = server.uploads
    assert sum(block.count for block in decode_upload(forwarded, campaign)) == 30
    assert len(forwarded) < sum(map(len, sent))
    payloads = {block.ids: block.payloads for body in sent for block in decode_upload(body, campaign)}
    assert server.reports(campaign.id) == payloads


def test_a_relay_keeps_nothing_of_what_it_forwarded(relay, campaign, tmp_path):
    (body,) = collect(relay, 1)
    identifier = decode_upload(body, campaign)[0].ids
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


def test_another_answer_under_a_queued_id_is_told_as_a_success_and_a_payload_that_no_device_sends_is_refused_alone(
    relay, campaign
):
    width = campaign.questions[0].mechanism.width
    first, other = (Report(0, b"\x07" * 16, bytes([n]).ljust(width, b"\0")) for n in (0, 1))
    bad, good = Report(0, b"\x01" * 16, b"\xff" * width), Report(0, b"\x02" * 16, b"\0" * width)
    assert relay.collect(encode_upload([first], campaign)) == {}
    told = relay.collect(encode_upload([other, bad, good], campaign))
    assert told == {bad.id.hex(): "index-out-of-range"}
    assert relay.gathering() == 2


def test_a_device_refuses_the_storage_of_a_relay_which_goes_on(join, relay, server, campaign, tmp_path):
    relay.collect(upload(campaign))
    with pytest.raises(StorageError, match="damaged"):
        join(storage=tmp_path / "relay.db", answered=True)
    assert relay.run_once(5)
    assert server.counted(campaign.id) == 1


@pytest.mark.parametrize("scope", [None, "user-7"])
def test_a_relay_refuses_the_storage_of_a_device_whose_answer_leaves_by_the_device_alone(
    join, build, server, campaign, network, tmp_path, scope
):
    device, part = join(storage=tmp_path / "device.db", answered=scope is None)
    if scope is not None:
        part = device.scope(scope).campaign(server.url, campaign.id, max_epsilon=1)
        part.grant()
        part.contribute(RECORD, "yes")
    relay = build(1, storage=tmp_path / "device.db")
    with pytest.raises(LdpError, match="needs one of its own"):
        relay.collect(upload(campaign))
    with pytest.raises(LdpError, match="needs one of its own"):
        relay.gathering()
    assert not relay.run_once(0.5)
    assert (relay.problem, network.batches, server.uploads) == ("bad-storage", [], [])
    assert device.run_once(5)
    assert server.counted(campaign.id) == 1


def test_a_relay_process_killed_at_any_time_loses_nothing_it_acknowledged(server, campaign, tmp_path, join, eventually):
    command = [sys.executable, "-m", "ldp_aggregator.relay", server.url, campaign.id]
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
