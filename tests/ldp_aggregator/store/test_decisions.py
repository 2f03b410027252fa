"""What a store decides, without any database: every row of the tables in the contract's prose."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest

from ldp_aggregator.server.keeper import close_due
from ldp_aggregator.store import CampaignState, Life, StoredToken, StoreError
from ldp_aggregator.store.decisions import (
    CampaignRow,
    Kind,
    Rotation,
    decide_rotation,
    decide_share,
    decide_uploads,
    due,
    is_over,
    kind_of,
    refuse_withdrawal,
)

NOW = datetime(2026, 1, 1, tzinfo=timezone.utc)
SECOND = timedelta(seconds=1)
OPEN = Life(None, None, None)
WAITING = Life(NOW + SECOND, None, None)
ENDED = Life(None, NOW, None)
CLOSED = Life(None, None, NOW - SECOND)


def row(*, life=OPEN, most=None, salt=None):
    return CampaignRow(1, "id", "title", NOW, life, most, salt)


@pytest.mark.parametrize(
    ("salt", "most", "counted", "kind"),
    [
        (None, None, 0, Kind.UNDECIDED),
        (None, None, 1, Kind.REPORTS),
        (None, 5, 0, Kind.REPORTS),
        (b"s", None, 0, Kind.SHARES),
    ],
)
def test_a_campaign_is_what_came_first_or_what_its_limit_says(salt, most, counted, kind):
    assert kind_of(salt, most, counted) is kind


@pytest.mark.parametrize(
    ("life", "salt", "code"),
    [
        (OPEN, None, None),
        (WAITING, None, "campaign-not-open"),
        (ENDED, None, "campaign-closed"),
        (CLOSED, None, "campaign-closed"),
        (OPEN, b"s", "takes-shares"),
        (CLOSED, b"s", "takes-shares"),
    ],
)
def test_uploads_are_refused_by_kind_then_by_time(life, salt, code):
    assert decide_uploads(row(life=life, salt=salt), None, NOW).refused == code


def test_an_open_campaign_has_room_for_what_is_missing_to_its_limit():
    assert decide_uploads(row(), None, NOW).room is None
    assert decide_uploads(row(most=10), 4, NOW).room == 6
    assert decide_uploads(row(most=10), 10, NOW).room == 0
    assert decide_uploads(row(most=10), 11, NOW).room == 0
    assert decide_uploads(row(most=10), 10, NOW).refused is None, "a retry to a full campaign is a duplicate"


def test_a_limit_without_a_number_is_a_bug_and_not_unlimited_room():
    with pytest.raises(ValueError, match="needs the number"):
        decide_uploads(row(most=10), None, NOW)


@pytest.mark.parametrize(
    ("campaign", "counted", "in_use", "refused", "becomes"),
    [
        (row(), 0, True, None, True),
        (row(), 1, True, "takes-reports", False),
        (row(most=5), 0, True, "takes-reports", False),
        (row(salt=b"s"), 0, True, None, False),
        (row(), 0, False, "wrong-token", False),
        (row(), 1, False, "takes-reports", False),
        (row(life=CLOSED), 0, True, "campaign-closed", False),
        (row(life=WAITING, salt=b"s"), 0, True, "campaign-not-open", False),
        (row(life=CLOSED, salt=b"s"), 0, False, "wrong-token", False),
    ],
)
def test_a_share_decides_an_undecided_campaign_unless_it_is_refused(campaign, counted, in_use, refused, becomes):
    decision = decide_share(campaign, counted, NOW, token_in_use=in_use)
    assert (decision.refused, decision.becomes_federated) == (refused, becomes)


@pytest.mark.parametrize(
    ("campaign", "in_use", "refused"),
    [
        (row(), True, "takes-reports"),
        (row(salt=b"s"), True, None),
        (row(salt=b"s"), False, "wrong-token"),
        (row(salt=b"s", life=ENDED), True, "campaign-closed"),
    ],
)
def test_a_share_is_withdrawn_only_where_there_can_be_one(campaign, in_use, refused):
    assert refuse_withdrawal(campaign, NOW, token_in_use=in_use) == refused


@pytest.mark.parametrize(
    ("life", "most", "counted", "over"),
    [
        (OPEN, None, 10**9, False),
        (OPEN, 5, 4, False),
        (OPEN, 5, 5, True),
        (ENDED, None, 0, True),
        (WAITING, 5, 0, False),
    ],
)
def test_a_campaign_is_over_when_it_ended_or_is_full(life, most, counted, over):
    assert is_over(life, most, counted, NOW) is over


def state(name, life):
    return CampaignState(name, name, NOW, life, None, 0, None)


def test_what_is_over_is_due_until_it_was_closed():
    states = [state("open", OPEN), state("ended", ENDED), state("closed", CLOSED), state("waiting", WAITING)]
    assert due(states, NOW) == ["ended"]


async def test_a_campaign_that_cannot_be_closed_keeps_no_other_open():
    class Damaged:
        async def campaigns(self):
            return [state("first", ENDED), state("second", ENDED), state("third", ENDED)]

        async def end_campaign(self, campaign_id):
            if campaign_id == "first":
                raise StoreError("no")
            if campaign_id == "second":
                raise ValueError("a bug")
            return state("third", CLOSED)

    closed = await close_due(Damaged(), NOW)
    assert closed.ids == ("third",)
    assert {name: str(error) for name, error in closed.failed.items()} == {"first": "no", "second": "a bug"}


TOKEN = StoredToken("new", "node", b"n" * 32, NOW)
OLD = StoredToken("old", "node", b"o" * 32, NOW)


def test_a_rotation_needs_a_token_in_use_and_a_free_name():
    assert decide_rotation(OLD, None, TOKEN, NOW) is Rotation.ROTATE
    assert decide_rotation(None, None, TOKEN, NOW) is Rotation.MISSING
    assert decide_rotation(replace(OLD, revoked=NOW), None, TOKEN, NOW) is Rotation.MISSING
    with pytest.raises(StoreError, match="'new' exists already"):
        decide_rotation(OLD, replace(TOKEN, digest=b"x" * 32), TOKEN, NOW)


def test_a_rotation_that_was_committed_and_is_tried_again_is_done():
    assert decide_rotation(replace(OLD, revoked=NOW), TOKEN, TOKEN, NOW) is Rotation.DONE
