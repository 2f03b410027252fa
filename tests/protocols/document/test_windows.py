"""Windows of a campaign: what is refused, when each is open, and what is counted apart."""

import json
from datetime import datetime, timedelta, timezone

import credit_draft
import pytest

from protocols import Campaign, DocumentError, DraftError
from protocols.document.windows import WINDOW_GRACE, Windows

START = datetime(2027, 1, 4, tzinfo=timezone.utc)
WINDOWS = {"from": "2027-01-04T00:00:00Z", "length": "P7D", "count": 4}
DRAFT = {**credit_draft.DRAFT, "privacy": {"epsilon": 1.0}, "closes": None, "windows": WINDOWS}


def test_a_series_opens_with_its_first_window_and_closes_some_days_after_its_last():
    campaign = Campaign.compile(DRAFT)
    assert campaign.windows == Windows(START, "P7D", 4)
    assert (campaign.opens, campaign.closes) == (START, START + timedelta(days=28) + WINDOW_GRACE)
    assert campaign.counted == campaign.questions * 4
    assert campaign.one_window.counted == campaign.questions
    assert campaign.one_window.id == campaign.id
    assert json.loads(campaign.document)["windows"] == WINDOWS
    assert Campaign.parse(campaign.document, campaign.id) == campaign


def test_a_document_without_windows_says_nothing_of_them():
    campaign = Campaign.compile({**DRAFT, "windows": None})
    assert "windows" not in json.loads(campaign.document)
    assert campaign.counted is not None
    assert campaign.counted == campaign.questions
    assert campaign.one_window is campaign


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


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"windows": []}, "windows"),
        ({"windows": {"length": "P7D", "count": 4}}, "windows.from"),
        ({"windows": {**WINDOWS, "from": "2027-01-04"}}, "windows.from"),
        ({"windows": {**WINDOWS, "length": "P1M"}}, "windows.length"),
        ({"windows": {**WINDOWS, "length": "P0D"}}, "windows.length"),
        ({"windows": {**WINDOWS, "length": "P1DT1H"}}, "windows.length"),
        ({"windows": {**WINDOWS, "length": 7}}, "windows.length"),
        ({"windows": {**WINDOWS, "count": 1}}, "windows.count"),
        ({"windows": {**WINDOWS, "count": 4097}}, "windows.count"),
        ({"windows": {**WINDOWS, "length": "P9999W", "count": 4000}}, "windows.count"),
        ({"windows": {**WINDOWS, "until": "2028-01-01T00:00:00Z"}}, "until"),
        ({"opens": "2027-01-04T00:00:00Z"}, "opens"),
        ({"closes": "2028-01-04T00:00:00Z"}, "closes"),
        ({"privacy": {"epsilon": 1.0, "release_every": 100}}, "release_every"),
        ({"asks": "moments", "study": "s"}, "asks"),
    ],
)
def test_windows_that_make_no_sense_are_refused_by_name(change, field):
    with pytest.raises(DraftError) as refused:
        Campaign.compile({**DRAFT, **change})
    assert field in str(refused.value) or field == refused.value.field


def test_cells_of_all_windows_together_are_bounded():
    features = [{"name": "x", "kind": "categorical", "values": [str(value) for value in range(500)]}]
    wide = {**DRAFT, "features": features, "windows": {**WINDOWS, "count": 1000}}
    with pytest.raises(DraftError, match=r"windows\.count"):
        Campaign.compile(wide)
    assert len(Campaign.compile({**wide, "windows": {**WINDOWS, "count": 100}}).counted) == 200


def test_a_document_that_opens_otherwise_than_its_windows_is_refused():
    document = json.loads(Campaign.compile(DRAFT).document)
    for name in ("opens", "closes"):
        with pytest.raises(DocumentError, match=name):
            Campaign.parse(json.dumps({**document, name: "2027-01-05T00:00:00Z"}).encode())
