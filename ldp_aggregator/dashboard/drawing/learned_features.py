"""Pictures of what a campaign has learned: the features that tell most of the class first, and the table under each: a
mark is a share as the model believes it, given all reports: never below 0, and drawn to what is likely where reports
are few. The line is the 95 % interval of the unbiased estimate, as far as shares go.

Of a campaign with windows, the last one in words, how many devices answered in each, and shares over time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Final

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from ldp_aggregator.counting.tally import Tally, devices_counted
from ldp_aggregator.dashboard.drawing.plots import (
    MARKS,
    Bar,
    Drawn,
    Line,
    Share,
    interval_plot,
    series_plot,
    shares_plot,
)
from ldp_aggregator.dashboard.drawing.precision import more_devices
from ldp_aggregator.estimation.cells import Z_95, cell_places
from ldp_aggregator.estimation.estimates import Estimates
from ldp_aggregator.estimation.estimators import QuestionEstimate
from ldp_aggregator.estimation.posterior import Posterior, posterior_of
from ldp_aggregator.estimation.ratios import conditional_reach, conditional_table
from ldp_aggregator.learning.series import INTERVALS_MEAN, QuestionSeries, series_of
from ldp_aggregator.service.verdicts import WIDEST, clue
from ldp_aggregator.service.words import cells, interval, percent, plain_number
from ldp_protocols import Campaign
from ldp_protocols.document.questions import JOINT, LABEL, PAIR
from ldp_protocols.document.windows import Windows
from ldp_protocols.features import Feature, NumericFeature

Array = NDArray[np.float64]

_MOST_LINES: Final = MARKS
"""Lines of a plot: the values that are most frequent."""
_MOST_CELLS: Final = 1 << 9
"""Cells of a question that is drawn: a page does not wait for more to be smoothed, ``estimates --smooth`` does."""
_MOST_VALUES: Final = 12
"""Values of a plot, the most frequent; the table has all."""
MOST_MARKS: Final = 3
"""Classes that a plot tells apart by marks; of more there is a table whose cells are shaded."""
SHADES: Final = 5
_SOME_MISSING: Final = 0.0
"""The lower end of the share of devices without a value, above which some are known to lack it."""


@dataclass(frozen=True)
class Row:
    """A number of a table: of a value (or None) and a class, as ``believed`` and as the unbiased ``estimate``, with the
    interval of that and what liars can have moved it by; ``together`` is the share of all devices that have both.
    ``estimate`` is NaN where nothing is known.
    """

    value: str | None
    of_class: str
    believed: float
    estimate: float
    low: float
    high: float
    moved: float
    together: float | None = None


@dataclass(frozen=True)
class FeatureFigure:
    """A feature's numbers, all in ``unit``, of ``n`` reports; ``told``: bits that it holds on the class, ``removed`` as
    a share of the uncertainty; ``more``: devices that are missing until it can be drawn.
    """

    key: str
    title: str
    says: str
    unit: str
    n: int
    rows: tuple[Row, ...]
    is_share: bool = True
    told: float = 0.0
    removed: float = 0.0
    more: int | None = None
    bounds: tuple[float, float] | None = None
    """Between which the mean lies."""

    @property
    def has_values(self) -> bool:
        return any(row.value is not None for row in self.rows)

    @property
    def has_classes(self) -> bool:
        return any(row.of_class for row in self.rows)

    @property
    def clue(self) -> str:
        return clue(self.removed)

    @property
    def highest(self) -> float:
        """The highest share that an interval of it reaches, at most 1."""
        return min(max((row.high for row in self.rows if math.isfinite(row.estimate)), default=0.0), 1.0)

    def by_value(self) -> list[tuple[str, list[Row]]]:
        """The rows of each value that is drawn, in the order of their declaration."""
        found: dict[str, list[Row]] = {}
        for row in self.rows:
            found.setdefault(row.value or row.of_class, []).append(row)
        often = sorted(found, key=lambda value: -max(row.believed for row in found[value]))[:_MOST_VALUES]
        return [(value, rows) for value, rows in found.items() if value in often]


def draw(figures: Iterable[FeatureFigure], classes: Sequence[str]) -> Mapping[str, Markup]:
    """Plots by key, all shares on one axis; none of a figure of which too little is known, or with too many classes."""
    drawable = [
        one
        for one in figures
        if one.n and one.more is None and not (one.has_values and one.is_share and len(classes) > MOST_MARKS)
    ]
    most = 100 * max([0.1, *(one.highest for one in drawable if one.is_share)])
    return {one.key: _plot(one, classes, most) for one in drawable}


def _plot(one: FeatureFigure, classes: Sequence[str], most: float) -> Markup:
    if not one.is_share:
        low, high = one.bounds or (0.0, 1.0)
        bars = [
            Bar(None, row.of_class, place, row.estimate, max(row.low, low), min(row.high, high), row.moved)
            for place, row in enumerate(one.rows)
        ]
        title = f"{one.title}: means with 95 % intervals"
        return interval_plot(bars, title=title, axis=f"mean of {one.title}", least=low, most=high, beyond=(low, high))
    title = f"{one.title}: shares with 95 % intervals"
    rows = [
        (value, [_share(row, classes) for row in rows if math.isfinite(row.estimate)]) for value, rows in one.by_value()
    ]
    return shares_plot(rows, title=title, most=most)


def _share(row: Row, classes: Sequence[str]) -> Share:
    moved, mark = min(row.moved, 1.0), classes.index(row.of_class) if len(classes) <= MOST_MARKS else 0
    return Share(mark, *(100 * one for one in (row.believed, row.low, row.high, moved)))


def highest_cell(figures: Iterable[FeatureFigure]) -> float:
    """The highest share that is believed, against which cells are shaded."""
    return max((row.believed for one in figures if one.is_share for row in one.rows), default=0.0)


def shade(share: float, highest: float) -> int:
    """The darkness of a cell, from 0 to :data:`SHADES`, against the highest of its page."""
    return min(SHADES, int(share / highest * (SHADES + 1))) if highest > 0 and math.isfinite(share) else 0


def believed(estimates: Estimates) -> Posterior:
    """Beliefs of a model on the campaign's discrete features and classes now."""
    campaign = estimates.campaign
    discrete = [feature for feature in campaign.asked if feature.moments is None]
    return posterior_of(discrete, len(campaign.label.classes), estimates.questions, estimates.questions)


def class_prior(estimates: Estimates, posterior: Posterior, liars: int) -> FeatureFigure:
    """P(class), pooled over everything that tells it."""
    prior, classes = estimates.class_prior, estimates.campaign.label.classes
    moved = min(liars * estimates.class_prior_per_liar, 1.0) if liars else 0.0  # By all of it at most.
    numbers = (array.tolist() for array in (posterior.classes.value, prior.value, prior.low, prior.high))
    rows = [
        Row(None, name, share, value, low, high, moved)
        for name, share, value, low, high in zip(classes, *numbers, strict=True)
    ]
    n = sum(one.n for one in estimates.questions if one.classes is not None)
    name = estimates.campaign.label.name
    more = more_devices(estimates.campaign, n, _width(rows))
    return FeatureFigure("prior", name, "", "share of devices", n, tuple(rows), more=more)


def _width(rows: Sequence[Row]) -> float:
    """Half of the mean interval, of shares; infinite where one is not known."""
    if not all(math.isfinite(row.estimate) for row in rows):
        return math.inf
    return sum(row.high - row.low for row in rows) / (2 * len(rows))


def of_features(estimates: Estimates, posterior: Posterior | None, liars: int) -> list[FeatureFigure]:
    """One for every asked feature, those first that are believed to tell most of the class; without a label, where
    nothing is believed but what was told, of features that were asked together, too.
    """
    found = []
    discrete = {one.question.feature for one in estimates.questions if one.question.kind == PAIR}
    for place, feature in enumerate(estimates.campaign.asked):
        if feature.name in discrete:
            found.append(_distribution(estimates, posterior, feature, liars, place))
        elif feature.moments is not None and feature.name in estimates.moments:
            found.append(_gaussian(estimates, posterior, feature.moments, liars, place))
    found += [_together(estimates, one, liars) for one in estimates.questions if one.question.kind == JOINT]
    return sorted(found, key=lambda one: -one.told)


def _distribution(
    estimates: Estimates, posterior: Posterior | None, feature: Feature, liars: int, place: int
) -> FeatureFigure:
    """P(value | class); without a label P(value)."""
    if posterior is None:
        processed, bits, removed = estimates.asking(feature.name, PAIR).processed, 0.0, 0.0
        shares = np.zeros(0) if processed is None else processed
        median = _median_told(estimates, feature)
    else:
        belief = posterior.features[feature.name]
        shares, median = belief.cells_of(belief.mean[None])[0], ""
        bits = _bits(posterior.classes.value, shares)
        removed = _removed(bits, posterior)
    table, classes = conditional_table(estimates, feature.name), estimates.campaign.label.classes
    is_finite = np.isfinite(table.cells.variance)
    columns = (
        shares.ravel(),
        np.where(is_finite, table.cells.value, np.nan),
        table.cells.low,
        table.cells.high,
        conditional_reach(estimates, table, liars),
        table.pair.cells.value if table.pair.n else np.full(is_finite.size, np.nan),
    )
    some_missing, missing = _missing_told(estimates, feature.name)
    places = ((value, of_class) for value in cells(feature) for of_class in classes)
    numbers = zip(*(column.tolist() for column in columns), strict=True)
    rows = [Row(*names, *row) for names, row in zip(places, numbers, strict=True)]
    if feature.missing and not some_missing:
        rows = rows[: -len(classes)]
    says = median + missing
    if not is_finite.all() and table.pair.n:
        says += " Nothing is known of a class that too few reports tell from none."
    known_rows = [row for row in rows if math.isfinite(row.estimate)]
    width = _width(known_rows) if known_rows else math.inf
    return FeatureFigure(
        f"feature-{place}",
        feature.name,
        says,
        "share of the class" if posterior else "share of devices",
        table.pair.n,
        tuple(rows),
        told=bits,
        removed=removed,
        more=more_devices(estimates.campaign, sum(one.n for one in estimates.questions), width)
        if table.pair.n
        else None,
    )


def _together(estimates: Estimates, one: QuestionEstimate, liars: int) -> FeatureFigure:
    """P(value, value of other) of two features that are asked together."""
    names = [f"{place['value']}, {place['other_value']}" for place in cell_places(estimates.campaign, one.question)]
    moved = np.minimum(liars * estimates.per_liar[one.question.index], 1.0) if liars else np.zeros(len(names))
    numbers = (one.cells.value if one.processed is None else one.processed, one.cells.value, one.cells.low)
    columns = [column.tolist() for column in (*numbers, one.cells.high, moved)]
    rows = [Row(name, "", *row) for name, *row in zip(names, *columns, strict=True)]
    by_chance = next(row["p_value"] for row in estimates.summaries() if row.get("question") == one.question.index)
    says = f"The share of devices that have both. Features that tell nothing of each other look so in {by_chance:.2g}."
    key, title = f"feature-joint{one.question.index}", f"{one.question.feature} and {one.question.other}"
    devices = sum(other.n for other in estimates.questions)
    more = more_devices(estimates.campaign, devices, _width(rows)) if one.n else None
    return FeatureFigure(key, title, says, "share of devices", one.n, tuple(rows), more=more)


def _median_told(estimates: Estimates, feature: Feature) -> str:
    if feature.number is None or not estimates.asking(feature.name, PAIR).n:
        return ""
    median, low, high = (plain_number(float(f"{value:.4g}")) for value in estimates.quantile(feature.name))
    return f" Median: {median} ({low} to {high})."


def _gaussian(
    estimates: Estimates, posterior: Posterior | None, feature: NumericFeature, liars: int, place: int
) -> FeatureFigure:
    moments, classes = estimates.moments[feature.name], estimates.campaign.label.classes
    reach = Z_95 * np.sqrt(moments.mean_variance)
    moved = estimates.mean_reach(feature.name, liars) if liars else np.zeros(len(classes))
    rows = [
        Row(None, name, mean, mean, mean - wide, mean + wide, moves)
        for name, mean, wide, moves in zip(classes, moments.mean.tolist(), reach.tolist(), moved.tolist(), strict=True)
    ]
    if posterior is None:
        deviation, bits, removed = moments.deviation, 0.0, 0.0
        value, least, most = (float(part[0]) for part in (deviation.value, deviation.low, deviation.high))
        says = f"The mean. Standard deviation: {value:.3g} (95 % interval {least:.3g} to {most:.3g})."
    else:
        deviations = ", ".join(f"{d:.3g} ({name})" for name, d in zip(classes, np.sqrt(moments.variance), strict=True))
        bits = _bits_of_normal(posterior.classes.value, moments.mean, moments.variance)
        removed = _removed(bits, posterior)
        says = f"The mean of each class, in units of {feature.name}. Standard deviation: {deviations}."
    if moments.insufficient.any():
        says += " A class with too few reports shows the mean of all."
    says += _missing_told(estimates, feature.name)[1]
    low, high = float(feature.low), float(feature.high)
    width = float(reach.mean()) / (high - low) if not moments.insufficient.any() else math.inf
    return FeatureFigure(
        f"feature-{place}",
        feature.name,
        says,
        f"units of {feature.name}",
        sum(one.n for one in estimates.questions if one.question.feature == feature.name),
        tuple(rows),
        is_share=False,
        told=bits,
        removed=removed,
        more=more_devices(estimates.campaign, sum(one.n for one in estimates.questions), width),
        bounds=(low, high),
    )


def _bits(classes: Array, shares: Array) -> float:
    """The mutual information of class and value, for P(value | class), shape (cells, C)."""
    joint = shares * classes
    independent = joint.sum(axis=1, keepdims=True) * classes
    positive = joint > 0
    return float((joint[positive] * np.log2(joint[positive] / independent[positive])).sum())


def _bits_of_normal(classes: Array, means: Array, variances: Array) -> float:
    """The information on the class of a number that is normal in each, as if it were normal in all together."""
    within = float(classes @ variances)
    return math.log2(1 + float(classes @ (means - classes @ means) ** 2) / within) / 2 if within > 0 else 0.0


def _removed(bits: float, posterior: Posterior) -> float:
    """The share of the class's entropy that so many bits are."""
    positive = posterior.classes.value[posterior.classes.value > 0]
    entropy = -float((positive * np.log2(positive)).sum())
    return bits / entropy if entropy > 0 else 0.0


def _missing_told(estimates: Estimates, feature: str) -> tuple[bool, str]:
    """True if some devices are known to have no value, with a sentence on how many."""
    part = estimates.missing.get(feature)
    if part is None or not math.isfinite(part.cells.variance[0]):
        return False, ""
    share, low, high = (float(end[0]) for end in (part.cells.value, part.cells.low, part.cells.high))
    if low > _SOME_MISSING:
        return True, f" Without a value: {percent(share)} ({interval(low, high)})."
    return False, f" Without a value: less than {math.ceil(100 * min(high, 1.0))}\u00a0%." if high < WIDEST else ""


@dataclass(frozen=True)
class Window:
    """A window that has answers: what it is called, how many devices answered, and that over the mean of all such."""

    name: str
    devices: int
    of_the_mean: float
    is_running: bool = False


@dataclass(frozen=True)
class OverTime:
    """The windows that have answers; the last that is over, in words; curves of the classes and of a feature."""

    windows: Sequence[Window]
    now: tuple[str, str] | None
    drawn: Sequence[Drawn]
    intervals_mean: str = INTERVALS_MEAN


def shown_series(campaign: Campaign, tally: Tally) -> tuple[QuestionSeries, ...]:
    """The series of a campaign with windows that are drawn; none of any other one, and before there is an answer."""
    return series_of(campaign, tally, _MOST_CELLS) if campaign.windows is not None and tally.n.any() else ()


def over_time(
    campaign: Campaign, tally: Tally, found: Sequence[QuestionSeries], moment: datetime, feature: str | None = None
) -> OverTime | None:
    """Draw the series that were ``found`` of a campaign, with one feature's curves; None of a campaign without."""
    if campaign.windows is None or not found:
        return None
    numbers = [devices_counted(campaign, one.n.tolist()) for one in tally.windows]
    mean = sum(numbers) / sum(number > 0 for number in numbers)
    windows = [
        Window(
            f"{place + 1}, from {campaign.windows.opens(place):%Y-%m-%d %H:%M}",
            number,
            number / mean,
            campaign.windows.opens(place + 1) > moment,
        )
        for place, number in enumerate(numbers)
        if number
    ]
    now = _now(campaign, campaign.windows, found, moment)
    return OverTime(windows, now, list(_drawn(campaign, found, partial(_figure, campaign.windows, moment), feature)))


def _now(
    campaign: Campaign, windows: Windows, found: Sequence[QuestionSeries], moment: datetime
) -> tuple[str, str] | None:
    """The first class's share in the last window that is over, in words, against the one before."""
    for one in found:
        levels, place = one.levels.smoothed, len(one.n) - 1 - (windows.opens(len(one.n)) > moment)
        if one.question.kind == LABEL and place >= 0 and math.isfinite(levels.variance[place][0]):
            share, low, high = (float(end[place][0]) for end in (levels.value, levels.low, levels.high))
            times = (f"{windows.opens(end):%Y-%m-%d %H:%M}" for end in (place, place + 1))
            before = f"; {percent(float(levels.value[place - 1][0]))} in the one before" if place else ""
            sentence = f"{interval(low, high)} in the last finished window, {' to '.join(times)} UTC{before}."
            return f"“{campaign.label.classes[0]}” at {percent(share)}", sentence
    return None


def _drawn(
    campaign: Campaign, found: Sequence[QuestionSeries], figure: Callable[..., Drawn], feature: str | None
) -> Iterator[Drawn]:
    classes = campaign.label.classes
    for one in found:
        if one.question.kind == LABEL:
            # Of two classes one is the other's mirror image.
            drawn = classes[:1] if len(classes) == 2 else classes
            lines = [_line(one, cell, name) for cell, name in enumerate(drawn)]
            yield figure("over-time-label", f"Share of devices, by {campaign.label.name}", lines, _missed(one))
        if one.question.kind == PAIR and one.question.feature == feature:
            chosen = campaign.feature(feature)
            for place, of_class in enumerate(classes):
                lines = [_line(one, value * len(classes) + place, name) for value, name in enumerate(cells(chosen))]
                if chosen.missing and not max(lines[-1].low) > 0:
                    lines.pop()  # Nobody is known to lack a value.
                of = f", that are also {campaign.label.name} = {of_class}" if campaign.label else ""
                title = f"Share of all devices, by {feature}{of}"
                yield figure(f"over-time-{one.question.index}-{place}", title, lines, _missed(one))


def _line(one: QuestionSeries, cell: int, label: str) -> Line:
    smoothed, answered = one.levels.smoothed, one.n > 0
    ends = (np.where(np.isfinite(smoothed.variance), part, np.nan)[:, cell] for part in (smoothed.low, smoothed.high))
    low, high = (end.tolist() for end in ends)
    dots = np.where(answered, one.alone.value[:, cell], np.nan).tolist()
    return Line(label, smoothed.value[:, cell].tolist(), low, high, dots)


def _missed(one: QuestionSeries) -> str:
    """Tell the jump into the last window that may be missed, and the least one anywhere; nothing where any may."""
    last, least = (100 * float(size) for size in (one.levels.missed[-1], one.levels.missed.min()))
    if not last < 100:
        return ""
    best = f", by less than {least:.2g} where it is seen best" if least < last else ""
    return f"A jump of one line by less than {last:.2g} points into the last window may be missed{best}."


def _figure(windows: Windows, moment: datetime, key: str, title: str, lines: Sequence[Line], missed: str = "") -> Drawn:
    largest = sorted(range(len(lines)), key=lambda place: -max(lines[place].value))[:_MOST_LINES]
    largest_lines = [lines[place] for place in sorted(largest)]
    last = len(largest_lines[0].value) - 1
    running = windows.opens(last + 1) > moment
    says = (
        f"The {len(largest_lines)} most frequent of {len(lines)} values." if len(largest_lines) < len(lines) else "",
        "The last window is not over: its dots are hollow." if running else "",
        missed,
    )
    dates = [windows.opens(place) for place in range(last + 1)]
    columns = [[_told(*one) for one in zip(line.value, line.low, line.high, strict=True)] for line in largest_lines]
    rows = [
        [f"{dates[place]:%Y-%m-%d %H:%M}{' (running)' if running and place == last else ''}", *row]
        for place, row in enumerate(zip(*columns, strict=True))
    ]
    plot = series_plot(largest_lines, dates, title=f"{title}, by window", running=running)
    return Drawn(
        key, title, " ".join(filter(None, says)), plot, ["Window from", *(one.label for one in largest_lines)], rows
    )


def _told(value: float, low: float, high: float) -> str:
    return f"{percent(min(max(value, 0.0), 1.0))} ({interval(low, high)})"
