"""A device that seals: what leaves it, what it believes, and that nothing ever leaves in the clear."""

import contextlib
import json
import sys
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from unittest.mock import Mock
from urllib.parse import urlsplit

import pytest
from records import RECORD

from ldp_client import Device, MemoryStorage, Policy, RefusedError, TransportError
from ldp_client.manual import ManualDelivery
from ldp_client.network.transport import Response
from ldp_protocols import Campaign, LdpError
from ldp_protocols.document.gateway import Gateway
from ldp_protocols.oblivious import (
    REQUEST_TYPE,
    RESPONSE_TYPE,
    BinaryResponse,
    answer_key,
    decode_request,
    encode_response,
    nonce_bytes,
    seal_info,
    suite,
)
from ldp_protocols.wire import MEDIA_TYPE

ENC_BYTES = 32
HEADER_BYTES = 7


pytest.importorskip("pyhpke")

URL = "https://collect.example.org/base"
RELAY = "https://relay.example/some/path/"
SECRET = bytes(range(32))
ALL = BinaryResponse(200, (("content-type", "application/json"),), b'{"rejected": []}')


def gateway(*aeads):
    private = suite(1).kem.deserialize_private_key(SECRET)
    return Gateway(9, private.raw.public_key().public_bytes_raw(), aeads or (1, 3))


class Gate:
    """The network: a relay with a gateway behind it, where ``answer`` says nothing else."""

    begins_body = True

    def __init__(self):
        self.requests, self.messages, self.asked = [], [], []
        self.state = Response(404, {}, b"nothing here")
        self.inner = ALL
        self.answer = None

    def send(self, request, timeout, cancellation=None):
        if cancellation is not None:
            cancellation.begin_body()
        if request.method == "GET":
            self.asked.append(request)
            return self.state
        self.requests.append(request)
        if self.answer is not None:
            return self.answer(request)
        return Response(200, {"content-type": RESPONSE_TYPE}, self.opened(request.body))

    def opened(self, body):
        """The sealed answer to a sealed request."""
        header, enc = body[:HEADER_BYTES], body[HEADER_BYTES : HEADER_BYTES + ENC_BYTES]
        aead = header[-1]
        of = suite(aead)
        context = of.create_recipient_context(enc, of.kem.deserialize_private_key(SECRET), seal_info(header))
        self.messages.append(decode_request(context.open(body[HEADER_BYTES + ENC_BYTES :])))
        nonce = bytes(nonce_bytes(aead))
        key, of_key = answer_key(aead, context, enc, nonce)
        return nonce + key.seal(encode_response(self.inner, multiple=64), of_key)


@pytest.fixture
def gate():
    return Gate()


@pytest.fixture
def sealing(draft):
    return Campaign.compile({**draft, "gateway": gateway().to_json()})


@pytest.fixture
def part(join, gate, sealing):
    """A device with a relay, and its part in a campaign with a gateway, whose document it has."""

    def made(*, of=sealing, **options):
        device, joined = join(**{"of": of, "url": URL, "transport": gate, "relay": RELAY, **options})
        joined.load(of.document)
        return device, joined

    return made


@pytest.mark.parametrize("aeads", [(1, 3), (3, 1), (3,)])
def test_an_upload_is_sealed_with_the_first_cipher_of_the_document_and_has_one_header_outside(gate, part, draft, aeads):
    campaign = Campaign.compile({**draft, "gateway": gateway(*aeads).to_json()})
    shown = {"Authorization": "PrivateToken x"}
    device, joined = part(of=campaign, headers=lambda body: {**shown, "X-Length": str(len(body))}, answered=True)
    assert device.run_once(5)
    (request,) = gate.requests
    assert (request.method, request.url, request.headers) == ("POST", RELAY, {"Content-Type": REQUEST_TYPE})
    assert request.body[0] == 9
    assert request.body[HEADER_BYTES - 1] == aeads[0]
    (message,) = gate.messages
    path = f"/base/v1/campaigns/{campaign.id}/reports"
    assert message[:4] == ("POST", "https", "collect.example.org", path)
    told = {"content-type": MEDIA_TYPE, "authorization": "PrivateToken x", "x-length": str(len(message.body))}
    assert told.items() <= dict(message.headers).items()
    assert joined.status().fate == "arrived"


def test_of_several_keys_each_try_is_sealed_to_that_of_its_time(gate, part, draft, clock):
    first, second = gateway(1), replace(gateway(1), key_id=10)
    start = datetime.fromtimestamp(clock.time(), timezone.utc).replace(microsecond=0) + timedelta(days=1)
    campaign = Campaign.compile({**draft, "gateway": replace(first, later=((start, second),)).to_json()})
    device, joined = part(of=campaign, answered=True)

    def silence(request):
        raise TransportError("unreachable")

    gate.answer = silence
    sealed_to = []
    for days in (0, 0.9, 0.2):
        clock.advance(days * 86400)
        device.run_once(5)
        sealed_to.append({request.body[0] for request in gate.requests})
        gate.requests.clear()
    assert sealed_to == [{9}, {9}, {10}]
    gate.answer = None
    clock.advance(86400)
    assert device.run_once(5)
    assert (gate.requests[-1].body[0], joined.status().fate) == (10, "arrived")


def test_sealed_uploads_to_two_campaigns_share_no_connection_to_the_relay(gate, part, sealing, draft):
    """A relay, or an app's own transport, would see by the connection that they are one device's."""
    other = Campaign.compile({**draft, "title": "another", "gateway": gateway().to_json()})
    device, _ = part(answered=True)
    part(device=device, of=other, answered=True)
    assert device.run_once(60)
    assert {request.url for request in gate.requests} == {RELAY}
    assert {request.isolate for request in gate.requests} == {sealing.id, other.id}


@pytest.mark.parametrize("publisher", [None, "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"])
def test_whatever_is_fetched_is_fetched_from_the_relay_and_the_aggregator_hears_nobody(gate, join, sealing, publisher):
    """It would hand the document to one address at a time, and know whose the next answer is."""
    device = join(of=sealing, url=URL, transport=gate, relay=RELAY, granted=False)[0]
    part = device.campaign(URL, sealing.id, max_epsilon=4, publisher=publisher)
    for ask in (part.next_step, part.fetch, part.classifier, part.grant):
        with contextlib.suppress(LdpError):
            ask()
    if publisher is None:
        part.load(sealing.document)
        part.grant()
        part.contribute(RECORD, "yes")
        with contextlib.suppress(LdpError):
            part.classifier()
        assert device.run_once(5)
    assert gate.asked
    assert {urlsplit(one.url).netloc for one in (*gate.asked, *gate.requests)} == {"relay.example"}
    of_all = "https://relay.example/some/path/v1/"
    assert all(one.url.startswith((of_all + "campaigns/" + sealing.id, of_all + "directories/")) for one in gate.asked)


@pytest.mark.parametrize(
    ("url", "relay"),
    [
        (URL, "https://collect.example.org/ohttp"),
        (URL, "https://collect.example.org:8443/v1/ohttp"),
        (URL, "https://COLLECT.example.org/ohttp"),
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080/v1/ohttp"),
    ],
)
def test_the_aggregator_is_no_relay(join, sealing, url, relay):
    with pytest.raises(LdpError) as refused:
        join(of=sealing, url=url, relay=relay, granted=False)
    assert refused.value.code == "bad-relay"
    assert join(of=sealing, url="http://127.0.0.1:8080", relay="http://127.0.0.1:8090/ohttp", granted=False)


def test_an_answer_of_before_does_not_go_by_the_aggregator_either(part, gate, tmp_path):
    part(storage=tmp_path / "device.db", answered=True)
    relay = "https://collect.example.org/ohttp"
    device = Device(tmp_path / "device.db", max_total_epsilon=8, relay=relay, transport=gate)
    assert not device.run_once(1)
    assert not gate.requests
    assert device.status().problem == "bad-relay"
    assert Device(tmp_path / "device.db", max_total_epsilon=8, relay=RELAY, transport=gate).run_once(1e6)
    assert len(gate.requests) == 1


def test_where_nobody_waits_an_answer_leaves_hours_after_the_campaign_was_fetched(part, gate, clock, monkeypatch):
    device, _ = part(answered=True)
    device._install.driver.start = Mock()
    device.start()
    assert device._install.driver.start.call_args.args == (6 * 3600.0,)
    device.start(first_delay=5.0)
    assert device._install.driver.start.call_args.args == (5.0,)


@pytest.mark.parametrize(
    ("relay", "base"),
    [
        (RELAY, "https://relay.example/some/path"),
        ("https://relay.example.org/ldp/ohttp", "https://relay.example.org/ldp"),
        ("https://relay.example.org", "https://relay.example.org"),
    ],
)
def test_where_answers_are_sealed_the_relay_tells_how_the_campaign_stands(gate, part, sealing, relay, base):
    gate.state = Response(200, {"content-type": "application/json"}, b'{"state": "closing"}')
    _, joined = part(relay=relay, granted=False)
    assert joined.next_step().step == "nothing"
    assert joined.refusal().code == "campaign-closing"
    assert joined.status().epsilon == 0.0
    (request,) = gate.asked
    assert (request.method, request.url) == ("GET", f"{base}/v1/campaigns/{sealing.id}/state")
    assert set(request.headers) == {"Accept"}


def test_a_relay_that_hands_no_state_on_stops_nobody_and_no_relay_asks_nobody(gate, part):
    assert part(granted=False)[1].next_step().step == "ask"
    assert len(gate.asked) == 1
    gate.asked.clear()
    _, alone = part(granted=False, relay=None)
    assert alone.refusal().code == "no-relay"
    assert gate.asked == []


def test_what_was_sent_says_so_also_where_the_document_is_gone(part):
    device, joined = part(answered=True)
    assert device.run_once(5)
    (sent,) = device.sent()
    way = "sealed, by relay.example: it saw no answer, and the server no address"
    assert (sent.way, sent.reply) == (way, "arrived")
    assert device.export()["sent"][0]["way"] == sent.way
    assert device.export()["consents"][joined.id]["gateway"] == gateway().key


def test_a_device_with_a_relay_sends_in_the_clear_where_the_campaign_has_no_gateway_and_says_so(join, server):
    device, _ = join(answered=True, relay=RELAY)
    assert device.run_once(5)
    assert len(server.uploads) == 1
    assert [one.way for one in device.sent()] == ["sent to the server"]


def test_every_try_is_sealed_anew(gate, part, clock):
    device, _ = part(answered=True)
    gate.answer = lambda _: Response(503)
    for _ in range(4):
        device.run_once(0.5)
        clock.advance(3600)
    bodies = [request.body for request in gate.requests]
    assert len(bodies) > 2
    assert len({body[:HEADER_BYTES] for body in bodies}) == len({len(body) for body in bodies}) == 1
    assert len({body[HEADER_BYTES : HEADER_BYTES + ENC_BYTES] for body in bodies}) == len(bodies)
    for body in bodies:
        gate.opened(body)
    assert len({message.body for message in gate.messages}) == 1


def problem(status, code, **headers):
    body = json.dumps({"code": code}).encode()
    return Response(status, {"content-type": "application/problem+json", **headers}, body)


OTHERS = {
    "a success that nobody sealed": (Response(200, {"content-type": "application/json"}, ALL.body), "not-the-gateway"),
    "an answer that is not sealed": (Response(200, {"content-type": RESPONSE_TYPE}, ALL.body), "not-the-gateway"),
    "no answer": (Response(200, {"content-type": RESPONSE_TYPE}, b""), "not-the-gateway"),
    "202 with a page": (Response(202, {}, b"<html>"), "http-202"),
    "204": (Response(204), "http-204"),
    "a redirect": (Response(302, {"location": "https://elsewhere.example"}), "http-302"),
    "a campaign that the relay calls closed": (problem(410, "campaign-closed"), "campaign-closed"),
    "a body that it calls malformed": (problem(400, "malformed-upload"), "malformed-upload"),
    "one that it calls too large": (problem(413, "body-too-large"), "body-too-large"),
    "an unknown key": (problem(400, "unknown-gateway-key"), "unknown-gateway-key"),
    "a relay that is busy": (problem(503, "queue-full"), "queue-full"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_whatever_else_was_not_sealed_is_tried_again(name, gate, part, clock):
    answer, code = OTHERS[name]
    gate.answer = lambda _: answer
    device, joined = part(answered=True)
    assert not device.run_once(0.5)
    status = joined.status()
    assert (status.queued, status.sent, status.problem) == (1, 0, code)
    assert (status.dropped, status.quarantined) == ({}, {})
    gate.answer = None
    clock.advance(7200)
    assert device.run_once(5)
    assert joined.status().fate == "arrived"


def test_a_refusal_that_was_sealed_is_the_gateways_own(gate, part):
    closed = json.dumps({"code": "campaign-deleted"}).encode()
    gate.inner = BinaryResponse(410, (("content-type", "application/problem+json"),), closed)
    device, joined = part(answered=True)
    assert device.run_once(5)
    assert joined.status().dropped == {"campaign-deleted": 1}


def test_headers_that_cannot_be_sealed_are_a_retry(gate, part):
    device, joined = part(headers=lambda _: {"X-Token": "a\r\nb"}, answered=True)
    assert not device.run_once(0.5)
    assert joined.status().problem == "bad-request"
    assert gate.requests == []


@pytest.mark.parametrize(
    ("code", "remedy"), [("no-relay", r"Device\(\.\.\., relay="), ("not-installed", r"ldp-bayes-client\[ohttp\]")]
)
def test_without_a_relay_or_the_library_nothing_is_agreed_to_and_nothing_spent(code, remedy, part, monkeypatch):
    agreed = MemoryStorage()
    part(storage=agreed)
    if code == "not-installed":
        monkeypatch.setitem(sys.modules, "pyhpke", None)
    for storage in (MemoryStorage(), agreed):
        device, joined = part(relay=None if code == "no-relay" else RELAY, granted=False, storage=storage)
        assert joined.next_step() == ("nothing", code)
        ask = joined.grant if storage is not agreed else lambda joined=joined: joined.contribute(RECORD, "yes")
        with pytest.raises(RefusedError, match=remedy) as told:
            ask()
        assert told.value.code == code
        assert (device.ledger().total_epsilon, joined.status().queued) == (0, 0)


@pytest.mark.parametrize("code", ["no-relay", "not-installed"])
def test_an_app_that_loses_its_relay_or_its_library_sends_nothing_until_it_has_them(
    code, gate, part, clock, monkeypatch
):
    storage = MemoryStorage()
    part(storage=storage, answered=True)
    with monkeypatch.context() as without:
        if code == "not-installed":
            without.setitem(sys.modules, "pyhpke", None)
        relay = None if code == "no-relay" else RELAY
        device, joined = part(storage=storage, relay=relay, granted=False)
        assert not device.run_once(0.5)
        assert joined.status().problem == code
        assert gate.requests == []
    clock.advance(7200)
    assert part(storage=storage, granted=False)[0].run_once(5)
    assert len(gate.messages) == 1


@pytest.mark.parametrize(
    "relay", ["relay.example", "http://relay.example/", "ftp://relay.example", "https://u:p@relay.example"]
)
def test_the_address_of_a_relay_is_checked_like_others_and_the_policy_may_allow_one_without_tls(relay):
    with pytest.raises(LdpError, match="relay") as told:
        Device(":memory:", max_total_epsilon=1, relay=relay)
    assert told.value.code == "bad-relay"
    if relay.startswith("http://"):
        policy = replace(Policy(), allow_plain_http=True)
        assert Device(":memory:", max_total_epsilon=1, relay=relay, policy=policy).policy is policy


def test_an_app_that_sends_itself_hands_over_what_came_and_sends_again_what_it_forgot_meanwhile(gate, part, clock):
    storage = MemoryStorage()
    device, _ = part(storage=storage, answered=True)
    answer = gate.send(ManualDelivery(device).request(ManualDelivery(device).next_task()), 1)
    again, joined = part(storage=storage)
    ManualDelivery(again).on_result(ManualDelivery(again).next_task(), answer)
    assert joined.status().queued == 1
    clock.advance(7200)
    task = ManualDelivery(again).next_task()
    ManualDelivery(again).request(task)
    ManualDelivery(again).on_result(task, answer)
    assert joined.status().problem == "not-the-gateway", "it answers another request"
    clock.advance(7200)
    task = ManualDelivery(again).next_task()
    ManualDelivery(again).on_result(task, gate.send(ManualDelivery(again).request(task), 1))
    assert joined.status().fate == "arrived"


def test_of_two_answers_under_way_each_is_opened_by_what_sealed_its_own_request(gate, part, draft):
    """An app that sends itself still waits for the one, which is withdrawn meanwhile, when the other leaves."""
    other = Campaign.compile({**draft, "title": "another", "gateway": gateway().to_json()})
    device, joined = part(answered=True)
    _, second = part(device=device, of=other, answered=True)
    parts = {one.id: one for one in (joined, second)}
    early = ManualDelivery(device).next_task()
    early_answer = gate.send(ManualDelivery(device).request(early), 1)
    parts[early.place.campaign_id].withdraw(timeout=5)
    late = ManualDelivery(device).next_task()
    late_answer = gate.send(ManualDelivery(device).request(late), 1)
    assert late.place != early.place
    ManualDelivery(device).on_result(early, early_answer)
    ManualDelivery(device).on_result(late, late_answer)
    assert [one.status().fate for one in parts.values()] == ["arrived", "arrived"]
