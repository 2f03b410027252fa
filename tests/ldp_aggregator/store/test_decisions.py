"""Decisions of a store, without any database: every row of the tables in the contract's prose."""

from datetime import datetime, timedelta, timezone

import pytest
from cells import cell_campaign, submission

from ldp_aggregator.store import Life
from ldp_aggregator.store.batch import gather_by_campaign
from ldp_aggregator.store.decisions import CampaignRow, is_over, refuse_node, refuse_uploads, takes_reports

NOW = datetime(2026, 1, 1, tzinfo=timezone.utc)
SECOND = timedelta(seconds=1)
OPEN = Life(None, None, None)
WAITING = Life(NOW + SECOND, None, None)
ENDED = Life(None, NOW, None)
CLOSED = Life(None, None, NOW - SECOND)


def row(*, life=OPEN, most=None, salt=None):
    return CampaignRow(1, "id", "title", NOW, life, most, salt)


@pytest.mark.parametrize(
    ("salt", "most", "counted", "of_devices"),
    [(None, None, 0, False), (None, None, 1, True), (None, 5, 0, True), (b"s", None, 0, False)],
)
def test_a_campaign_is_what_came_first_or_what_its_limit_says(salt, most, counted, of_devices):
    assert takes_reports(salt, most, counted) is of_devices


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
    assert refuse_uploads(row(life=life, salt=salt), NOW) == code


@pytest.mark.parametrize(
    ("takes_shares", "life", "in_use", "refused"),
    [
        (True, OPEN, True, None),
        (False, OPEN, True, "takes-reports"),
        (True, OPEN, False, "wrong-token"),
        (False, OPEN, False, "takes-reports"),
        (True, CLOSED, True, "campaign-closed"),
        (True, ENDED, True, "campaign-closed"),
        (True, WAITING, True, "campaign-not-open"),
        (True, CLOSED, False, "wrong-token"),
    ],
)
def test_a_share_is_refused_by_kind_then_by_token_then_by_time(takes_shares, life, in_use, refused):
    assert refuse_node(takes_shares, life, NOW, token_in_use=in_use) == refused


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


def test_a_group_is_taken_apart_in_the_order_in_which_everybody_locks_campaigns():
    uploads = [submission(cell_campaign(title=f"number {number}"), [number]) for number in range(5)]
    assert list(gather_by_campaign(uploads)) == sorted(upload.campaign.id for upload in uploads)
