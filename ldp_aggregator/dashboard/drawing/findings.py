"""What a campaign's estimates show, question by question: figures, and the rows of the table beside each."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from ldp_aggregator.dashboard.drawing.plots import Bar, interval_plot
from ldp_aggregator.estimation.estimates import Estimates
from ldp_aggregator.estimation.estimators import Z_95
from ldp_aggregator.estimation.moments import DEFAULT_VARIANCE_FLOOR
from ldp_aggregator.estimation.poisoning.intervals import Interval
from ldp_aggregator.estimation.poisoning.lies import Lies
from ldp_aggregator.estimation.poisoning.moments import moments_reach, share_variance
from protocols.document.questions import PAIR
from protocols.document.schema import ContinuousFeature

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Row:
    """A number of a table: of a value (or None) and a class, with its interval and what liars can have moved it by."""

    value: str | None
    of_class: str
    estimate: float
    low: float
    high: float
    moved: float


@dataclass(frozen=True)
class Finding:
    """A figure and its table. ``unit`` is that of all numbers; ``n`` the reports behind it."""

    key: str
    title: str
    says: str
    unit: str
    n: int
    rows: tuple[Row, ...]
    plot: Markup

    @property
    def has_values(self) -> bool:
        return any(row.value is not None for row in self.rows)


def class_prior(estimates: Estimates, liars: int) -> Finding:
    """P(class), pooled over everything that tells it."""
    cells, classes = estimates.class_prior, estimates.campaign.label.classes
    moved = _moved(estimates.class_prior_per_liar, liars)
    numbers = (array.tolist() for array in (cells.value, cells.low, cells.high))
    rows = [Row(None, name, value, low, high, moved) for name, value, low, high in zip(classes, *numbers, strict=True)]
    says = "The share of each class among the devices, from every question that tells it."
    n = sum(one.n for one in estimates.questions if one.classes is not None)
    return _shares("prior", f"Classes of {estimates.campaign.label.name}", says, n, rows)


def of_features(estimates: Estimates, liars: int) -> Iterator[Finding]:
    """One for every asked feature, in the document's order."""
    campaign = estimates.campaign
    noise = _noise(estimates, liars)
    discrete = {one.question.feature: one for one in estimates.questions if one.question.kind == PAIR}
    for place, feature in enumerate(campaign.asked):
        if feature.name in discrete or feature.name in estimates.tables:
            if feature.name in discrete:
                found = discrete[feature.name]
                n, cells = found.n, estimates.cell_rows(found)
            else:
                n, cells = estimates.tables[feature.name].n, estimates.table_rows(feature.name)
            rows = [
                Row(
                    cell["value"],
                    cell["class"],
                    cell["estimate"],
                    cell["low"],
                    cell["high"],
                    _moved(cell["per_liar"], liars),
                )
                for cell in cells
            ]
            says = "The share of devices that have this value and this class; all rows together are all devices."
            yield _shares(f"feature-{place}", feature.name, says, n, rows)
        elif isinstance(feature, ContinuousFeature) and feature.name in estimates.moments:
            yield _gaussian(estimates, feature, liars, noise, place)


def _gaussian(estimates: Estimates, feature: ContinuousFeature, liars: int, noise: Interval, place: int) -> Finding:
    moments, classes = estimates.moments[feature.name], estimates.campaign.label.classes
    reach = Z_95 * np.sqrt(moments.mean_variance)
    moved = _mean_reach(estimates, feature, liars, noise)
    rows = [
        Row(None, name, mean, mean - wide, mean + wide, moves)
        for name, mean, wide, moves in zip(classes, moments.mean.tolist(), reach.tolist(), moved.tolist(), strict=True)
    ]
    deviations = ", ".join(f"{d:.3g} ({name})" for name, d in zip(classes, np.sqrt(moments.variance), strict=True))
    says = f"The mean of each class, in units of {feature.name}. Standard deviation: {deviations}."
    if moments.insufficient.any():
        says += " A class with too few reports shows the mean of all."
    low, high = float(feature.low), float(feature.high)
    n = sum(one.n for one in estimates.questions if one.question.feature == feature.name)
    title = f"{feature.name}: means with 95 % intervals"
    plot = interval_plot(_bars(rows, classes), title=title, axis=f"mean of {feature.name}", least=low, most=high)
    return Finding(f"feature-{place}", feature.name, says, f"units of {feature.name}", n, tuple(rows), plot)


def _noise(estimates: Estimates, liars: int) -> Interval:
    """What the variance of P(class) can become; the same for all features, and the slowest of it."""
    shares, everything = estimates.class_prior, estimates.campaign.privacy.answers == "all"
    classes = len(estimates.campaign.label.classes)
    return share_variance(estimates.questions, shares, classes, liars, shared_records=everything)


def _mean_reach(estimates: Estimates, feature: ContinuousFeature, liars: int, noise: Interval) -> Array:
    """How far so many liars can have moved the mean of each class; infinite where nothing bounds it."""
    if liars == 0:
        return np.zeros(len(estimates.campaign.label.classes))
    return moments_reach(
        feature,
        [estimates.round_of(feature)],
        estimates.moments[feature.name],
        estimates.class_prior,
        noise,
        [Lies(liars, liars, liars * estimates.class_prior_per_liar)],
        variance_floor=DEFAULT_VARIANCE_FLOOR,
        shrinkage=False,
    ).mean


def _shares(key: str, title: str, says: str, n: int, rows: Sequence[Row]) -> Finding:
    classes = tuple(dict.fromkeys(row.of_class for row in rows))
    most = max([0.1, *(row.high for row in rows if math.isfinite(row.high))])
    plot = interval_plot(
        _bars(rows, classes),
        title=f"{title}: shares with 95 % intervals",
        axis="share of devices",
        least=0.0,
        most=most,
    )
    return Finding(key, title, says, "share of devices", n, tuple(rows), plot)


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
    """Of a share, which cannot move by more than all."""
    return min(liars * per_liar, 1.0) if liars else 0.0
