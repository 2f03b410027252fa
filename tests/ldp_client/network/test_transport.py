"""Addresses, problem documents, Retry-After."""

import json

import pytest

from ldp_client.network.transport import PROBLEM_TYPE, UNREADABLE_CODE, Response, check_url, is_loopback
from protocols import LdpError

HERE = ("localhost", "127.0.0.1", "127.8.9.10", "::1")
ELSEWHERE = ("127.0.0.1.example.org", "localhost.example.org", "127.evil.example.org", "10.0.0.1")


@pytest.mark.parametrize("host", HERE + ELSEWHERE)
def test_loopback_is_this_machine_and_no_name_that_only_looks_like_it(host):
    assert is_loopback(host) == (host in HERE)


def test_https_anywhere_and_http_on_loopback_are_allowed_and_plain_http_elsewhere_needs_to_be():
    for url in ("https://collect.example.org", "https://example.org/base/", "http://127.0.0.1:8080", "http://[::1]:80"):
        assert check_url(url, allow_plain_http=False) == url.rstrip("/")
    for url in ("http://example.org", "http://localhost.example.org", "http://10.0.0.1:8080"):
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
    assert Response(409, {"content-type": PROBLEM_TYPE + "; charset=utf-8"}, body).problem_code() == "campaign-closed"
    assert Response(409, {"content-type": "application/json"}, body).problem_code() is None


@pytest.mark.parametrize("text", ["", "soon", "1.5", "٣", "Mon, 99 Jan 2001 00:00:00 GMT"])
def test_a_retry_after_without_meaning_asks_for_nothing(text):
    assert Response(503, {"retry-after": text}).retry_after(0.0) == 0.0
