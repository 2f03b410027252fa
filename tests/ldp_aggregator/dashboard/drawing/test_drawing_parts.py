"""What pages are put together from: sessions, figures, columns, numbers in words, samples. No server is needed."""

import math
import re
import xml.etree.ElementTree as ElementTree
from datetime import datetime, timedelta, timezone

import pytest
from cells import SteppedClock

from ldp_aggregator.dashboard.drawing.plots import (
    Bar,
    Share,
    curve,
    interval_plot,
    nice_ticks,
    rates_plot,
    shares_plot,
    sparkline,
    standalone,
    tick_text,
)
from ldp_aggregator.dashboard.page_sources import History
from ldp_aggregator.dashboard.session import open_session, read_session
from ldp_aggregator.guarantees import LOCAL_RELATION, Guarantee
from ldp_aggregator.server.metrics import Metrics
from ldp_aggregator.service import words
from ldp_aggregator.service.drafts import draft_of, spread_header
from ldp_protocols import Campaign

MOST_SAMPLES = 240
LIFETIME = timedelta(hours=12)


KEY, OTHER_KEY = b"k" * 32, b"l" * 32
DIGEST = bytes(range(32))
NOW = datetime(2026, 1, 1, tzinfo=timezone.utc)


def test_a_session_is_read_as_it_was_opened_until_its_time_is_over_and_a_forms_token_is_of_one_session():
    session, other = (open_session(DIGEST, NOW, KEY) for _ in range(2))
    assert read_session(session.cookie, NOW, KEY) == session
    assert read_session(session.cookie, NOW + LIFETIME - timedelta(seconds=1), KEY) == session
    assert read_session(session.cookie, NOW + LIFETIME, KEY) is None
    assert read_session(session.cookie, NOW, OTHER_KEY) is None
    assert session.sent_by(session.form_token(KEY), KEY)
    for token in (other.form_token(KEY), "", "ü\ud800"):
        assert not session.sent_by(token, KEY)


def test_a_cookie_with_any_letter_changed_opens_nothing():
    cookie = open_session(DIGEST, NOW, KEY).cookie
    for place, letter in enumerate(cookie):
        for other in "0.ü":
            if other != letter:
                assert read_session(cookie[:place] + other + cookie[place + 1 :], NOW, KEY) is None
    for other in (None, "", ".", "...", "a.b.c.d", cookie + "0", cookie[:-1], "\x00"):
        assert read_session(other, NOW, KEY) is None


@pytest.mark.parametrize(
    "bars",
    [
        [],
        [Bar(None, "a", 0, 0.5, 0.4, 0.6)],
        [Bar("v", "a", 7, 0.5, -math.inf, math.inf, None), Bar("v", "b", 1, math.nan, math.nan, math.nan)],
        [Bar("<v>&\"'", "<b>", 0, 0.5, 0.4, 0.6, math.inf)],
        [Bar("v", "a", 0, 1e300, -1e300, 1e300, 1.0)],
    ],
)
def test_a_plot_is_well_formed_and_draws_no_number_that_is_none(bars):
    text = interval_plot(bars, title='<t>"&', axis="<a>", least=0.0, most=1.0)
    found = ElementTree.fromstring(text)
    assert "nan" not in text
    assert "inf" not in text
    assert all("style" not in element.attrib for element in found.iter())
    assert found.attrib["aria-label"] == '<t>"&'


def drawn(bars, **more):
    """The elements of a plot between 0 and 1, by their names."""
    found = {}
    for element in ElementTree.fromstring(interval_plot(bars, title="t", axis="a", least=0.0, most=1.0, **more)).iter():
        found.setdefault(element.tag.removeprefix("{http://www.w3.org/2000/svg}"), []).append(element)
    return found


def test_a_dot_stands_where_its_value_is_and_an_interval_ends_where_its_axis_does():
    found = drawn([Bar(None, "a", 0, 0.25, 0.0, 0.5)])
    ticks = {t.text: float(t.attrib["x"]) for t in found["text"] if t.attrib["class"] == "tick"}
    dot = float(found["circle"][0].attrib["cx"])
    assert dot == pytest.approx(ticks["0"] + 0.25 * (ticks["1"] - ticks["0"]), abs=0.1)
    found = drawn([Bar(None, "a", 0, 0.5, -9, 9), Bar(None, "b", 0, 9, -9, 9)], beyond=(-0.5, 1.5))
    ends = [(one.attrib["x1"], one.attrib["x2"]) for one in found["line"] if one.attrib["class"] == "mark0"]
    assert ends == [("118.0", "346.0")] * 2
    assert len(found["circle"]) == 1, "a dot beyond the axis is not drawn"


def test_a_curve_needs_two_points_in_time():
    for points in ([], [(NOW, 3)], [(NOW, 3), (NOW, 4)]):
        assert curve(points, title="t") == ""
    ElementTree.fromstring(curve([(NOW, 0), (NOW + timedelta(days=3), 0)], title="<"))


@pytest.mark.parametrize(
    ("seconds", "ends"),
    [
        (599, ("00:00:00", "00:09:59")),
        (600, ("00:00", "00:10")),
        (86_399, ("00:00", "23:59")),
        (86_400, ("01-01 00:00", "01-02 00:00")),
    ],
)
def test_the_ends_of_a_curve_are_told_apart(seconds, ends):
    text = curve([(NOW, 0), (NOW + timedelta(seconds=seconds), 3)], title="t")
    found = [one.text for one in ElementTree.fromstring(text).iter("{http://www.w3.org/2000/svg}text")]
    assert found == ["0", "3", *ends[:1], ends[1], "reports, time in UTC"], "no tick in the middle of an odd number"


def test_a_curve_goes_from_its_first_moment_to_its_last_and_from_nothing_to_most():
    text = curve([(NOW, 0), (NOW + timedelta(seconds=30), 4), (NOW + timedelta(seconds=60), 2)], title="t")
    [line] = ElementTree.fromstring(text).iter("{http://www.w3.org/2000/svg}polyline")
    assert line.attrib["points"] == "52.0,128.0 199.0,8.0 346.0,68.0"


def test_numbers_below_ten_thousand_stand_whole_beside_a_curve():
    for most, told in ((4_000, ["0", "2000", "4000"]), (40_000, ["0", "20 k", "40 k"])):
        parts = ElementTree.fromstring(curve([(NOW, 0), (NOW + timedelta(hours=1), most)], title="t")).iter()
        assert [one.text for one in parts if one.get("class") == "tick"][:3] == told


def test_lies_move_an_interval_either_way_and_without_bound_they_move_it_over_all_of_the_axis():
    bars = [
        Bar(None, "a", 0, 0.5, 0.4, 0.6, 0.1),
        Bar(None, "b", 0, 0.5, 0.4, 0.6, None),
        Bar(None, "c", 0, 0.5, 0.4, 0.6),
    ]
    bands = [
        (float(one.attrib["x"]), float(one.attrib["x"]) + float(one.attrib["width"]))
        for one in drawn(bars)["rect"]
        if one.attrib["class"] == "reach"
    ]
    left, right = 118, 346
    assert bands == [
        pytest.approx((left + 0.3 * (right - left), left + 0.7 * (right - left)), abs=0.11),
        (left, right),
    ], "nobody moves the third"


def test_the_name_of_a_group_stands_once_before_its_rows_and_long_ones_are_cut_where_they_end():
    bars = [
        Bar(group, "x" * 15 if group == "g" else "y" * 16, 0, 0.5, 0.4, 0.6) for group in ("g", "g", None, "h", "g")
    ]
    rows = [one.text for one in drawn(bars)["text"] if one.attrib["class"] in ("group", "name")]
    cut = "y" * 14 + "…"
    assert rows == ["g", "x" * 15, "x" * 15, cut, "h", cut, "g", "x" * 15]
    assert drawn([Bar("z" * 49, "a", 0, 0.5, 0.4, 0.6)])["text"][-3].text == "z" * 47 + "…"


def test_a_share_has_its_class_by_its_mark_and_lies_widen_it_by_a_band():
    rows = [("0 to 25,000", [Share(0, 20, -5, 50), Share(1, 40, 30, 130, 5)]), ("more", [Share(2, 10, 0, 20)])]
    found = {}
    for element in ElementTree.fromstring(shares_plot(rows, title="<t>", most=60)).iter():
        found.setdefault(element.attrib.get("class", ""), []).append(element)
    ticks = {one.text: float(one.get("x")) for one in found["tick"]}
    assert list(ticks) == [f"{share}\u00a0%" for share in (0, 20, 40, 60)]
    lines = [(float(found[f"mark{n}"][0].get("x1")), float(found[f"mark{n}"][0].get("x2"))) for n in range(3)]
    zero, twenty, _, sixty = ticks.values()
    assert lines[0] == (zero, pytest.approx(zero + 2.5 * (twenty - zero), abs=0.1)), "no share is below 0"
    assert lines[1][1] == sixty
    shapes = [found[f"shape mark{n}"][0].get("d") for n in range(3)]
    assert len({re.sub(r"[-\d. ]+", "", shape) for shape in shapes}) == 3, "marks differ without their colours"
    [band] = found["reach"]
    assert float(band.get("x")) == pytest.approx(zero + 1.25 * (twenty - zero), abs=0.1)
    assert [one.text for one in found["name"]] == ["0 to 25,000", "more"]


def test_a_sparkline_has_what_came_in_each_of_equal_times():
    points = [
        (NOW, 10),
        (NOW + timedelta(hours=1), 10),
        (NOW + timedelta(hours=23), 40),
        (NOW + timedelta(hours=24), 100),
    ]
    bars = [one for one in ElementTree.fromstring(sparkline(points, title="<t>")) if one.tag.endswith("rect")]
    heights = [float(one.get("height")) for one in bars]
    assert heights == [1.0] * 23 + [24.0], "a line at the foot where nothing came"
    assert [float(one.get("x")) for one in bars] == [4 * place for place in range(24)]
    later = [(NOW, 0), (NOW + timedelta(hours=11), 30), (NOW + timedelta(hours=24), 90)]
    heights = [float(one.get("height")) for one in ElementTree.fromstring(sparkline(later, title="t"))]
    assert [height for height in heights if height > 1] == [12.0, 24.0]
    for nothing in ([], points[:1], [(NOW, 1), (NOW, 2)], [(NOW, 1), (NOW + timedelta(days=1), 1)]):
        assert sparkline(nothing, title="t") == ""


def test_the_points_of_a_curve_of_rates_are_joined_from_the_left():
    text = rates_plot([(0.5, 0.9, 0.8, 1.0), (0.1, 0.6, 0.5, 0.7)], title="t", axes=("<a>", "<b>"))
    [line] = ElementTree.fromstring(text).iter("{http://www.w3.org/2000/svg}polyline")
    places = [float(point.split(",")[0]) for point in line.attrib["points"].split()]
    assert len(places) == 4
    assert places == sorted(places)
    axes = [one.text for one in ElementTree.fromstring(text).iter() if one.get("class") == "axis"]
    assert axes == ["<b>", "<a>"]


def test_plots_of_one_document_stand_below_one_another():
    plots = [
        interval_plot([Bar(None, "a", 0, 0.5, 0.4, 0.6)] * n, title="t", axis="a", least=0, most=1) for n in (1, 3)
    ]
    whole = ElementTree.fromstring(standalone(plots))
    inner = [(float(one.attrib["y"]), float(one.attrib["height"])) for one in whole if one.tag.endswith("svg")]
    assert inner == [(0, 62), (82, 102)]
    assert whole.attrib["viewBox"] == "0 0 360 204"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (-0.0, "0"),
        (9999, "9999"),
        (10000, "10 k"),
        (-20000, "−20 k"),
        (1000000.0, "1 M"),
        (500000.0, "500 k"),
        (2500000000.0, "2.5 G"),
        (0.25, "0.25"),
        (-0.5, "−0.5"),
    ],
)
def test_a_tick_is_short(value, text):
    assert tick_text(value) == text


@pytest.mark.parametrize("ends", [(0, 1), (-0.123, 0.456), (0, 0), (1e-9, 2e-9), (-1e9, 3e12), (99.9, 100.1)])
def test_ticks_are_few_round_and_enclose_both_ends(ends):
    ticks = nice_ticks(*ends)
    assert ticks[0] <= ends[0] + 1e-9 * abs(ends[0])
    assert ticks[-1] >= ends[1] - 1e-9 * abs(ends[1])
    assert 2 <= len(ticks) <= 8


def test_a_header_becomes_lines_and_columns_a_draft_that_compiles_with_values_in_their_order():
    lines = spread_header("age, income ,missed\n")
    assert lines == "age: \nincome: \nmissed: "
    with pytest.raises(ValueError, match="age does not say what it can be; write"):
        draft_of(lines, "missed", "", "1")
    columns = "age: young | old\nhours: 0 to 100\nincome: 0 to 200000 in 8\nmissed: yes | no"
    campaign = Campaign.compile(draft_of(columns, "missed", "A title", "1.5"))
    assert (campaign.title, campaign.privacy.epsilon) == ("A title", 1.5)
    assert [feature.name for feature in campaign.features] == ["age", "hours", "income"]
    columns = "age: <18 < 18-64 < 65+\nsize: <1 | 1 | >1\ny: yes | no"
    first, second = Campaign.compile(draft_of(columns, "y", "", "1")).features
    assert (first.values, first.ordered) == (("<18", "18-64", "65+"), True)
    assert (second.values, second.ordered) == (("<1", "1", ">1"), False)
    columns = "city: Paris, France | Rome, Italy\nage: 18-64, 65+\nn: 0 to 9\ny: yes, no"
    drafted = Campaign.compile(draft_of(columns, "y", "", "1"))
    first, second, _ = drafted.features
    assert (first.values, second.values, drafted.label.classes) == (
        ("Paris, France", "Rome, Italy"),
        ("18-64", "65+"),
        ("yes", "no"),
    )
    assert not second.ordered


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ("x: a < b\ny: low < high", "y is what is learned, and classes have no order"),
        ("x: a <  < b\ny: a | b", "empty value"),
        ("x: a < b |\ny: a | b", "empty value"),
        ("", "no line is about 'y'"),
        ("y: a | b", "at least one column beside"),
        ("x: a | b\ny: 0 to 1", "needs its classes"),
        ("x: a |\ny: a | b", "empty value"),
        ("x: a to b\ny: a | b", "is not a number"),
        ("x: 0 to inf\ny: a | b", "is not a number"),
        ("x: 0 to 1\nx: 0 to 1\ny: a | b", "twice"),
        (": a | b\ny: a | b", "no name"),
    ],
)
def test_what_columns_lack_is_said(columns, says):
    with pytest.raises(ValueError, match=says):
        draft_of(columns, "y", "", "1")


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 0.5, 1.0, 2.0, 3.0, 3.3295, 5.0, 8.0, 14.0, 64.0])
def test_words_never_promise_more_than_epsilon_does(epsilon):
    sure = int(words.even_odds(epsilon).removesuffix(" %"))
    assert sure / 100 >= math.exp(epsilon) / (1 + math.exp(epsilon)) - 1e-9
    told = float(words.odds(epsilon).replace(",", ""))
    assert math.exp(epsilon) * (1 - 1e-9) <= told <= 1.01 * math.exp(epsilon)
    stated = words.loss(Guarantee(epsilon * 1.23456, 0.0, LOCAL_RELATION, ()))
    assert epsilon * 1.23456 <= float(stated.removeprefix("ε = ")) <= epsilon * 1.236


def test_numbers_have_their_sign_what_is_unknown_is_a_dash_and_a_bound_that_is_round_already_stays_as_it_is():
    assert words.percent(-0.0421) == "\u22124.2\u00a0%"
    assert words.percent(0.5) == "50.0\u00a0%"
    assert [words.counted(n, "report") for n in (0, 1, 2)] == ["0\u00a0reports", "1\u00a0report", "2\u00a0reports"]
    assert words.number(1234567) == "1,234,567"
    for unknown in (None, math.inf, math.nan):
        assert {words.percent(unknown), words.number(unknown), words.plain(unknown)} == {"–"}
    told = [words.upward(value) for value in (1.0, 0.1, 0.3, 2.0, 100.0, 0.7 + 0.1, 20.0855)]
    assert told == ["1.00", "0.100", "0.300", "2.00", "100", "0.800", "20.1"]
    assert words.upward(0.1 + 0.2, 4) == "0.3000"


def test_samples_stay_few_and_keep_the_first():
    clock, history = SteppedClock(), History()
    for number in range(20 * MOST_SAMPLES):
        history.note(clock(), {"c": number})
        clock.step(30)
    points = history.of("c")
    assert len(points) < MOST_SAMPLES
    assert points[0][1] == 0
    assert points[-1][1] > 18 * MOST_SAMPLES
    assert history.of("another") == []


def test_readings_are_what_the_metrics_counted():
    metrics = Metrics()
    metrics.observe_commit(3, 0.004, {"counted": 2, "duplicate": 1, "wrong-width": 4})
    metrics.observe_commit(1, 0.03, {"counted": 1, "wrong-width": 1})
    metrics.queue_bytes.set(77)
    metrics.queue_age.set(1.5)
    metrics.store_errors.inc(2)
    metrics.refusals.labels("overloaded").inc(6)
    metrics.count_request("/v1", "POST", 200, 0.1)
    metrics.count_refused("c", "report", "wrong-width", 4)
    readings = metrics.readings()
    assert (readings.counted, readings.duplicates, readings.refused) == (3, 1, {"wrong-width": 5})
    assert (readings.commit_count, readings.commit_quantile(0.5), readings.commit_quantile(0.9)) == (2, 0.005, 0.05)
    assert readings.mean_commit_seconds == pytest.approx(0.017)
    assert (readings.queue_bytes, readings.queue_seconds, readings.store_errors) == (77, 1.5, 2)
    assert (readings.refusals, readings.requests) == ({"overloaded": 6}, {("/v1", "POST", "200"): 1})
    assert readings.campaigns == {"c": {("report", "wrong-width"): 4}}
    assert Metrics().readings().commit_quantile(0.5) is None
