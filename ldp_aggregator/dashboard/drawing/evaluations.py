"""The plots of an evaluation round: confusion, recall and precision, the ROC curve, calibration.

Made of the JSON that a model carries under ``evaluated``, so that a page can draw a published model's, too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from markupsafe import Markup

from ldp_aggregator.dashboard.drawing.plots import Bar, Drawn, interval_plot, rates_plot, standalone
from ldp_aggregator.service.words import interval, percent

Told = Mapping[str, Any]
_UNTOLD: Final = {"value": None, "low": None, "high": None}


def drawn(evaluated: Told) -> list[Drawn]:
    """The plots of an evaluation, as far as its answers tell anything."""
    found = [_rates(evaluated)]
    if evaluated["roc"]:
        found += [_curve(evaluated), _calibration(evaluated)]
    return found


def drawing(evaluated: Told) -> Markup:
    """All plots of an evaluation as one SVG document of its own."""
    return standalone([one.plot for one in drawn(evaluated)])


def figure_text(figure: Told) -> str:
    """A figure and its 95 % interval in percent; a dash for one that the answers do not tell."""
    if figure["value"] is None:
        return "–"
    return f"{percent(figure['value'])} ({interval(figure['low'], figure['high'])})"


PEOPLE: Final = 1000
"""Most classes of a picture of confusion."""


@dataclass(frozen=True)
class Confusion:
    """So many of :data:`PEOPLE` people, by the class said (rows) and their own, with each one's 95 % interval."""

    classes: Sequence[str]
    rows: Sequence[tuple[str, Sequence[tuple[int | None, str]]]]
    people: int = PEOPLE

    @property
    def most(self) -> int:
        return max((number or 0 for _, cells in self.rows for number, _ in cells), default=0)


def confusion_of(evaluated: Told) -> Confusion | None:
    """The confusion of an evaluation; None where its answers do not tell it."""
    names = list(evaluated["classes"])
    if not evaluated["confusion"]:
        return None
    return Confusion(
        names,
        [(name, [_people(one) for one in row]) for name, row in zip(names, evaluated["confusion"], strict=True)],
    )


def _people(figure: Told) -> tuple[int | None, str]:
    if figure["value"] is None:
        return None, ""
    least, most = (f"{PEOPLE * figure[end]:.0f}" for end in ("low", "high"))
    return round(PEOPLE * figure["value"]), f"{least} to {most}"


def _rates(evaluated: Told) -> Drawn:
    names = list(evaluated["classes"])
    groups = (("share of people", "classes"), ("recall", "recall"), ("precision", "precision"))
    bars = [_bar(group, name, place, evaluated[key][name]) for group, key in groups for place, name in enumerate(names)]
    says = (
        f"Recall: of the people who are “{names[0]}”, how many it finds. Precision: when it says “{names[0]}”, how "
        "often it is right."
    )
    rows = [(name, *(figure_text(evaluated[key][name]) for _, key in groups)) for name in names]
    plot = interval_plot(bars, title="Recall and precision by class", axis="%", least=0.0, most=100.0)
    heads = ("Class", *(group.capitalize() for group, _ in groups))
    return Drawn("rates", "Recall and precision", says, plot, heads, tuple(rows))


def _curve(evaluated: Told) -> Drawn:
    second = list(evaluated["classes"])[1]
    rates = [(one["false_positive"], one["true_positive"]) for one in evaluated["roc"]]
    points = [
        (false["value"], true["value"], true["low"], true["high"])
        for false, true in rates
        if None not in (false["value"], true["value"])
    ]
    plot = rates_plot(points, title="ROC curve", axes=("% false alarms", "% found"))
    says = (
        f"Area under the curve: {figure_text(evaluated['area'] or _UNTOLD)}; 50 % is a coin. A point is a limit from "
        f"which on it says “{second}”: of the others so many are false alarms, of “{second}” so many are found."
    )
    rows = [
        (f"{one['threshold']:g}", figure_text(one["false_positive"]), figure_text(one["true_positive"]))
        for one in evaluated["roc"]
    ]
    heads = ("Limit, in log odds", "False alarms", "Found")
    return Drawn("roc", "ROC curve", says, plot, heads, tuple(rows))


def _calibration(evaluated: Told) -> Drawn:
    second = list(evaluated["classes"])[1]
    bins = evaluated["calibration"]
    labels = [f"{100 * low:.0f} to {100 * high:.0f} %" for low, high in (one["claims"] for one in bins)]
    bars = [_bar(None, label, 0, one["measured"]) for label, one in zip(labels, bins, strict=True)]
    texts = [(figure_text(one["share"]), figure_text(one["measured"])) for one in bins]
    rows = [(label, *figures) for label, figures in zip(labels, texts, strict=True)]
    plot = interval_plot(bars, title="Calibration", axis=f"% who are {second}", least=0.0, most=100.0)
    says = f"When it claims “{second}” with a probability in the range at the left, how often that is so."
    return Drawn("calibration", "Calibration", says, plot, (f"Claims {second}", "Of people", "Measured"), tuple(rows))


def _bar(group: str | None, label: str, mark: int, figure: Told) -> Bar:
    ends = (math.nan if figure[end] is None else 100 * figure[end] for end in ("value", "low", "high"))
    return Bar(group, label, mark, *ends)
