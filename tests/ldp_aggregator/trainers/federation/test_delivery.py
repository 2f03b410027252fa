"""A node's requests: the same bytes again until there is an answer, never beyond TLS, never to another address."""

import json
import re

import numpy as np
import pytest
from drafts import draft, text
from sockets import Scripted, exactly, until_blank_line

from ldp_aggregator.trainers import encode_share
from ldp_aggregator.trainers.federation.delivery import ATTEMPTS, Aggregator, send_share, withdraw_share
from protocols import Campaign, DocumentError

CAMPAIGN = Campaign.compile(draft(text("ward", "a", "b")))
VECTOR = np.arange(6)
SHARE = encode_share(CAMPAIGN, VECTOR)


@pytest.fixture
def scripted():
    """A server that gives the answers it is told, in turn: (status, headers, body). Notes what it was asked."""
    asked, answers = [], []

    def script(connection):
        head = until_blank_line(connection).decode()
        said = {name.lower(): value for name, value in re.findall(r"(.*?): (.*)\r\n", head)}
        asked.append(
            (*head.split()[:2], said.get("authorization"), exactly(connection, int(said.get("content-length", 0))))
        )
        status, headers, told = answers.pop(0)
        if status is not None:
            lines = [f"{name}: {value}\r\n" for name, value in {**headers, "Content-Length": len(told)}.items()]
            connection.sendall(f"HTTP/1.1 {status} X\r\n{''.join(lines)}Connection: close\r\n\r\n".encode() + told)

    with Scripted(script) as server:
        server.asked, server.answers = asked, answers
        server.to = Aggregator(f"http://127.0.0.1:{server.port}/", "ldp_secret")
        yield server


def problem(code, status, **headers):
    headers = {"Content-Type": "application/problem+json", **headers}
    return status, headers, json.dumps({"code": code, "title": "no"}).encode()


DONE = (200, {}, b'{"node": "north"}')


def test_a_retry_sends_the_same_bytes_and_waits_as_long_as_it_is_told(scripted):
    scripted.answers[:] = [(None, {}, b""), problem("overloaded", 503, **{"Retry-After": "7"}), DONE]
    waits = []
    assert send_share(scripted.to, SHARE, sleep=waits.append) == "north"
    path = f"/v1/campaigns/{CAMPAIGN.id}/statistics"
    assert scripted.asked == [("POST", path, "Bearer ldp_secret", SHARE)] * 3
    assert 0 <= waits[0] <= 1
    assert waits[1:] == [7]


def test_a_share_can_be_withdrawn_and_a_refusal_is_final_and_says_why(scripted):
    scripted.answers[:] = [(204, {}, b""), problem("campaign-closed", 409)]
    assert withdraw_share(scripted.to, CAMPAIGN.id) is None
    assert scripted.asked == [("DELETE", f"/v1/campaigns/{CAMPAIGN.id}/statistics", "Bearer ldp_secret", b"")]
    with pytest.raises(ConnectionError, match="campaign-closed: no"):
        send_share(scripted.to, SHARE)
    assert len(scripted.asked) == 2


def test_it_gives_up_after_some_tries_and_where_nobody_answers(scripted):
    scripted.answers[:] = [problem("store-unavailable", 503)] * ATTEMPTS
    with pytest.raises(ConnectionError, match=f"{ATTEMPTS} times; try again later: the same share counts once"):
        send_share(scripted.to, SHARE, sleep=lambda _: None)
    assert len(scripted.asked) == ATTEMPTS
    with pytest.raises(ConnectionError, match="no answer"):
        send_share(Aggregator("http://127.0.0.1:1", "t"), SHARE, sleep=lambda _: None)


def test_a_redirect_is_not_followed_and_somebody_elses_page_is_told(scripted):
    scripted.answers[:] = [(307, {"Location": f"{scripted.to.url}elsewhere"}, b""), (404, {}, b"<html>")]
    for status in (307, 404):
        with pytest.raises(ConnectionError, match=f"status {status}, and no problem document"):
            send_share(scripted.to, SHARE)
    assert [path for _, path, *_ in scripted.asked] == [f"/v1/campaigns/{CAMPAIGN.id}/statistics"] * 2


@pytest.mark.parametrize("data", [b"", b"\x93", SHARE[:-1], b"\x90", encode_share(CAMPAIGN, VECTOR)[:3]])
def test_what_is_no_share_is_never_sent(scripted, data):
    with pytest.raises(DocumentError):
        send_share(scripted.to, data)
    assert scripted.asked == []


@pytest.mark.parametrize(
    ("url", "token", "message"),
    [
        ("http://collect.example.org", "t", "must be https"),
        ("http://127.0.0.1.example.org", "t", "must be https"),
        ("ftp://localhost", "t", "must be like https"),
        ("https://", "t", "must be like https"),
        ("https://a:b@collect.example.org", "t", "user name or password"),
        ("https://collect.example.org?x=1", "t", "without query"),
        *(
            ("https://collect.example.org", token, "one word of printable ASCII")
            for token in ("", " t", "t\r\nX: y", "schlüssel")
        ),
    ],
)
def test_what_is_no_token_or_an_address_that_none_must_be_sent_to_is_refused(url, token, message):
    with pytest.raises(ValueError, match=message):
        Aggregator(url, token)


def test_plain_http_is_for_loopback_or_on_request():
    for url in ("http://localhost:8080", "http://127.8.8.8", "http://[::1]:8080", "https://collect.example.org/base"):
        assert Aggregator(url, "t").url == url
    assert Aggregator("http://collect.example.org", "t", allow_plain_http=True).token == "t"
