"""Heads that take the short way: none that aiohttp would understand in another way."""

import asyncio
from contextlib import closing, suppress
from unittest.mock import Mock

import pytest
from aiohttp.http_parser import HttpRequestParser
from hypothesis import given
from hypothesis import strategies as st

from ldp_aggregator.server.problems import ProblemError
from ldp_aggregator.server.sockets import heads
from ldp_aggregator.server.sockets.heads import MOST_HEADERS, Head, UploadHead, read_head
from ldp_protocols.wire import MEDIA_TYPE

LONGEST_KNOWN = 512
MOST_CACHED = 256


ID = "A" * 43
LINE = f"POST /v1/campaigns/{ID}/reports HTTP/1.1"
OTHER = "PUT /x HTTP/1.1"
HEADERS = ("Host: x", f"Content-Type: {MEDIA_TYPE}", "Content-Length: 44")


def head(*headers, line=LINE):
    return "\r\n".join((line, *headers, "", "")).encode("latin-1")


def test_an_upload_is_recognised():
    found = read_head(head(*HEADERS, "User-Agent: x", "Accept: */*"))
    assert (found.campaign_id, found.length, found.keeps_open, found.authorization) == (ID, 44, True, None)
    assert not read_head(head(*HEADERS, "Connection: close")).keeps_open
    assert read_head(head(*HEADERS, "Authorization: Bearer x")).authorization == "Bearer x"
    assert ("x-word", "sésame") in read_head(head(*HEADERS, "X-Word: sÃ©same")).headers


def test_a_sealed_upload_is_recognised_where_it_is_short():
    line = "POST /v1/ohttp HTTP/1.1"
    lengths = {16_384: UploadHead, 16_385: Head}
    for length, kind in lengths.items():
        found = read_head(head("Host: x", "Content-Type: message/ohttp-req", f"Content-Length: {length}", line=line))
        assert (type(found), found.length) == (kind, length)
    assert isinstance(read_head(head(*HEADERS, line=line)), Head), "of another media type"


ELSEWHERE = {
    "another method": head(*HEADERS, line=LINE.replace("POST", "PUT")),
    "HTTP/1.0": head(*HEADERS, line=LINE.replace("1.1", "1.0")),
    "a query": head(*HEADERS, line=LINE.replace("reports", "reports?x")),
    "another path": head(*HEADERS, line=LINE.replace("reports", "statistics")),
    "a whole URL": head(*HEADERS, line=LINE.replace("/v1", "http://x/v1")),
    "a short id": head(*HEADERS, line=LINE.replace(ID, ID[1:])),
    "two blanks": head(*HEADERS, line=LINE.replace("POST", "POST ")),
    "no media type": head(HEADERS[0], HEADERS[2]),
    "another media type": head(HEADERS[0], "Content-Type: application/json", HEADERS[2]),
    "nothing to read": head(*HEADERS[:2]),
    "an empty body": head(*HEADERS[:2], "Content-Length: 0"),
    "a page of another origin": head(*HEADERS, "Origin: https://example.org"),
    "compressed": head(*HEADERS, "Content-Encoding: gzip"),
    "asks first": head(*HEADERS, "Expect: 100-continue"),
    "chunks": head(*HEADERS[:2], "Transfer-Encoding: chunked"),
    "a long length": head(*HEADERS[:2], "Content-Length: 0044"),
    "an upgrade": head(*HEADERS, "Connection: upgrade", "Upgrade: h2c"),
    "a tunnel": head("Host: x", line="CONNECT x:1 HTTP/1.1"),
}


UNCLEAR = {
    "no host": head(*HEADERS[1:]),
    "two hosts": head(*HEADERS, "Host: y"),
    "an end before the end": b"\n".join((LINE.encode(), b"Host: x", b"", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")),
    "two lengths": head(*HEADERS, "Content-Length: 45"),
    "the same length twice": head(*HEADERS, "content-length: 44"),
    "a list of lengths": head(*HEADERS[:2], "Content-Length: 44, 44"),
    "a signed length": head(*HEADERS[:2], "Content-Length: +44"),
    "a hexadecimal length": head(*HEADERS[:2], "Content-Length: 0x2c"),
    "an endless length": head(*HEADERS[:2], "Content-Length: " + "9" * 30),
    "length and chunks": head(*HEADERS, "Transfer-Encoding: chunked"),
    "an unknown coding": head(*HEADERS, "Transfer-Encoding: identity"),
    "a blank before the colon": head(*HEADERS[:2], "Content-Length : 44"),
    "a folded line": head(*HEADERS, "X: a\r\n Content-Length: 1"),
    "a line feed alone": head(HEADERS[0], HEADERS[1] + "\nContent-Length: 44"),
    "an unknown version": head(*HEADERS, line=LINE.replace("1.1", "9.9")),
    "a null": head(*HEADERS, "X: \0"),
}


@pytest.mark.parametrize("name", ELSEWHERE)
def test_what_asks_for_more_is_left_to_aiohttp(name):
    assert not isinstance(read_head(ELSEWHERE[name]), UploadHead)


@pytest.mark.parametrize("name", UNCLEAR)
def test_what_can_be_understood_in_two_ways_is_no_upload(name):
    with suppress(ProblemError):
        assert not isinstance(read_head(UNCLEAR[name]), UploadHead)


def test_the_body_behind_any_other_head_is_framed_in_one_way_or_refused():
    for length in (0, 5, 10**17):
        assert read_head(head("Host: x", f"Content-Length: {length}", line=OTHER)) == Head(length, keeps_open=True)
    assert read_head(head("Host: x", line=OTHER)) == Head(0, keeps_open=True)
    assert read_head(head("Host: x", "Transfer-Encoding: chunked", line=OTHER)) == Head(None, keeps_open=False)
    assert read_head(head("Host: x", "Upgrade: h2c", "Content-Length: 5", line=OTHER)) == Head(5, keeps_open=False)
    assert read_head(head("Host: x", line="CONNECT x:1 HTTP/1.1")) == Head(0, keeps_open=False)
    refused = {
        "malformed-request": [
            ("Content-Length: 5", "Transfer-Encoding: chunked"),
            ("Content-Length: x",),
            ("Content-Length: 5", "Content-Length: 6"),
            ("Content-Length: 5", "content-length: 5"),
            ("Host: y",),
        ],
        "unmet-expectation": [("Expect: tea",)],
        "headers-too-large": [[f"X-{number}: y" for number in range(MOST_HEADERS)]],
    }
    for code, cases in refused.items():
        for lines in cases:
            with pytest.raises(ProblemError) as caught:
                read_head(head("Host: x", *lines, line=OTHER))
            assert caught.value.code == code


def test_a_hundred_headers_are_read_and_one_more_is_not():
    lines = [f"X-{number}: y" for number in range(100)]
    assert read_head(head("Host: x", *lines[:99], line=OTHER)) == Head(0, keeps_open=True)
    with pytest.raises(ProblemError, match="at most 100 headers"):
        read_head(head("Host: x", *lines, line=OTHER))


def test_heads_are_remembered_within_bounds():
    for number in range(3 * MOST_CACHED):
        read_head(head(*HEADERS, f"User-Agent: {number}"))
        read_head(head(*HEADERS, f"User-Agent: {number}", "Cookie: secret"))
        read_head(head(*HEADERS, "X-Forwarded-For: secret"))
    read_head(head(*HEADERS, "X: " + "x" * LONGEST_KNOWN))
    assert 0 < len(heads._cached) <= MOST_CACHED
    assert all(len(known) <= LONGEST_KNOWN and b"secret" not in known for known in heads._cached)


def test_of_a_head_that_shows_something_the_rest_is_remembered():
    def shown(number, *more):
        return head(*HEADERS[:2], f"Authorization: PrivateToken token={number}", *more, HEADERS[2])

    heads._cached.clear()
    found = [read_head(shown(number)) for number in range(3)]
    assert [one.authorization for one in found] == [f"PrivateToken token={number}" for number in range(3)]
    assert {frozenset(one.headers) - {("authorization", one.authorization)} for one in found} == {
        frozenset(read_head(head(*HEADERS)).headers)
    }
    assert list(heads._cached) == [head(*HEADERS)]
    twice, folded = shown(1, "Authorization: PrivateToken token=2"), shown(1, " folded")
    assert isinstance(read_head(twice), Head)
    with pytest.raises(ProblemError):
        read_head(folded)
    assert read_head(head(*HEADERS)).authorization is None


PIECES = st.sampled_from(
    [
        *HEADERS,
        "Content-Length: 44",
        "Content-Length: 4",
        "Content-Length:44",
        "Content-Length: 044",
        "Transfer-Encoding: chunked",
        "transfer-encoding:\tchunked",
        "Connection: close",
        "Connection: keep-alive, upgrade",
        "X-Y: " + "z" * 40,
        "Authorization: Bearer  x",
        'authorization: PrivateToken token="y"',
        " folded: 1",
        "X: \x0b",
        "X:",
        ": 1",
        "Content-Length",
    ]
)


@given(st.lists(PIECES, max_size=5), st.integers(0, 400), st.integers(0, 255), st.booleans())
def test_aiohttp_understands_every_upload_of_the_short_way_as_the_same_request(extra, place, byte, flips):
    read_head(head(*HEADERS))  # What is remembered is understood like what is read anew.
    data = bytearray(head(*HEADERS[:2], *extra, HEADERS[2]))
    if flips:
        data[place % (len(data) - 4)] = byte
    try:
        found = read_head(bytes(data))
    except ProblemError:
        return
    if not isinstance(found, UploadHead) or b"\r\n\r\n" in data[:-4]:
        return
    with closing(asyncio.new_event_loop()) as loop:
        parser = HttpRequestParser(Mock(_reading_paused=False), loop, 2**16, max_line_size=8190, max_field_size=8190)
        messages, _, _ = parser.feed_data(bytes(data) + b"x" * found.length)  # What aiohttp refuses is no upload.
        assert len(messages) == 1
        message, payload = messages[0]
        assert payload.is_eof(), "both see the body end at the same byte"
        assert (message.method, message.path) == ("POST", f"/v1/campaigns/{found.campaign_id}/reports")
        assert message.headers["Content-Length"].strip() == message.headers["Content-Length"]
        assert int(message.headers["Content-Length"]) == found.length
        assert message.headers.get("Authorization") == found.authorization
        assert not message.chunked
        assert message.should_close is not found.keeps_open
