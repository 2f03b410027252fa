"""From counts to figures: every number of a table is the one that it is said to be, and no other's."""

import json
import math
from datetime import datetime, timezone
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from drafts import draft, number, text
from markupsafe import Markup

from ldp_aggregator import Tally
from ldp_aggregator.dashboard.drawing import learned_features as figures
from ldp_aggregator.dashboard.drawing.evaluations import model_row
from ldp_aggregator.dashboard.drawing.learned_features import FeatureFigure, Row
from ldp_aggregator.dashboard.drawing.plots import Line
from ldp_aggregator.dashboard.page_sources import Refused
from ldp_aggregator.estimation.estimates import estimate
from ldp_aggregator.learning.series import series_of
from ldp_aggregator.store.contract import PublishedModel
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


def test_a_bar_is_of_its_class_and_what_lies_move_without_bound_has_none():
    bars = figures._bars(
        [Row("v", "b", 0.5, 0.4, 0.3, 0.6, math.inf), Row(None, "a", 0.1, 0.1, 0, 0.2, 0.05)], "ab", 100
    )
    assert [(bar.group, bar.label, bar.mark, bar.value, bar.low, bar.high, bar.reach) for bar in bars] == [
        ("v", "b", 1, 50, 30, 60, None),
        (None, "a", 0, 10, 0, 20, 5),
    ]


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
    drawn = figures.over_time(SERIES, tally)
    assert [(one.name, one.devices, one.of_the_mean) for one in drawn.windows] == [
        ("1, from 2026-01-01 00:00", 99, 0.5),
        ("3, from 2026-01-03 00:00", 297, 1.5),
    ]
    tables = {one.title: one for one in drawn.drawn}
    grey = {name: float(tables[f"sky and ill = {name}"].rows[2][2].split(" %")[0]) for name in ("yes", "no")}
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
        return figures._figure("key", "t", lines)

    made = figure(0.3, 0.01, 0.02, 0.5, 0.04, 0.05, 0.06)
    assert made.heads == ["Window", "v0", "v2", "v3", "v4", "v5", "v6"]
    assert made.says == "The 6 most frequent of 7 values."
    assert figure(*[0.1] * 6).says == ""
    assert figures._figure("key", "t", [Line("v", [0.1], [0], [1], [0])], "A jump.").says == "A jump."
    assert made.rows[0][:2] == ["1", "15.0 % (0.0 % to 100.0 %)"]
    assert [figures._percent(share) for share in (-0.1, 0.1234, 1.2)] == ["0.0 %", "12.3 %", "100.0 %"]


def refused(number, code="wrong-width"):
    return Refused("report", code, number, "why")


def test_of_few_reports_one_may_be_refused_and_what_keeps_a_campaign_is_told_before_all_else():
    assert figures.health("open", 3, [refused(1)], 0.1, "").text == "Healthy"
    assert figures.health("open", 3, [refused(1), refused(1)], 0.1, "").text == "Look at what was refused"
    answer = figures.health("closed", 3, [refused(9)], 0.1, "the disk is full")
    assert (answer.mood, answer.text, answer.says) == ("bad", "Not counted", "the disk is full")
    assert "too few to tell anything yet" in figures.health("open", 3, [], 1.0, "").says
    assert "enough for ± 99.9 points" in figures.health("open", 3, [], 0.999, "").says


def row(**training):
    return model_row(PublishedModel(1, json.dumps({"training": training}), NOW))


def test_the_latest_model_is_told_of_as_far_as_its_document_goes():
    best = {"feature": "age", "low": 0.7, "high": 0.9}
    latest = row(expected={"best_feature": best})
    answer = figures.quality([latest, row(evaluated={"accuracy": {"value": 0.8, "low": 0.75, "high": 0.85}})])
    assert (answer.mood, answer.text) == ("good", "70.0\u00a0% to 90.0\u00a0%"), "that it is useless is not said"
    svg = "{http://www.w3.org/2000/svg}"
    parts = ElementTree.fromstring(answer.plot)
    ticks = {one.text: float(one.get("x")) for one in parts.iter(f"{svg}text") if one.get("class") == "tick"}
    [dot] = [float(one.get("cx")) for one in parts.iter(f"{svg}circle")]
    assert dot == pytest.approx(ticks["0"] + 0.8 * (ticks["100"] - ticks["0"]), abs=0.2), "in the middle"
    for lacking in ("low", "high"):
        assert figures.quality([row(expected={"best_feature": {**best, lacking: None}})]).text == "Unknown"
        assert figures.quality([row(expected={"best_feature": {**best, lacking: True}})]).text == "Unknown"


def prior(n, moved):
    rows = tuple(Row(None, name, 0.5, 0.5, 0.4, 0.6, value) for name, value in zip("ab", moved, strict=True))
    return FeatureFigure("prior", "t", "", "share", n, rows, Markup(""))


def test_lies_move_the_classes_by_the_most_and_what_came_twice_differently_alone_is_a_conflict():
    found = [refused(3), refused(2, "conflicting-report"), refused(4, "conflicting-report")]
    answer = figures.lies(5, 500, [prior(500, (0.01, 0.034))], found)
    assert (answer.mood, answer.text) == ("look", "± 3.4 points")
    assert answer.says.startswith("5\u00a0liars of 500\u00a0devices can have moved")
    assert answer.says.endswith("6\u00a0reports came twice, differently.")
    answer = figures.lies(1, 100, [prior(100, (0.01, 0.034))], found[:1])
    assert answer.mood == "good"
    assert answer.says.endswith(" Nothing came twice with another answer.")
    for devices, told in ((100, prior(0, (0.01, 0.01))), (0, prior(9, (0.01, 0.01))), (100, prior(9, (0.1, math.inf)))):
        assert figures.lies(1, devices, [told], []).text == "Nothing to move yet"
