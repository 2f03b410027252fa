"""The relay's door against bare sockets."""

import json
import socket
import threading
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest

from ldp_aggregator.relay import RELAY_POLICY, Mixing, Relay
from ldp_aggregator.service.signing import public_key, sign_directory
from ldp_client import Device, MemoryStorage, TransportError, perturb
from ldp_client.network.stdlib import HttpTransport
from ldp_client.network.transport import Request
from ldp_protocols import encode_upload
from ldp_protocols.oblivious import REQUEST_TYPE
from ldp_protocols.wire import MEDIA_TYPE

LARGEST_UPLOAD = 1 << 20
LARGEST_REQUEST_HEAD = 16 << 10


LENGTHS = {
    (413, "body-too-large"): [
        *([f"Content-Length: {length}"] for length in (LARGEST_UPLOAD + 1, "0" * 18 + str(60 << 20), "9" * 5000))
    ],
    (400, "malformed-length"): [
        *([f"Content-Length: {length}"] for length in ("-5", "5_0", "\xb2")),
        *(["Content-Length:"], ["Content-Length: 5", "Content-Length: 5"], ["Content-Length: 5", " 62914560"]),
        ["Content-Length: 5", "content-length: 62914560"],
    ],
    (411, "length-required"): [
        *([], ["Content-Length : 5"], ["Transfer-Encoding: chunked"]),
        ["Content-Length: 5", "Transfer-Encoding: chunked"],
    ],
}


@pytest.fixture
def relay(server, campaign):
    return Relay(server.url, campaign.id, storage=MemoryStorage(), mixing=Mixing(1))


@pytest.fixture
def body(campaign):
    return encode_upload(perturb(campaign, {"age": "old"}, "no"), campaign)


def test_the_oldest_silent_connection_makes_room(serving, relay, campaign, body):
    """Whoever has something to say gets in, however many say nothing."""
    with serving(relay, most_connections=3, timeout=600) as gateway:
        silent = [socket.create_connection(("127.0.0.1", gateway.server_port), timeout=20) for _ in range(8)]
        for number in range(3):
            assert status_and_code(said(gateway, posted(campaign, body)))[0] == 200, number
        assert status_and_code(silent[0].recv(65536)) == (503, "too-many-connections")
        for one in silent:
            one.close()


def test_a_check_of_the_operators_own_is_asked_before_an_upload_is_read(serving, relay, campaign, body):
    asked = []

    async def with_a_word(campaign_id, headers):
        asked.append(campaign_id)
        return headers.get("X-Word") == "sesame"

    with serving(relay, admission=with_a_word) as gateway:
        upload = head(campaign, f"Content-Length: {len(body)}")
        sealed = upload.replace(f"/v1/campaigns/{campaign.id}/reports".encode(), b"/ohttp")
        for unread in (upload, sealed.replace(MEDIA_TYPE.encode(), REQUEST_TYPE.encode())):
            assert status_and_code(said(gateway, unread)) == (403, "not-admitted")
        assert status_and_code(said(gateway, posted(campaign, body, "X-Word: sesame")))[0] == 200
    assert asked == [campaign.id] * 3


def test_where_the_queue_is_full_an_upload_is_refused_whole_and_may_come_again(serving, server, campaign, body):
    policy = replace(RELAY_POLICY, most_queued_reports=2)
    relay = Relay(server.url, campaign.id, storage=MemoryStorage(), mixing=Mixing(1), policy=policy)
    two = encode_upload([perturb(campaign, {}, "no")[0] for _ in range(2)], campaign)
    with serving(relay) as gateway:
        assert status_and_code(said(gateway, posted(campaign, body)))[0] == 200
        refused = said(gateway, posted(campaign, two))
    assert status_and_code(refused) == (503, "queue-full")
    assert b"Retry-After: " in refused
    assert relay.gathering() == 1


def head(campaign, *lines):
    first = [f"POST /v1/campaigns/{campaign.id}/reports HTTP/1.1", "Host: x", f"Content-Type: {MEDIA_TYPE}"]
    return "\r\n".join([*first, *lines, "", ""]).encode("latin-1")


def posted(campaign, body, *lines):
    return head(campaign, f"Content-Length: {len(body)}", *lines) + body


def said(gateway, data):
    """All that the gateway answers until it hangs up."""
    received = b""
    with socket.create_connection(("127.0.0.1", gateway.server_port), timeout=20) as connection:
        connection.sendall(data)
        with suppress(ConnectionResetError):
            while piece := connection.recv(65536):
                received += piece
    return received


def status_and_code(answer):
    return int(answer.split()[1]), json.loads(answer.partition(b"\r\n\r\n")[2]).get("code", "")


@pytest.mark.parametrize("refusal", LENGTHS)
def test_a_length_that_is_too_large_or_none_is_refused_before_it_is_read(gateway, relay, campaign, refusal):
    for lines in LENGTHS[refusal]:
        # The body never comes: who waits for it answers nothing.
        assert status_and_code(said(gateway, head(campaign, *lines))) == refusal
    assert relay.gathering() == 0


def test_what_follows_a_body_is_no_second_request(gateway, relay, campaign, body):
    other = encode_upload(perturb(campaign, {"age": "old"}, "no"), campaign)
    one = head(campaign, f"Content-Length: 000{len(body)}") + body  # Leading zeros are what HTTP allows.
    answer = said(gateway, one + posted(campaign, other))
    assert answer.count(b"HTTP/1.1") == 1
    assert b"Connection: close" in answer
    assert relay.gathering() == 1


def test_a_body_that_breaks_off_keeps_nothing(gateway, relay, campaign, body):
    with socket.create_connection(("127.0.0.1", gateway.server_port), timeout=20) as connection:
        connection.sendall(posted(campaign, body)[:-1])
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(65536) == b""
    assert relay.gathering() == 0


@pytest.mark.parametrize(
    ("of", "media_type", "refusal"),
    [("x", MEDIA_TYPE, (404, "unknown-campaign")), (None, "text/plain", (415, "wrong-media-type"))],
)
def test_another_campaign_and_another_kind_of_body_are_refused(gateway, campaign, of, media_type, refusal):
    asked = head(campaign, "Content-Length: 1").decode()
    asked = asked.replace(campaign.id, of or campaign.id).replace(MEDIA_TYPE, media_type)
    assert status_and_code(said(gateway, asked.encode() + b"x")) == refusal


def test_the_largest_upload_is_read_to_its_end(gateway, campaign):
    assert status_and_code(said(gateway, posted(campaign, b"x" * LARGEST_UPLOAD))) == (400, "malformed-upload")


@pytest.mark.parametrize(
    "endless", [b"GET /" + b"x" * 2 * LARGEST_REQUEST_HEAD, b"GET / HTTP/1.1\r\n" + b"Name: x\r\n" * 5000]
)
def test_a_head_that_does_not_end_is_given_up(gateway, endless):
    assert b" 200 " not in said(gateway, endless)


@pytest.mark.parametrize("drip", [b"x", b"POST / HTTP/1.1\r\nName: ", None])
def test_a_connection_ends_in_its_time_whatever_drips_in(serving, relay, campaign, drip):
    start = head(campaign, "Content-Length: 100000") if drip is None else drip
    with (
        serving(relay, timeout=0.1) as gateway,
        socket.create_connection(("127.0.0.1", gateway.server_port), timeout=20) as connection,
    ):
        connection.sendall(start)
        connection.settimeout(0.02)
        # Drips until it is hung up on; a deadline that starts anew with every byte would never do so.
        with suppress(ConnectionError):
            while True:
                try:
                    if connection.recv(65536) == b"":
                        break
                except TimeoutError:
                    connection.sendall(b"x")


def test_connections_above_the_cap_are_told_to_come_back(serving, relay, campaign, body, monkeypatch):
    upload = posted(campaign, body)
    gate, begun, collect = threading.Event(), threading.Semaphore(0), relay.collect

    def slow(*given, **options):
        begun.release()
        gate.wait(20)
        return collect(*given, **options)

    monkeypatch.setattr(relay, "collect", slow)
    with serving(relay, most_connections=3) as gateway:
        busy = [threading.Thread(target=said, args=(gateway, upload)) for _ in range(3)]
        for thread in busy:
            thread.start()
        assert all(begun.acquire(timeout=20) for _ in busy)
        refused = said(gateway, b"")
        assert status_and_code(refused) == (503, "too-many-connections")
        assert b"Retry-After: " in refused
        gate.set()
        for thread in busy:
            thread.join()
        assert b" 200 " in said(gateway, upload)
    assert relay.gathering() == 1


def test_that_there_is_no_model_yet_is_asked_once_a_minute_too(serving, server, campaign, model, clock):
    relay = Relay(server.url, campaign.id, storage=MemoryStorage(), mixing=Mixing(1), clock=clock)
    asked = f"GET /v1/campaigns/{campaign.id}/model HTTP/1.0\r\n\r\n".encode()
    with serving(relay) as gateway:
        for _ in range(3):
            assert status_and_code(said(gateway, asked)) == (404, "no-model")
        assert len(server.requests) == 1
        server.publish_model(campaign.id, model)
        assert status_and_code(said(gateway, asked)) == (404, "no-model")
        clock.advance(61)
        assert b" 200 " in said(gateway, asked)
    assert len(server.requests) == 2


def test_a_gateway_hands_out_what_the_aggregator_has_and_no_tag_to_come_back_with(gateway, server, campaign, model):
    server.publish_model(campaign.id, model)
    for path, body in (("", campaign.document), ("/model", model.encode()), ("/state", b'{"state": "open"}')):
        url = f"{gateway.url}/v1/campaigns/{campaign.id}{path}"
        answer = HttpTransport(proxies={}).send(Request("GET", url, {}), 5)
        assert (answer.status, answer.body) == (200, body)
        assert not {"etag", "last-modified", "set-cookie"} & answer.headers.keys()


def test_a_device_behind_the_gateway_believes_what_its_publisher_signed_and_asks_the_aggregator_once(
    serving, server, campaign
):
    seed = bytes(32)
    key = public_key(seed)
    expires = datetime.now(timezone.utc) + timedelta(days=1)
    server.publish_directory(key, sign_directory(seed, 1, expires, {campaign.id: None}))
    relay = Relay(server.url, campaign.id, storage=MemoryStorage(), mixing=Mixing(1), publisher=key)
    with serving(relay) as gateway:
        for _ in range(3):
            device = Device(MemoryStorage(), max_total_epsilon=8)
            part = device.campaign(gateway.url, campaign.id, max_epsilon=4, publisher=key)
            assert part.refusal() is None
        other = Device(MemoryStorage(), max_total_epsilon=8)
        with pytest.raises(TransportError, match="no-directory"):
            other.campaign(gateway.url, campaign.id, max_epsilon=4, publisher=public_key(bytes([1]) * 32)).fetch()
    assert [path for _, path in server.requests if "/directories/" in path] == [f"/v1/directories/{key}"]


@pytest.mark.parametrize("publisher", [None, public_key(bytes(32))])
def test_a_directory_that_is_not_there_is_no_reason_to_come_back(serving, server, campaign, publisher):
    relay = Relay(server.url, campaign.id, storage=MemoryStorage(), mixing=Mixing(1), publisher=publisher)
    with serving(relay) as gateway:
        for name in (publisher, "None", "", "x"):
            answer = said(gateway, f"GET /v1/directories/{name} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            assert status_and_code(answer) == (404, "no-directory")


def test_each_publishers_directory_is_its_own(server, campaign):
    seeds = [bytes([number]) * 32 for number in (1, 2)]
    expires = datetime.now(timezone.utc) + timedelta(days=1)
    signed = {public_key(seed): sign_directory(seed, 1, expires, {campaign.id: None}) for seed in seeds}
    for key, document in signed.items():
        server.publish_directory(key, document)
    relay = Relay(server.url, campaign.id, storage=MemoryStorage(), mixing=Mixing(1), publisher=list(signed))
    assert {key: relay.directory(key) for key in signed} == signed
