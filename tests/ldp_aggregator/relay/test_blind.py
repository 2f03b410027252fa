"""Sealed uploads in a relay: mixed by count and length, unread, in an order by lot, kept until the gateway has them."""

import contextlib
import http.client
import json
import os
from contextlib import closing
from dataclasses import replace

import pytest
from holding import Failing

from ldp_aggregator.relay import BATCH_HEADER, RELAY_POLICY, Mixing, Relay
from ldp_aggregator.relay.blind import Arrival, Arrivals, sealed_report
from ldp_client import MemoryStorage, StorageError
from ldp_client.network.sealed import SealedAggregator
from ldp_client.network.transport import PROBLEM_TYPE, Response
from ldp_client.policy import DEFAULT_POLICY
from ldp_client.runtime import SYSTEM_CLOCK
from ldp_protocols import Campaign, DocumentError, Report, encode_upload
from ldp_protocols.document.gateway import Gateway
from ldp_protocols.oblivious import BATCH_TYPE, LENGTH_HEADER, REQUEST_TYPE, seal_header, sealed_bytes

LEAST_SEALED = 55

URL = "http://127.0.0.1:1"
LENGTHS = (100, 120)
GATEWAY = Gateway(5, bytes([9] + [0] * 31))


def sealed(length=100):
    """Bytes as a device seals them, for who cannot open them."""
    header = seal_header(5, 1)
    return header + os.urandom(length - len(header))


class Gate:
    """The aggregator, as far as a relay sees it."""

    def __init__(self, campaign):
        self.campaign = campaign
        self.batches = []
        self.answer_with = lambda number: None

    def send(self, request, timeout, cancellation=None):
        if request.method == "GET":
            assert "Authorization" not in request.headers, "the token goes with batches alone"
            return Response(200, {"content-type": "application/json"}, self.campaign.document)
        self.batches.append(request)
        usual = Response(200, {"content-type": "application/json"}, b'{"taken": 0}')
        return self.answer_with(len(self.batches) - 1) or usual

    @property
    def forwarded(self):
        """The sealed uploads of each batch."""
        lengths = [int(request.headers[LENGTH_HEADER]) for request in self.batches]
        return [
            [request.body[at : at + length] for at in range(0, len(request.body), length)]
            for request, length in zip(self.batches, lengths, strict=True)
        ]


@pytest.fixture
def campaign(draft):
    return Campaign.compile({**draft, "gateway": GATEWAY.to_json()})


@pytest.fixture
def gate(campaign):
    return Gate(campaign)


@pytest.fixture
def build(gate, campaign, clock):
    storage = MemoryStorage()

    def made(least=10, longest=None, **options):
        options = {"storage": storage, "clock": clock, "transport": gate, "token": "ldp_token", **options}
        options = {"sealed_lengths": LENGTHS, **options}
        return Relay(URL, campaign.id, mixing=Mixing(least, longest), **options)

    return made


@pytest.fixture
def relay(build):
    return build(1)


def collect(relay, count, length=100):
    bodies = [sealed(length) for _ in range(count)]
    for body in bodies:
        relay.collect_sealed(body)
    return bodies


def test_nothing_leaves_before_the_least_batch_is_there_and_then_all_of_it_in_one_request(build, gate, campaign):
    relay = build(10)
    bodies = collect(relay, 9)
    assert not relay.run_once(5)
    assert (gate.batches, relay.gathering()) == ([], 9)
    bodies += collect(relay, 1)
    assert relay.run_once(5)
    (request,) = gate.batches
    assert (request.method, request.url, request.isolate) == ("POST", URL + "/v1/ohttp/batch", campaign.id)
    assert dict(request.headers) == {
        "Content-Type": BATCH_TYPE,
        LENGTH_HEADER: "100",
        "Authorization": "Bearer ldp_token",
        BATCH_HEADER: "10",
    }
    assert sorted(gate.forwarded[0]) == sorted(bodies)
    assert relay.gathering() == 0


def test_what_is_sealed_to_any_of_the_campaigns_keys_is_taken(draft, code_of):
    key = f"{GATEWAY.key} 2027-06-01T00:00:00Z {replace(GATEWAY, key_id=7).key}"
    gateway = Campaign.compile({**draft, "gateway": {"key": key}}).gateway
    for key_id in (5, 7):
        assert sealed_report(seal_header(key_id, 1) + bytes(100), gateway, {107})
    assert code_of(DocumentError, sealed_report, seal_header(6, 1) + bytes(100), gateway, {107}) == "malformed-sealed"


def test_the_order_of_a_batch_is_drawn(build, gate):
    """20 uploads stay in their order less than once in 10^18, and each time begin with the same one in 5 * 10^11."""
    relay = build(20)
    first = set()
    for _ in range(10):
        bodies = collect(relay, 20)
        assert relay.run_once(5)
        assert gate.forwarded[-1] != bodies
        first.add(bodies.index(gate.forwarded[-1][0]))
    assert len(first) > 1


def test_each_length_is_gathered_on_its_own(build, gate):
    relay = build(5)
    collect(relay, 4, 100), collect(relay, 4, 120)
    assert not relay.run_once(5)
    assert (gate.batches, relay.gathering()) == ([], 8)
    collect(relay, 1, 120)
    assert not relay.run_once(5)
    assert [{len(body) for body in batch} for batch in gate.forwarded] == [{120}]
    assert relay.gathering() == 4


@pytest.mark.parametrize("status", [400, 401, 404, 409, 500, 503, 200, 202])
def test_whatever_else_is_answered_to_a_batch_is_a_retry_of_all_of_it(status, relay, gate, clock):
    gate.answer_with = lambda _: Response(status, {"content-type": PROBLEM_TYPE}, b'{"code": "some-code"}')
    collect(relay, 4)
    assert not relay.run_once(0.5)
    assert relay.problem in ("some-code", f"http-{status}")
    gate.answer_with = lambda _: None
    clock.advance(7200)
    assert relay.run_once(5)
    assert len(gate.forwarded[-1]) == 4


def test_a_batch_that_is_too_large_for_the_gateway_goes_in_halves(relay, gate):
    too_large = Response(413, {"content-type": PROBLEM_TYPE}, b'{"code": "body-too-large"}')
    gate.answer_with = lambda number: too_large if number == 0 else None
    collect(relay, 8)
    assert relay.run_once(5)
    assert [len(batch) for batch in gate.forwarded] == [8, 4, 4]


def test_what_was_forwarded_is_not_kept(gate, clock, campaign, tmp_path):
    path = tmp_path / "relay.db"
    relay = Relay(URL, campaign.id, storage=path, mixing=Mixing(1), clock=clock, transport=gate, sealed_lengths=LENGTHS)
    (body,) = collect(relay, 1)
    assert body in path.read_bytes()
    assert relay.run_once(5)
    assert relay.run_once(5)
    assert body not in path.read_bytes()
    with relay._storage.transaction(write=False) as transaction:
        assert [key for key, _ in transaction.items("")] == [f"campaign/{campaign.id}"]


WRONG = {
    "short": sealed(100)[: LEAST_SEALED - 1],
    "empty": b"",
    "another key": b"\x06" + sealed(100)[1:],
    "another KEM": sealed(100)[:2] + b"\x10" + sealed(100)[3:],
    "another cipher": seal_header(5, 2) + bytes(93),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_the_gateway_cannot_open_by_its_head_is_refused(name, relay):
    with pytest.raises(DocumentError, match="sealed"):
        relay.collect_sealed(WRONG[name])
    assert relay.gathering() == 0


def test_a_campaign_without_a_gateway_takes_nothing_sealed(draft, clock, code_of):
    plain = Campaign.compile(draft)
    relay = Relay(URL, plain.id, storage=MemoryStorage(), clock=clock, transport=Gate(plain))
    assert code_of(DocumentError, relay.collect_sealed, sealed()) == "no-gateway"


def test_what_is_kept_is_bounded(build, code_of):
    relay = build(2, policy=replace(RELAY_POLICY, most_queued_reports=3))
    collect(relay, 3)
    assert code_of(StorageError, relay.collect_sealed, sealed()) == "queue-full"


def test_garbage_of_any_other_length_than_the_campaigns_is_refused_and_fills_nothing(build, campaign):
    relay, length = build(5, sealed_lengths=()), sealed_bytes(campaign.upload_bytes)
    for wrong in (*range(LEAST_SEALED, LEAST_SEALED + 100), length - 1, length + 1, 2 * length):
        with pytest.raises(DocumentError, match=f"this has {wrong} bytes; .* uploads have {length}$"):
            relay.collect_sealed(sealed(wrong))
    assert relay.gathering() == 0
    collect(relay, 5, length)
    assert relay.run_once(5)


def test_a_device_seals_to_the_length_that_the_relay_knows_whatever_its_headers_are(campaign):
    body, lengths = bytes(campaign.upload_bytes), set()
    for headers in ({}, {"X-Platform": "a" * 200}, {"Authorization": "PrivateToken " + "x" * 480}):
        for base in ("https://x", "https://collect.example.org/behind/a/proxy"):
            where = (base, campaign.id, None, SYSTEM_CLOCK, DEFAULT_POLICY)
            one = SealedAggregator("https://relay/ohttp", GATEWAY.key, *where, headers=lambda _, more=headers: more)
            lengths.add(len(one.upload(body, 1).body))
    assert lengths == {sealed_bytes(campaign.upload_bytes)}


def test_the_same_bytes_are_kept_once_and_make_no_crowd(build, gate):
    relay = build(3)
    (body,) = collect(relay, 1)
    for _ in range(5):
        relay.collect_sealed(body)
    assert relay.gathering() == 1
    assert not relay.run_once(1)
    assert gate.batches == []


@pytest.mark.parametrize("error", [RuntimeError("a storage of somebody's own"), StorageError("storage-full")], ids=repr)
def test_where_the_storage_fails_nobody_is_told_that_it_was_kept(build, error):
    storage = Failing(error)
    relay = build(2, storage=storage)
    relay.campaign()
    storage.fails = "write"
    with pytest.raises(type(error)):
        relay.collect_sealed(sealed())
    storage.fails = None
    relay.collect_sealed(sealed())
    assert relay.gathering() == 1


def test_reports_in_the_clear_are_mixed_beside_and_not_with_sealed_ones(build, gate, campaign):
    relay = build(2)
    collect(relay, 1)
    question = campaign.questions[0]
    relay.collect(encode_upload([Report(question.index, bytes(16), bytes(question.mechanism.width))], campaign))
    assert not relay.run_once(1)
    assert (gate.batches, relay.gathering()) == ([], 2)


def ask(gateway, body, **headers):
    with closing(http.client.HTTPConnection("127.0.0.1", gateway.server_port, timeout=10)) as connection:
        connection.request("POST", "/ohttp", body, {"Content-Type": REQUEST_TYPE} | headers)
        with connection.getresponse() as answer:
            return answer.status, answer.read()


def test_the_door_answers_202_once_it_is_kept_and_nothing_else(gateway, relay):
    body = sealed()
    assert ask(gateway, body) == (202, b"")
    assert relay.gathering() == 1
    status, told = ask(gateway, b"x" * 60)
    assert (status, json.loads(told)["code"]) == (400, "malformed-sealed")
    assert ask(gateway, body, **{"Content-Type": "application/octet-stream"})[0] == 415
    # Refused before any of it is read: nothing of it is sent, or the client could meet a closed connection.
    assert ask(gateway, b"", **{"Content-Length": str((1 << 20) + 1)})[0] == 413


@pytest.mark.parametrize("ends", [MemoryError, KeyboardInterrupt, lambda: StorageError("storage-full")])
def test_whatever_ends_the_keeping_of_a_group_nobody_of_it_is_told_that_it_was_kept(ends):
    def keep(group):
        raise ends()

    group = [Arrival(Report(0, bytes([number]) * 16, b""), "sealed.100") for number in range(2)]
    with contextlib.suppress(MemoryError, KeyboardInterrupt):
        Arrivals(keep)._settle(group)
    assert all(arrival.is_settled and isinstance(arrival.refused, StorageError) for arrival in group)
