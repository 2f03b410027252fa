"""The plots of an evaluation round and their tables: every figure in its own place."""

from xml.etree import ElementTree

import pytest

from ldp_aggregator.dashboard.drawing.evaluations import confusion_of, drawn, figure_text

SVG = "{http://www.w3.org/2000/svg}"
UNTOLD = {"value": None, "low": None, "high": None}


def figure(value, wide=0.05):
    return {"value": value, "low": value - wide, "high": value + wide}


EVALUATED = {
    "classes": {"no": figure(0.7), "yes": figure(0.3)},
    "recall": {"no": figure(0.8), "yes": figure(0.6)},
    "precision": {"no": figure(0.9), "yes": UNTOLD},
    "roc": [
        {"threshold": 1.5, "false_positive": figure(0.1), "true_positive": figure(0.6, 0.2)},
        {"threshold": -1, "false_positive": figure(0.4), "true_positive": figure(0.9)},
        {"threshold": 0, "false_positive": figure(0.2), "true_positive": UNTOLD},
    ],
    "area": figure(0.82),
    "calibration": [
        {"claims": [0.0, 0.25], "share": figure(0.6), "measured": figure(0.1)},
        {"claims": [0.25, 1.0], "share": figure(0.4), "measured": figure(0.75)},
    ],
}


def dots(plot):
    """Where dots are, in percent of the axis from 0 to 100."""
    parts = ElementTree.fromstring(plot)
    ticks = {one.text: float(one.get("x")) for one in parts.iter(f"{SVG}text") if one.get("class") == "tick"}
    span = ticks["100"] - ticks["0"]
    return [100 * (float(one.get("cx")) - ticks["0"]) / span for one in parts.iter(f"{SVG}circle")]


def test_recall_and_precision_stand_under_their_heads():
    rates = drawn(EVALUATED)[0]
    assert rates.heads == ("Class", "Share of people", "Recall", "Precision")
    assert rates.rows == (
        (
            "no",
            "70.0\u00a0% (65.0 to 75.0\u00a0%)",
            "80.0\u00a0% (75.0 to 85.0\u00a0%)",
            "90.0\u00a0% (85.0 to 95.0\u00a0%)",
        ),
        ("yes", "30.0\u00a0% (25.0 to 35.0\u00a0%)", "60.0\u00a0% (55.0 to 65.0\u00a0%)", "–"),
    )
    assert dots(rates.plot) == pytest.approx([70, 30, 80, 60, 90], abs=0.1), "of what is not told no dot is drawn"


def test_the_curve_is_of_the_second_class_and_of_points_that_are_told():
    roc = drawn(EVALUATED)[1]
    assert roc.heads == ("Limit, in log odds", "False alarms", "Found")
    assert [row[0] for row in roc.rows] == ["1.5", "-1", "0"]
    assert [row[1:] for row in roc.rows[:1]] == [
        ("10.0\u00a0% (5.0 to 15.0\u00a0%)", "60.0\u00a0% (40.0 to 80.0\u00a0%)")
    ]
    assert roc.says.startswith("Area under the curve: 82.0\u00a0% (77.0 to 87.0\u00a0%); 50 % is a coin.")
    parts = ElementTree.fromstring(roc.plot)
    assert len(list(parts.iter(f"{SVG}circle"))) == 2
    [first, _] = [one for one in parts.iter(f"{SVG}line") if one.get("class") == "mark0"]
    grid = sorted({float(one.get("y1")) for one in parts.iter(f"{SVG}line") if one.get("y1") == one.get("y2")})
    side = grid[-1] - grid[0]
    assert (float(first.get("y1")) - float(first.get("y2"))) / side == pytest.approx(0.4, abs=0.01), "of the yes"
    assert [one.text for one in parts.iter() if one.get("class") == "axis"] == [
        "% found",
        "% false alarms",
    ]


def test_calibration_shows_what_was_measured_of_what_is_claimed():
    calibration = drawn(EVALUATED)[2]
    assert calibration.heads == ("Claims yes", "Of people", "Measured")
    assert calibration.rows == (
        ("0 to 25 %", "60.0\u00a0% (55.0 to 65.0\u00a0%)", "10.0\u00a0% (5.0 to 15.0\u00a0%)"),
        ("25 to 100 %", "40.0\u00a0% (35.0 to 45.0\u00a0%)", "75.0\u00a0% (70.0 to 80.0\u00a0%)"),
    )
    assert dots(calibration.plot) == pytest.approx([10, 75], abs=0.1)
    assert "% who are yes" in calibration.plot


def test_confusion_is_of_people_by_what_is_said_and_what_they_are():
    told = {**EVALUATED, "confusion": [[figure(0.6), figure(0.1)], [UNTOLD, figure(0.2, 0.1)]]}
    found = confusion_of(told)
    assert (found.classes, found.most) == (["no", "yes"], 600)
    assert found.rows == [
        ("no", [(600, "550 to 650"), (100, "50 to 150")]),
        ("yes", [(None, ""), (200, "100 to 300")]),
    ]
    assert confusion_of({**EVALUATED, "confusion": []}) is None


def test_what_is_not_told_is_not_drawn():
    assert [one.key for one in drawn({**EVALUATED, "roc": [], "area": None, "calibration": []})] == ["rates"]
    assert [one.key for one in drawn(EVALUATED)] == ["rates", "roc", "calibration"]
    assert drawn({**EVALUATED, "area": None})[1].says.startswith("Area under the curve: –;")
    assert figure_text(UNTOLD) == "–"
