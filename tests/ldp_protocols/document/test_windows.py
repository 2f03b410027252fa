"""Windows of a campaign: what is refused, when each is open, and what is counted apart."""

import json
from datetime import datetime, timedelta, timezone

import credit_draft
import pytest

from ldp_protocols import Campaign, DraftError
from ldp_protocols.document.windows import Windows

WINDOW_GRACE = timedelta(days=7)


START = datetime(2027, 1, 4, tzinfo=timezone.utc)
WINDOWS = {"from": "2027-01-04T00:00:00Z", "length": "P7D", "count": 4}
DRAFT = {**credit_draft.DRAFT, "privacy": {"epsilon": 1.0}, "closes": None, "windows": WINDOWS}


def test_a_series_opens_with_its_first_window_and_closes_some_days_after_its_last():
    campaign = Campaign.compile(DRAFT)
    assert campaign.windows == Windows(START, "P7D", 4)
    assert (campaign.opens, campaign.closes) == (START, START + timedelta(days=28) + WINDOW_GRACE)
    assert campaign.counted == campaign.questions * 4
    alone = campaign.one_window
    assert (alone.counted, alone.id) == (campaign.questions, campaign.id)
    assert alone.one_window is alone
    assert json.loads(campaign.document)["windows"] == WINDOWS
    assert Campaign.parse(campaign.document, campaign.id) == campaign


@pytest.mark.parametrize(
    ("length", "duration"),
    [
        ("P1W", timedelta(weeks=1)),
        ("P30D", timedelta(days=30)),
        ("PT6H", timedelta(hours=6)),
        ("PT1M", timedelta(0, 60)),
    ],
)
def test_a_window_is_open_from_its_first_moment_to_the_first_of_the_next(length, duration):
    windows = Windows(START, length, 3)
    assert windows.duration == duration
    instant = timedelta(microseconds=1)
    moments = (START - instant, START, START + duration - instant, START + duration, START + 3 * duration)
    assert [windows.open_at(moment) for moment in moments] == [-1, 0, 0, 1, 3]
    assert windows.end == START + 3 * duration


def test_answers_are_counted_while_their_window_is_open_and_for_a_week_after():
    windows = Windows(START, "P1D", 10)
    day = timedelta(days=1)
    for days, counted in ((-0.1, []), (0, [0]), (2.5, [0, 1, 2]), (8, [1, 2, 3, 4, 5, 6, 7, 8]), (16.9, [9]), (17, [])):
        assert list(windows.counted_at(START + days * day)) == counted, days
    long = Windows(START, "P30D", 3)
    for days, counted in ((29, [0]), (30, [0, 1]), (36.9, [0, 1]), (37, [1]), (96.9, [2]), (97, [])):
        assert list(long.counted_at(START + days * day)) == counted, days


@pytest.mark.parametrize("name", ["opens", "closes"])
def test_a_draft_of_a_series_does_not_say_when_it_opens_or_closes(name):
    """What else makes no sense is in the vectors, as documents."""
    with pytest.raises(DraftError) as refused:
        Campaign.compile({**DRAFT, name: "2028-01-04T00:00:00Z"})
    assert refused.value.field == name
