"""The four answers at the top of a campaign's page."""

import json
import math
import random
from datetime import datetime, timedelta, timezone

import pytest

from ldp_aggregator.counting.tally import Tally
from ldp_aggregator.dashboard.drawing.evaluations import model_row
from ldp_aggregator.dashboard.drawing.learned_features import BAD, GOOD, LOOK, health, lies, over_time, quality
from ldp_aggregator.dashboard.page_sources import Refused
from ldp_aggregator.server.metrics import Metrics
from ldp_aggregator.store import Submission
from ldp_aggregator.store.contract import PublishedModel
from ldp_client.answering import perturb
from ldp_protocols import Campaign, decode_upload, encode_upload

NOW = datetime(2027, 1, 1, tzinfo=timezone.utc)
BEST = {"feature": "age", "low": 0.7, "high": 0.9}
EXPECTED = {"majority": 0.6, "best_feature": BEST, "tells_something": True}


def refused(number, code="wrong-width"):
    return [Refused("report", code, number, "why")]


def row(**training):
    return model_row(PublishedModel(1, json.dumps({"training": training}), NOW))


@pytest.mark.parametrize(
    ("status", "reports", "found", "width", "mood", "text", "says"),
    [
        ("open", 3_000, [], 0.084, GOOD, "Healthy", "enough for ± 8.4 points at worst"),
        ("open", 3, [], math.inf, GOOD, "Healthy", "too few to tell anything yet"),
        ("open", 3_000, refused(30), 0.084, GOOD, "Healthy", "3\u202f000\u00a0reports"),
        ("open", 3_000, refused(31), 0.084, LOOK, "Look at what was refused", "31\u00a0refusals since"),
        ("closed", 3_000, [], 0.084, GOOD, "Closed", "It takes no reports now."),
    ],
)
def test_a_campaign_is_healthy_where_what_comes_is_counted(status, reports, found, width, mood, text, says):
    answer = health(status, reports, found, width, "")
    assert (answer.mood, answer.text) == (mood, text)
    assert says in answer.says


def test_a_campaign_that_cannot_be_counted_is_told_in_red():
    metrics = Metrics()
    metrics.told.note_failing({"c": True, "d": False})
    metrics.told.note_missing_keys({"k" * 43})
    for campaign, told in (("c", "fsck"), ("k" * 43, "sealed to is not here")):
        answer = health("open", 3_000, [], 0.1, metrics.readings().wrong_with(campaign))
        assert (answer.mood, answer.text) == (BAD, "Not counted")
        assert told in answer.says
    assert metrics.readings().wrong_with("d") == ""


def test_a_model_that_was_measured_shows_that_and_one_that_was_not_what_is_expected_of_it():
    measured = row(expected=EXPECTED, evaluated={"accuracy": {"value": 0.8, "low": 0.75, "high": 0.85}})
    assert quality([measured]).text == "80.0\u00a0%"
    assert "took no part in training" in quality([measured]).says
    expected = quality([row(expected=EXPECTED)])
    assert (expected.mood, expected.text) == (GOOD, "70.0\u00a0% to 90.0\u00a0%")
    assert "Expected of age alone" in expected.says
    assert "right for 60.0\u00a0%" in expected.says
    assert "majority class" in expected.plot
    unsure = quality([row(expected={**EXPECTED, "tells_something": False})])
    assert unsure.mood == LOOK
    assert "not known to tell anything" in unsure.says


@pytest.mark.parametrize("models", [[], [row()], [row(expected={"best_feature": {"feature": 3}, "majority": "x"})]])
def test_without_a_model_or_without_its_word_nothing_is_claimed(models):
    answer = quality(models)
    assert answer.mood == LOOK
    assert answer.plot is None
    assert "%" not in answer.text


async def test_the_page_answers_at_a_glance_and_takes_one_device_in_a_hundred_to_lie(dashboard):
    for reports, found in ((0, []), (100, refused(2, "conflicting-report"))):
        assert lies(1, reports, [], found).text == "Nothing to move yet"
    campaign = await dashboard.publish()
    text = await dashboard.page(campaign)
    assert "No model yet" in text
    assert "Nothing to move yet" in text
    await dashboard.answer(campaign, 120)
    text = await dashboard.page(campaign)
    assert "2\u00a0liars of 120\u00a0devices can have moved" in text
    assert 'value="2"' in text
    assert BAD not in text.split('class="verdict"')[1].split("</dl>")[0]


WINDOWS = 5


@pytest.fixture
def series(draft):
    start = (datetime.now(timezone.utc) - timedelta(days=3, hours=12)).strftime("%Y-%m-%dT%H:%M:%SZ")
    return Campaign.compile({**draft, "windows": {"from": start, "length": "P1D", "count": WINDOWS}})


def uploads(campaign, people):
    for number in range(people):
        record = {"age": "young" if number % 4 else "old", "income": number * 997 % 200_000, "hours": number % 100}
        secret = random.Random(number).randbytes(32)
        yield encode_upload(perturb(campaign, record, "yes" if number % 3 else "no", secret=secret), campaign)


async def test_a_series_is_shown_by_window_on_both_pages_and_an_empty_one_too(dashboard, series):
    await dashboard.store.create_campaign(series)
    assert "Over time" not in await dashboard.page(series)
    people = await dashboard.people_page(series)
    assert f"in each window one device in {WINDOWS} is asked" in people
    assert "windows of 1 day" in people
    for upload in uploads(series, 300):
        await dashboard.store.count([Submission(series, decode_upload(upload, series))])
    page = await dashboard.page(series)
    assert "Over time" in page
    assert "<td>4, from " in page
    assert "<td>5, from " not in page, "it is not open yet"
    assert "age and missed_payment = yes, by window" in page


def test_every_window_and_value_has_its_place_in_plot_and_table(series):
    tally = Tally.of_uploads(series, uploads(series, 400))
    drawn = over_time(series, tally)
    assert sum(one.devices for one in drawn.windows) == 400
    assert sum(one.of_the_mean for one in drawn.windows) == pytest.approx(WINDOWS)
    by_title = {one.title: one for one in drawn.drawn}
    ages = by_title["age and missed_payment = no"]
    assert ages.heads == ["Window", "young", "medium", "old", "missing"]
    assert [row[0] for row in ages.rows] == [str(window + 1) for window in range(WINDOWS)]
    assert ages.plot.count("<polygon") == 4
    assert over_time(series.one_window, tally.pooled()) is None
    assert over_time(series, Tally(series)) is None
