"""Figures of a campaign's estimates, question by question, and the rows of the table beside each."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from markupsafe import Markup

from ldp_aggregator.dashboard.drawing.plots import Bar, interval_plot
from ldp_aggregator.estimation.cell_tables import value_names
from ldp_aggregator.estimation.estimates import Estimates
from ldp_aggregator.estimation.estimators import Z_95
from ldp_aggregator.estimation.ratios import conditional_reach, conditional_table
from protocols.document.questions import PAIR
from protocols.document.schema import ContinuousFeature, Feature

_SHOWN: Final = (-50.0, 150.0)
"""Percent, as far as a figure follows unbiased shares and their intervals; the table has all of it."""


@dataclass(frozen=True)
class Row:
    """A number of a table: of a value (or None) and a class, with its interval and what liars can have moved it by;
    ``together`` is the share of all devices that have both. ``estimate`` is NaN where nothing is known.
    """

    value: str | None
    of_class: str
    estimate: float
    low: float
    high: float
    moved: float
    together: float | None = None


@dataclass(frozen=True)
class Learned:
    """A figure and its table. ``unit`` is that of all numbers; ``n`` the reports behind it. ``is_share`` where they
    are parts of a whole.
    """

    key: str
    title: str
    says: str
    unit: str
    n: int
    rows: tuple[Row, ...]
    plot: Markup
    is_share: bool = True

    @property
    def has_values(self) -> bool:
        return any(row.value is not None for row in self.rows)


def class_prior(estimates: Estimates, liars: int) -> Learned:
    """P(class), pooled over everything that tells it."""
    cells, classes = estimates.class_prior, estimates.campaign.label.classes
    moved = _moved(estimates.class_prior_per_liar, liars)
    numbers = (array.tolist() for array in (cells.value, cells.low, cells.high))
    rows = [Row(None, name, value, low, high, moved) for name, value, low, high in zip(classes, *numbers, strict=True)]
    says = "The share of each class among the devices, from every question that tells it."
    n = sum(one.n for one in estimates.questions if one.classes is not None)
    title = f"Classes of {estimates.campaign.label.name}"
    return _shares("prior", title, says, "share of devices", n, rows, estimates.campaign.label.classes)


def of_features(estimates: Estimates, liars: int) -> Iterator[Learned]:
    """One for every asked feature, in the document's order."""
    campaign = estimates.campaign
    discrete = {one.question.feature for one in estimates.questions if one.question.kind == PAIR}
    for place, feature in enumerate(campaign.asked):
        if feature.name in discrete:
            yield _distribution(estimates, feature, liars, place)
        elif isinstance(feature, ContinuousFeature) and feature.name in estimates.moments:
            yield _gaussian(estimates, feature, liars, place)


def _distribution(estimates: Estimates, feature: Feature, liars: int, place: int) -> Learned:
    """P(value | class)."""
    table, classes = conditional_table(estimates, feature.name), estimates.campaign.label.classes
    names = value_names(feature)
    cells, known = table.cells, np.isfinite(table.cells.variance)
    columns = (
        np.where(known, cells.value, np.nan),
        cells.low,
        cells.high,
        conditional_reach(estimates, table, liars),
        table.pair.cells.value if table.pair.n else np.full(known.size, np.nan),
    )
    places = ((value, of_class) for value in names for of_class in classes)
    numbers = zip(*(column.tolist() for column in columns), strict=True)
    rows = [Row(*names_, *row) for names_, row in zip(places, numbers, strict=True)]
    says = "Of the devices of each class, the share that has each value."
    if not known.all() and table.pair.n:
        says += " Nothing is known of a class that too few reports tell from none."
    says += _missing_told(estimates, feature.name)
    return _shares(f"feature-{place}", feature.name, says, "share of the class", table.pair.n, rows, classes)


def _gaussian(estimates: Estimates, feature: ContinuousFeature, liars: int, place: int) -> Learned:
    moments, classes = estimates.moments[feature.name], estimates.campaign.label.classes
    reach = Z_95 * np.sqrt(moments.mean_variance)
    moved = estimates.mean_reach(feature.name, liars) if liars else np.zeros(len(classes))
    rows = [
        Row(None, name, mean, mean - wide, mean + wide, moves)
        for name, mean, wide, moves in zip(classes, moments.mean.tolist(), reach.tolist(), moved.tolist(), strict=True)
    ]
    deviations = ", ".join(f"{d:.3g} ({name})" for name, d in zip(classes, np.sqrt(moments.variance), strict=True))
    says = f"The mean of each class, in units of {feature.name}. Standard deviation: {deviations}."
    if moments.insufficient.any():
        says += " A class with too few reports shows the mean of all."
    says += _missing_told(estimates, feature.name)
    low, high = float(feature.low), float(feature.high)
    n = sum(one.n for one in estimates.questions if one.question.feature == feature.name)
    title = f"{feature.name}: means with 95 % intervals"
    plot = interval_plot(_bars(rows, classes), title=title, axis=f"mean of {feature.name}", least=low, most=high)
    unit = f"units of {feature.name}"
    return Learned(f"feature-{place}", feature.name, says, unit, n, tuple(rows), plot, is_share=False)


def _missing_told(estimates: Estimates, feature: str) -> str:
    """Return a sentence on the devices without a value, for a feature that may be missing and was asked about."""
    part = estimates.missing.get(feature)
    if part is None or not math.isfinite(part.cells.variance[0]):
        return ""
    share, low, high = (float(end[0]) for end in (part.cells.value, part.cells.low, part.cells.high))
    return f" No value: {share:.1%} of devices (95 % interval {low:.1%} to {high:.1%})."


def _shares(key: str, title: str, says: str, unit: str, n: int, rows: Sequence[Row], classes: Sequence[str]) -> Learned:
    highest = [100 * row.high for row in rows if math.isfinite(row.estimate)]
    plot = interval_plot(
        [_in_percent(bar) for bar in _bars(rows, classes)],
        title=f"{title}: shares with 95 % intervals",
        axis=f"% of {unit.removeprefix('share of ')}",
        least=0.0,
        most=min(max([10.0, *highest]), 100.0),
        beyond=_SHOWN,
    )
    return Learned(key, title, says, unit, n, tuple(rows), plot)


def _in_percent(bar: Bar) -> Bar:
    reach = None if bar.reach is None else 100 * bar.reach
    return replace(bar, value=100 * bar.value, low=100 * bar.low, high=100 * bar.high, reach=reach)


def _bars(rows: Sequence[Row], classes: Sequence[str]) -> list[Bar]:
    return [
        Bar(
            row.value,
            row.of_class,
            classes.index(row.of_class),
            row.estimate,
            row.low,
            row.high,
            row.moved if math.isfinite(row.moved) else None,
        )
        for row in rows
    ]


def _moved(per_liar: float, liars: int) -> float:
    """Return how far lies move a share, which is by all of it at most."""
    return min(liars * per_liar, 1.0) if liars else 0.0
