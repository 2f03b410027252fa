"""What is asked of an aggregator, and what passes for its answer."""

import json

import pytest

from ldp_client import MemoryStorage, StorageError, TransportError
from ldp_client.classifier import fetch_model, stored_model
from ldp_client.network.aggregator import Aggregator
from ldp_client.network.transport import PROBLEM_TYPE, UNREADABLE_CODE, Response, check_url
from ldp_client.policy import DEFAULT_POLICY
from ldp_client.runtime import seconds_left, within
from ldp_client.storage.contract import Cache
from ldp_client.testing import FakeClock
from ldp_protocols import DocumentError, LdpError
from ldp_protocols.document.model import Model
from ldp_protocols.document.schema import Label

JSON = {"content-type": "application/json"}
PAGE = Response(200, {"content-type": "text/html; charset=utf-8"}, b"<html>Room number?</html>")
LABEL = Label("missed_payment", ("yes", "no"))


class Scripted:
    """A transport that answers from a list, the last of it for ever, and notes what it was asked."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.requests = []
        self.timeouts = []

    def send(self, request, timeout, cancellation=None):
        self.requests.append(request)
        self.timeouts.append(timeout)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, TransportError):
            raise answer
        return answer if isinstance(answer, Response) else answer()


def aggregator(transport, campaign_id="A" * 43, clock=None, **options):
    options.setdefault("policy", DEFAULT_POLICY)
    return Aggregator("https://collect.example.org", campaign_id, transport, clock or FakeClock(), **options)


def of(body, headers=JSON, status=200):
    return Response(status, headers, body.encode() if isinstance(body, str) else body)


@pytest.mark.parametrize(
    "portal",
    [
        *(PAGE, Response(302, {"location": "http://login"}), Response(511), Response(304)),
        *(of(b"{}", {}), of(b"", {"content-type": "text/plain"})),
    ],
)
def test_a_captive_portal_is_a_transport_problem_and_is_asked_again(campaign, portal, code_of):
    untyped = of(campaign.document, {"content-type": "application/octet-stream"})  # The right hash needs no type.
    transport = Scripted(portal, portal, untyped)
    assert aggregator(transport, campaign.id).campaign() == campaign.document
    for fetch in (lambda: aggregator(Scripted(portal)).campaign(), lambda: aggregator(Scripted(portal)).model()):
        assert code_of(TransportError, fetch) == "not-the-aggregator"


def test_a_refusal_is_the_servers_and_is_not_asked_again(code_of):
    transport = Scripted(Response(404, {"content-type": "text/html"}))
    assert code_of(TransportError, aggregator(transport).campaign) == "http-404"
    assert len(transport.requests) == 1


def fetched(transport, storage, label=LABEL):
    return fetch_model(aggregator(transport), Cache(storage), label)


def test_an_answer_above_its_limit_is_refused_whoever_carried_it(model, monkeypatch, code_of):
    monkeypatch.setattr("ldp_client.network.aggregator.LARGEST_MODEL", len(model) - 1)
    assert code_of(TransportError, aggregator(Scripted(of(model))).model) == "answer-too-long"
    long = of(b" " * ((4 << 20) + 1), {})
    assert code_of(TransportError, aggregator(Scripted(long)).campaign) == "answer-too-long"


def test_a_model_about_another_label_is_refused_also_from_the_cache(model):
    storage = MemoryStorage()
    fetched(Scripted(of(model)), storage, None)
    with pytest.raises(DocumentError, match="another label"):
        fetched(Scripted(of(model)), storage, Label("other", ("yes", "no")))
    assert stored_model(aggregator(Scripted(PAGE)), Cache(storage), Label("other", ("yes", "no"))) is None
    assert stored_model(aggregator(Scripted(PAGE)), Cache(storage), LABEL) == Model.from_json(model)


def test_the_tries_of_a_fetch_share_its_time(monkeypatch, code_of):
    clock = FakeClock()
    monkeypatch.setattr("ldp_client.runtime.time", clock)

    def slow():
        clock.advance(0.6)
        raise TransportError("timeout")

    transport = Scripted(slow)
    with within(1.0):
        assert code_of(TransportError, aggregator(transport, clock=clock).campaign) == "timeout"
    assert transport.timeouts[0] == pytest.approx(1.0)
    assert len(transport.timeouts) <= 2
    assert sum(clock.slept) < 0.4
    transport = Scripted(PAGE)
    with within(0.0):
        assert code_of(TransportError, aggregator(transport).campaign) == "timeout"
    assert not transport.requests


def test_whatever_a_server_asks_an_app_waits_for_it_five_seconds_at_most(campaign):
    clock = FakeClock()
    busy = Response(503, {"content-type": PROBLEM_TYPE, "retry-after": "3600"}, b'{"code": "overloaded"}')
    with within(60.0):
        assert aggregator(Scripted(busy, of(campaign.document)), campaign.id, clock).campaign() == campaign.document
    assert clock.slept == [5.0]
    transport = Scripted(busy)
    with pytest.raises(TransportError, match="overloaded"):
        aggregator(transport, campaign.id, clock).campaign()
    assert (len(transport.requests), clock.slept) == (3, [5.0] * 3), "it does not wait after the last try"


def test_an_apps_headers_go_with_uploads_only_and_are_asked_for_each_time(campaign, code_of):
    tokens = iter(["first", "second"])
    seen = []

    def headers(body):
        seen.append(body)
        return {"Private-Token": next(tokens), "content-type": "text/html", "ACCEPT": "x"}

    transport = Scripted(of(campaign.document))
    made = aggregator(transport, campaign.id, headers=headers)
    made.campaign()
    assert transport.requests[0].headers == {"Accept": "application/json, application/problem+json"}
    first, second = made.upload(b"body", 1), made.upload(b"body", 2)
    assert [first.headers["Private-Token"], second.headers["Private-Token"]] == ["first", "second"]
    assert seen == [b"body", b"body"]
    assert {name.lower() for name in first.headers} == {"private-token", "content-type", "accept"}
    assert len(first.headers) == 3
    assert first.headers["Content-Type"] == "application/vnd.ldp-bayes.reports+msgpack"
    assert first.isolate == campaign.id
    assert aggregator(Scripted(PAGE), isolate="user-7").upload(b"", 1).isolate == "user-7"
    # The third token is not to be had.
    assert code_of(TransportError, lambda: made.upload(b"body", 3)) == "no-headers"


@pytest.mark.parametrize("campaign_id", ["", "A" * 42, "A" * 44, "é" * 43, "/" * 43])
def test_what_is_no_campaigns_id_is_refused_with_a_typed_error(campaign_id, code_of):
    assert code_of(LdpError, lambda: aggregator(Scripted(PAGE), campaign_id)) == "bad-campaign-id"


def test_a_cache_forgets_what_was_damaged():
    storage = MemoryStorage()
    cache = Cache(storage)
    assert cache.get("key") is None
    cache.put("key", b"value")
    assert cache.get("key") == b"value"
    for damage in (lambda stored: stored[:-1] + b"x", lambda _: b"a model of another version"):
        with storage.transaction(write=True) as transaction:
            transaction.put("key", damage(transaction.get("key")))
        assert cache.get("key") is None
        cache.put("key", b"again")
        assert cache.get("key") == b"again"


@pytest.mark.parametrize("code", ["storage-busy", "storage-full"])
def test_a_cache_that_cannot_be_used_is_done_without_and_waited_for_half_of_what_a_call_has_left(monkeypatch, code):
    """The other half is for what is fetched in its place."""
    clock, left = FakeClock(), []
    monkeypatch.setattr("ldp_client.runtime.time", clock)

    class Held:
        def transaction(self, *, write):
            left.append(seconds_left(1e9))
            clock.advance(left[-1])
            raise StorageError(code)

    cache = Cache(Held())
    with within(8.0):
        assert cache.get("key") is None
        cache.put("key", b"value")
    assert left == [4.0, 2.0]


HERE = ("localhost", "127.0.0.1:8080", "127.8.9.10", "[::1]:80")
ELSEWHERE = (
    "example.org",
    "127.0.0.1.example.org",
    "localhost.example.org",
    "127.evil.example.org",
    "10.0.0.1:8080",
    "mylocalhost",
    "evil.localhost",
    "127.1",
    "128.0.0.1",
    "0.0.0.0",
    "[::2]",
)


def test_https_anywhere_and_http_on_this_machine_are_allowed_and_plain_http_elsewhere_needs_to_be():
    for url in ("https://collect.example.org", "https://example.org/base/", *(f"http://{host}" for host in HERE)):
        assert check_url(url, allow_plain_http=False) == url.rstrip("/")
    for url in (f"http://{host}" for host in ELSEWHERE):
        with pytest.raises(LdpError, match="must be https"):
            check_url(url, allow_plain_http=False)
        assert check_url(url, allow_plain_http=True) == url


@pytest.mark.parametrize(
    "url",
    [
        *("", "example.org", "ftp://example.org", "https://", "https://[::1", "https://exämple.org"),
        *(f"https://example.org{rest}" for rest in ("?x=1", "?", "#", ":99999", ":0", ":port", "/a b", "/\n")),
        *("https://exa mple.org", "https://example..org", "https://" + "a" * 64 + ".org"),
        *("https://a:b@example.org", "https://good.example\\@evil.example"),
    ],
)
def test_anything_else_is_refused_with_a_typed_error(url):
    with pytest.raises(LdpError, match="url must") as caught:
        check_url(url, allow_plain_http=True)
    assert caught.value.code == "bad-url"


@pytest.mark.parametrize("code", ["", "a\nb", "x" * 65, "two words", "caf\u00e9", "\u202eevil"])
def test_a_code_is_of_one_pattern_wherever_it_stands(code):
    body = json.dumps({"code": code}).encode()
    assert Response(400, {"content-type": PROBLEM_TYPE}, body).problem_code() == UNREADABLE_CODE


def test_a_code_counts_in_a_problem_document_only_that_has_one():
    for none in (b"", b"[]", b'{"code": 7}', b"[" * 100_000):
        assert Response(400, {"content-type": PROBLEM_TYPE}, none).problem_code() is None
    body = b'{"code": "campaign-closed"}'
    for written in (PROBLEM_TYPE + "; charset=utf-8", " Application/Problem+JSON ;x", PROBLEM_TYPE.upper()):
        assert Response(409, {"content-type": written}, body).problem_code() == "campaign-closed"
    assert Response(409, {"content-type": "application/json"}, body).problem_code() is None
