"""The plots of an evaluation round: recall and precision, the ROC curve, calibration.

Made of the JSON that a model carries under ``evaluated``, so that a page can draw a published model's, too.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from markupsafe import Markup

from ldp_aggregator.dashboard.drawing.plots import Bar, Drawn, interval_plot, rates_plot, standalone
from ldp_aggregator.store.contract import PublishedModel

Told = Mapping[str, Any]
_UNTOLD: Final = {"value": None, "low": None, "high": None}


def drawn(evaluated: Told) -> list[Drawn]:
    """Return the plots of an evaluation, as far as its answers tell anything."""
    found = [_rates(evaluated)]
    if evaluated["roc"]:
        found += [_curve(evaluated), _calibration(evaluated)]
    return found


def drawing(evaluated: Told) -> Markup:
    """Return all plots of an evaluation as one SVG document of its own."""
    return standalone([one.plot for one in drawn(evaluated)])


def figure_text(figure: Told) -> str:
    """Return a figure and its 95 % interval in percent; a dash for one that the answers do not tell."""
    if figure["value"] is None:
        return "–"
    value, low, high = (f"{100 * figure[end]:.1f}" for end in ("value", "low", "high"))
    return f"{value}\u00a0% ({low} to {high})"


def _rates(evaluated: Told) -> Drawn:
    names = list(evaluated["classes"])
    groups = (("share of people", "classes"), ("recall", "recall"), ("precision", "precision"))
    bars = [_bar(group, name, place, evaluated[key][name]) for group, key in groups for place, name in enumerate(names)]
    says = "Recall: of the people of a class, those the model says so of. Precision: of those it says so of, the right."
    rows = [(name, *(figure_text(evaluated[key][name]) for _, key in groups)) for name in names]
    plot = interval_plot(bars, title="Recall and precision by class", axis="%", least=0.0, most=100.0)
    heads = ("Class", *(group.capitalize() for group, _ in groups))
    return Drawn("rates", "Recall and precision", says, plot, heads, tuple(rows))


def _curve(evaluated: Told) -> Drawn:
    second = list(evaluated["classes"])[1]
    rates = [(one["false_positive"], one["true_positive"]) for one in evaluated["roc"]]
    told = [
        (false["value"], true["value"], true["low"], true["high"])
        for false, true in rates
        if None not in (false["value"], true["value"])
    ]
    plot = rates_plot(told, title="ROC curve", axes=(f"% of others said to be {second}", f"% of {second} said so"))
    says = f"Area under the curve: {figure_text(evaluated['area'] or _UNTOLD)}; 50 % is chance. A point is a threshold."
    rows = [
        (f"{one['threshold']:g}", figure_text(one["false_positive"]), figure_text(one["true_positive"]))
        for one in evaluated["roc"]
    ]
    heads = ("Log odds above", f"Of others said {second}", f"Of {second} said so")
    return Drawn("roc", "ROC curve", says, plot, heads, tuple(rows))


def _calibration(evaluated: Told) -> Drawn:
    second = list(evaluated["classes"])[1]
    bins = evaluated["calibration"]
    labels = [f"{100 * low:.0f} to {100 * high:.0f} %" for low, high in (one["claims"] for one in bins)]
    bars = [_bar(None, label, 0, one["measured"]) for label, one in zip(labels, bins, strict=True)]
    told = [(figure_text(one["share"]), figure_text(one["measured"])) for one in bins]
    rows = [(label, *figures) for label, figures in zip(labels, told, strict=True)]
    plot = interval_plot(bars, title="Calibration", axis=f"% who are {second}", least=0.0, most=100.0)
    says = f"Where the model claims a probability of {second} in the range at the left, how many of the people are."
    return Drawn("calibration", "Calibration", says, plot, (f"Claims {second}", "Of people", "Measured"), tuple(rows))


def _bar(group: str | None, label: str, mark: int, figure: Told) -> Bar:
    ends = (math.nan if figure[end] is None else 100 * figure[end] for end in ("value", "low", "high"))
    return Bar(group, label, mark, *ends)


@dataclass(frozen=True)
class ModelRow:
    """``accuracy`` with its 95 % interval where an evaluation round ran; what a document does not carry is None."""

    version: int
    created: datetime
    reports: int | None
    epsilon: float | None
    published_epsilon: float | None
    published_delta: float | None
    accuracy: float | None
    low: float | None
    high: float | None
    round: str | None
    """The id of the evaluation round."""
    majority: float | None = None
    """Share of people whose class is the most frequent one, as far as the reports tell."""
    best: tuple[str, float, float] | None = None
    """The most telling feature, and from where to where it alone is expected to be right."""
    tells_something: bool | None = None


def model_row(model: PublishedModel) -> ModelRow:
    """Read what the model's document says; it may be of a version that says less."""
    try:
        training = _object(json.loads(model.document).get("training"))
    except (ValueError, AttributeError):
        training = {}
    published, evaluation = _object(training.get("published")), _object(training.get("evaluated"))
    reports = training.get("reports")
    accuracy = _object(evaluation.get("accuracy"))
    expected = _object(training.get("expected"))
    best, tells = _object(expected.get("best_feature")), expected.get("tells_something")
    feature, low, high = _text(best.get("feature")), _number(best.get("low")), _number(best.get("high"))
    return ModelRow(
        model.version,
        model.created,
        reports if isinstance(reports, int) else None,
        _number(_object(training.get("guarantee")).get("epsilon")),
        _number(published.get("epsilon")),
        _number(published.get("delta")),
        _number(accuracy.get("value")),
        _number(accuracy.get("low")),
        _number(accuracy.get("high")),
        _text(evaluation.get("campaign")),
        _number(expected.get("majority")),
        None if feature is None or low is None or high is None else (feature, low, high),
        tells if isinstance(tells, bool) else None,
    )


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
