"""A session's cookie: until when, of whom, sealed by which process; and where signing in may lead."""

from datetime import datetime, timedelta, timezone

import pytest

from ldp_aggregator.dashboard.session import _next, open_session, read_session

NOON = datetime(2026, 1, 10, 12, 0, 0, 999_999, tzinfo=timezone.utc)
KEY, DIGEST = b"k" * 32, b"d" * 32


def test_a_session_lasts_twelve_hours_and_not_a_second_more():
    session = open_session(DIGEST, NOON, KEY)
    end = datetime(2026, 1, 11, 0, 0, 0, tzinfo=timezone.utc)
    assert (session.digest, session.expires) == (DIGEST, end)
    assert read_session(session.cookie, end - timedelta(microseconds=1), KEY) == session
    assert read_session(session.cookie, end, KEY) is None


def test_a_cookie_with_any_character_changed_or_missing_or_of_another_process_is_none():
    cookie = open_session(DIGEST, NOON, KEY).cookie
    assert read_session(cookie, NOON, b"x" * 32) is None
    for place in range(len(cookie)):
        for wrong in (cookie[:place], cookie[:place] + cookie[place + 1 :], f"{cookie[:place]}0{cookie[place + 1 :]}"):
            assert wrong == cookie or read_session(wrong, NOON, KEY) is None
    for wrong in (None, "", "...", f"{cookie}.", f".{cookie}", f"{cookie}é"):
        assert read_session(wrong, NOON, KEY) is None


def test_a_form_is_of_one_session_and_one_process():
    first, second = (open_session(DIGEST, NOON, KEY) for _ in range(2))
    assert first.cookie != second.cookie
    token = first.form_token(KEY)
    assert first.sent_by(token, KEY)
    assert not second.sent_by(token, KEY)
    assert not first.sent_by(token, b"x" * 32)
    for wrong in ("", token[:-1], "é" * 64, token.upper()):
        assert wrong == token or not first.sent_by(wrong, KEY)


@pytest.mark.parametrize(
    "path", ["/", "/campaigns", "/campaigns/x?window=2", "/tokens#new", "/c%2fd", "/settings/login"]
)
def test_signing_in_leads_on_to_a_page_of_this_server(path):
    assert _next(path) == path


@pytest.mark.parametrize(
    "path",
    [
        *(None, "", "campaigns", "https://elsewhere.example/", "//elsewhere.example", "/\\elsewhere.example"),
        *("/login", "/login?next=/", "/logout", "/a/../b", "/a\\b", "/a\tb", "/a\nSet-Cookie: x", "/é", "\t/"),
    ],
)
def test_and_nowhere_else(path):
    assert _next(path) == "/"
