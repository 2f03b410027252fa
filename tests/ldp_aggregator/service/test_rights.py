"""Tokens: random, shown once, found by their hash."""

import base64
import hashlib
from datetime import datetime, timedelta, timezone

import pytest

from ldp_aggregator.service.rights import PREFIX, make_token

NOW = datetime(2026, 1, 1, tzinfo=timezone.utc)


def test_a_token_is_32_random_bytes_and_only_its_hash_is_kept():
    text, stored = make_token("one", "admin", NOW)
    assert len(base64.urlsafe_b64decode(text.removeprefix(PREFIX) + "=")) == 32
    assert stored.digest == hashlib.sha256(text.encode()).digest()
    assert text not in repr(stored)
    assert len({make_token("one", "admin", NOW)[0] for _ in range(100)}) == 100


@pytest.mark.parametrize(("name", "scope"), [("", "admin"), ("x" * 101, "admin"), ("a\nb", "admin"), ("x", "root")])
def test_a_token_without_name_or_known_scope_is_not_made(name, scope):
    with pytest.raises(ValueError, match=r"name|scope"):
        make_token(name, scope, NOW)


def test_a_token_ends_later_than_now_and_opens_one_campaign_at_the_least():
    for limits in ({"expires": NOW}, {"expires": NOW - timedelta(seconds=1)}, {"campaigns": []}):
        with pytest.raises(ValueError, match=r"future|at least"):
            make_token("x", "relay", NOW, **limits)
    _, token = make_token("x", "relay", NOW, expires=NOW + timedelta(seconds=1), campaigns=["B", "A", "B"])
    assert (token.is_in_use(NOW), token.campaigns) == (True, ("A", "B"))
    assert [token.is_for(one) for one in ("A", "B", "C", None)] == [True, True, False, False]
    assert all(make_token("x", "relay", NOW)[1].is_for(one) for one in ("A", None))
