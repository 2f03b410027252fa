"""From counts to figures: every number of a table is the one that it is said to be, and no other's."""

import math
from datetime import datetime, timezone
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from drafts import draft, number, text

from ldp_aggregator import Tally
from ldp_aggregator.dashboard.drawing import learned_features as figures
from ldp_aggregator.dashboard.drawing.learned_features import FeatureFigure, Row
from ldp_aggregator.dashboard.drawing.plots import Line
from ldp_aggregator.estimation.estimates import estimate
from ldp_aggregator.learning.series import series_of
from ldp_protocols import Campaign
from ldp_simulations import simulate

NOW = datetime(2027, 1, 1, tzinfo=timezone.utc)
LABEL = {"name": "ill", "classes": ["yes", "no"]}
CAMPAIGN = Campaign.compile(
    draft(text("dull", "p", "q"), text("telling", "r", "s"), number("age", 0, 100), label=LABEL, privacy={"epsilon": 9})
)


@pytest.fixture(scope="module")
def found():
    """The estimates of 8,000 people: a quarter is ill, ``telling`` says nearly who, and the ill are older."""
    ill = np.arange(8_000) % 4 == 0
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "dull": np.where(np.arange(8_000) % 8 < 4, "p", "q"),
            "telling": np.where(ill ^ (np.arange(8_000) % 40 == 0), "r", "s"),
            "age": np.where(ill, 60, 40) + rng.normal(0, 15, 8_000),
        }
    )
    return estimate(CAMPAIGN, simulate(CAMPAIGN, frame, np.where(ill, "yes", "no"), rng=1))


def test_the_classes_are_of_all_reports_that_tell_them_and_lies_move_them_by_all_of_it_at_most(found):
    posterior = figures.believed(found)
    prior = figures.class_prior(found, posterior, 80)
    assert [row.of_class for row in prior.rows] == ["yes", "no"]
    assert [row.believed for row in prior.rows] == posterior.classes.value.tolist()
    assert [row.estimate for row in prior.rows] == found.class_prior.value.tolist()
    assert [(row.low, row.high) for row in prior.rows] == [
        *zip(found.class_prior.low.tolist(), found.class_prior.high.tolist(), strict=True)
    ]
    assert [row.moved for row in prior.rows] == [80 * found.class_prior_per_liar] * 2
    assert prior.n == sum(one.n for one in found.questions if one.classes is not None) < 8_000
    assert [row.moved for row in figures.class_prior(found, posterior, 10**9).rows] == [1.0, 1.0]
    assert [row.moved for row in figures.class_prior(estimate(CAMPAIGN, Tally(CAMPAIGN)), posterior, 0).rows] == [0, 0]


def test_what_tells_most_comes_first_and_a_table_has_every_value_and_class(found):
    telling, age, dull = figures.of_features(found, figures.believed(found), 80)
    assert [one.title for one in (telling, age, dull)] == ["telling", "age", "dull"]
    assert 0.8 > telling.told > 0.4 > age.told > 0.05 > 0.01 > dull.told >= 0
    assert [(row.value, row.of_class) for row in telling.rows] == [("r", "yes"), ("r", "no"), ("s", "yes"), ("s", "no")]
    assert [row.believed for row in telling.rows] == pytest.approx([0.9, 0, 0.1, 1], abs=0.05)
    assert [row.together for row in telling.rows] == pytest.approx([0.225, 0, 0.025, 0.75], abs=0.05)
    assert all(row.low < row.estimate < row.high and row.moved > 0 for row in telling.rows)
    assert "Nothing is known" not in telling.says


def test_the_means_of_a_number_have_their_95_percent_intervals(found):
    [age] = [one for one in figures.of_features(found, figures.believed(found), 80) if one.title == "age"]
    moments = found.moments["age"]
    wide = (1.959964 * np.sqrt(moments.mean_variance)).tolist()
    assert [row.believed for row in age.rows] == [row.estimate for row in age.rows] == moments.mean.tolist()
    assert [row.high - row.estimate for row in age.rows] == pytest.approx(wide)
    assert [row.estimate - row.low for row in age.rows] == pytest.approx(wide)
    assert [row.moved for row in age.rows] == found.mean_reach("age", 80).tolist()
    assert age.n == sum(one.n for one in found.questions if one.question.feature == "age")
    assert "too few reports" not in age.says


def test_what_nothing_is_known_of_has_no_number_and_is_said_only_where_something_was_asked():
    """All but the class's own question went unanswered; then one of its classes has hardly anybody."""
    empty = figures.of_features(
        estimate(CAMPAIGN, Tally(CAMPAIGN)), figures.believed(estimate(CAMPAIGN, Tally(CAMPAIGN))), 0
    )
    for one in empty:
        assert "Nothing is known of a class" not in one.says
        if one.is_share:
            assert all(math.isnan(row.estimate) and math.isnan(row.together) for row in one.rows)
    frame = pd.DataFrame({"dull": ["p"] * 4_000, "telling": ["r"] * 4_000, "age": [50.0] * 4_000})
    alone = estimate(CAMPAIGN, simulate(CAMPAIGN, frame, ["no"] * 4_000, rng=1))
    dull, age = (
        {one.title: one for one in figures.of_features(alone, figures.believed(alone), 0)}[n] for n in ("dull", "age")
    )
    assert [math.isnan(row.estimate) for row in dull.rows] == [True, False, True, False]
    assert "Nothing is known of a class that too few reports tell from none." in dull.says
    assert "A class with too few reports shows the mean of all." in age.says, "one of two is enough"


@pytest.mark.parametrize(
    ("classes", "shares", "bits"),
    [
        ([0.5, 0.5], [[1, 0], [0, 1]], 1.0),
        ([0.5, 0.5], [[0.3, 0.3], [0.7, 0.7]], 0.0),
        ([0.25, 0.75], [[1, 0], [0, 1]], 0.811278),
        ([0.5, 0.5], [[0.5, 0], [0.5, 0], [0, 1]], 1.0),
    ],
)
def test_the_bits_that_a_feature_tells(classes, shares, bits):
    assert figures._bits(np.array(classes), np.array(shares, dtype=float)) == pytest.approx(bits, abs=1e-6)


def test_a_share_is_of_its_class_in_percent_and_lies_move_it_by_all_of_it_at_most():
    share = figures._share(Row("v", "b", 0.5, 0.4, 0.3, 0.6, math.inf), "ab")
    assert (share.mark, share.value, share.low, share.high, share.reach) == (1, 50, 30, 60, 100)
    assert figures._share(Row("v", "d", 0.5, 0.4, 0.3, 0.6, 0.05), "abcd").mark == 0, "so many are told by their rows"


def figure(key, *shares, n=9, more=None, classes="ab"):
    rows = [Row(f"v{place}", name, share, share, 0, share, 0) for place, share in enumerate(shares) for name in classes]
    return FeatureFigure(key, key, "", "share of the class", n, tuple(rows), more=more)


def test_all_shares_of_a_page_are_drawn_on_one_axis_and_what_tells_too_little_is_not_drawn():
    shown = [figure("x", 0.2, 0.55), figure("y", 0.1), figure("few", 0.9, more=100), figure("none", 0.9, n=0)]
    plots = figures.draw(shown, "ab")
    assert list(plots) == ["x", "y"]
    ticks = [
        [one.text for one in ElementTree.fromstring(plot).iter() if one.get("class") == "tick"]
        for plot in plots.values()
    ]
    assert ticks[0] == ticks[1] == [f"{share}\u00a0%" for share in (0, 20, 40, 60)]
    assert figures.draw([figure("x", 0.2, classes="abcd")], "abcd") == {}, "so many classes have a table of shades"


def test_of_many_values_the_most_frequent_are_drawn_in_their_order_and_a_cell_is_darker_the_more_it_holds():
    many = figure("x", *(place / 100 for place in range(1, 15)))
    assert [value for value, _ in many.by_value()] == [f"v{place}" for place in range(2, 14)]
    assert figures.highest_cell([many, figure("y", 0.6)]) == 0.6
    assert [figures.shade(share, 0.6) for share in (0, 0.09, 0.11, 0.6, 0.9, math.nan)] == [0, 0, 1, 5, 5, 0]
    assert figures.shade(0.0, 0.0) == 0


SERIES = Campaign.compile(
    draft(
        text("sky", "blue", "grey"),
        label=LABEL,
        privacy={"epsilon": 9},
        windows={"from": "2026-01-01T00:00:00Z", "length": "P1D", "count": 3},
    )
)


def test_windows_without_answers_are_left_out_of_the_mean_and_have_no_dot():
    """99 devices answered in the first and 297 in the third; grey skies, a third of all, are of the ill alone."""
    per_window = len(SERIES.questions)
    tally = Tally(SERIES)
    for window, devices in ((0, 99), (2, 297)):
        frame = pd.DataFrame({"sky": ["grey", "blue", "blue"] * (devices // 3)})
        one = simulate(SERIES.one_window, frame, ["yes", "no", "no"] * (devices // 3), rng=window)
        for question in range(per_window):
            tally.n[window * per_window + question] = one.n[question]
            tally.counts[window * per_window + question][:] = one.counts[question]
    found = figures.shown_series(SERIES, tally)
    drawn = figures.over_time(SERIES, tally, found, datetime(2026, 1, 3, 12, tzinfo=timezone.utc), "sky")
    assert [(one.name, one.devices, one.of_the_mean, one.is_running) for one in drawn.windows] == [
        ("1, from 2026-01-01 00:00", 99, 0.5, False),
        ("3, from 2026-01-03 00:00", 297, 1.5, True),
    ]
    head, says = drawn.now
    assert head.startswith("“yes” at ")
    assert "in the last finished window, 2026-01-02 00:00 to 2026-01-03 00:00 UTC; " in says
    assert [one.rows[2][0] for one in drawn.drawn] == ["2026-01-03 00:00 (running)"] * 3
    assert [one.heads for one in drawn.drawn] == [
        ["Window from", "yes"],
        ["Window from", "blue", "grey"],
        ["Window from", "blue", "grey"],
    ]
    assert "its dots are hollow" in drawn.drawn[0].says
    later = figures.over_time(SERIES, tally, found, NOW)
    assert len(later.drawn) == 1, "features are drawn where they are asked for"
    assert "2026-01-03 00:00 to 2026-01-04 00:00 UTC" in later.now[1]
    assert "hollow" not in later.drawn[0].plot
    tables = {one.title.rpartition(" ")[2]: one for one in drawn.drawn}
    grey = {name: float(tables[name].rows[2][2].split("\u00a0%")[0]) for name in ("yes", "no")}
    assert grey["yes"] == pytest.approx(33, abs=6)
    assert grey["no"] == pytest.approx(0, abs=6)
    for one in series_of(SERIES, tally, 512):
        one.levels.missed[:] = [math.inf, 0.5, 1.2]
        assert figures._missed(one) == "", "any jump into the last window may be missed"
        one.levels.missed[:] = [math.inf, 0.041, 0.123]
        assert figures._missed(one) == (
            "A jump of one line by less than 12 points into the last window may be missed, by less than 4.1 where it "
            "is seen best."
        )
        assert [math.isnan(dot) for dot in figures._line(one, 0, "x").dots] == [False, True, False]


def test_the_most_frequent_values_are_drawn_in_the_order_of_their_declaration():
    def figure(*largest):
        lines = [Line(f"v{n}", [most / 2, most], [0, 0], [1, 1], [0, 0]) for n, most in enumerate(largest)]
        return figures._figure(SERIES.windows, NOW, "key", "t", lines)

    made = figure(0.3, 0.01, 0.02, 0.5, 0.04, 0.05, 0.06)
    assert made.heads == ["Window from", "v0", "v2", "v3", "v4", "v5", "v6"]
    assert made.says == "The 6 most frequent of 7 values."
    assert figure(*[0.1] * 6).says == ""
    one = [Line("v", [0.1], [0], [1], [0])]
    assert figures._figure(SERIES.windows, NOW, "key", "t", one, "A jump.").says == "A jump."
    assert made.rows[0][:2] == ["2026-01-01 00:00", "15.0\u00a0% (0.0 to 100.0\u00a0%)"]
    told = [figures._told(share, -0.2, 1.3) for share in (-0.1, 0.1234, 1.2)]
    assert told == [f"{share}\u00a0% (0.0 to 100.0\u00a0%)" for share in (0.0, 12.3, 100.0)]
