"""The page of a campaign with windows: answers by window, shares over time with their bands, and people's page."""

import random
from datetime import datetime, timedelta, timezone

import pytest

from ldp_aggregator.counting.tally import Tally
from ldp_aggregator.dashboard.drawing.over_time import over_time
from ldp_aggregator.store import Submission
from ldp_client.answering import perturb
from protocols import Campaign, decode_upload, encode_upload

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
