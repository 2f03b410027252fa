"""What a campaign has learned. Figures, the features that tell most of the class first, and the table under each: a dot
is a share as the model believes it, given all reports: never below 0, and drawn to what is likely where reports are
few. The line is the 95 % interval of the unbiased estimate.

Of a campaign with windows, how many devices answered in each, and every feature's shares over time. And the answers at
the top of the campaign's page: is it healthy, how good is the model, can somebody have moved it?
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from ldp_aggregator.counting.tally import Tally, devices_counted
from ldp_aggregator.dashboard.drawing.evaluations import ModelRow
from ldp_aggregator.dashboard.drawing.plots import MARKS, Bar, Drawn, Line, interval_plot, series_plot
from ldp_aggregator.dashboard.drawing.words import counted, percent
from ldp_aggregator.dashboard.page_sources import Refused
from ldp_aggregator.estimation.cells import Z_95, cell_names, cell_places
from ldp_aggregator.estimation.estimates import Estimates
from ldp_aggregator.estimation.estimators import QuestionEstimate
from ldp_aggregator.estimation.posterior import Posterior, posterior_of
from ldp_aggregator.estimation.ratios import conditional_reach, conditional_table
from ldp_aggregator.learning.series import INTERVALS_MEAN, QuestionSeries, series_of
from ldp_protocols import Campaign
from ldp_protocols.document.questions import JOINT, LABEL, PAIR
from ldp_protocols.features import Feature, NumericFeature

Array = NDArray[np.float64]

_PERCENT: Final = (0.0, 100.0)
"""As far as a figure follows unbiased intervals; the table has all of them."""
_MOST_LINES: Final = MARKS
"""Lines of a plot: the values that are most frequent."""
_MOST_CELLS: Final = 1 << 9
"""Cells of a question that is drawn: a page does not wait for more to be smoothed, ``estimates --smooth`` does."""


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
    """A figure and its table, all in ``unit``, of ``n`` reports; ``told``: bits that the feature holds on the class."""

    key: str
    title: str
    says: str
    unit: str
    n: int
    rows: tuple[Row, ...]
    plot: Markup
    is_share: bool = True
    told: float = 0.0

    @property
    def has_values(self) -> bool:
        return any(row.value is not None for row in self.rows)

    @property
    def has_classes(self) -> bool:
        return any(row.of_class for row in self.rows)


def believed(estimates: Estimates) -> Posterior:
    """Beliefs of a model on the campaign's discrete features and classes now."""
    campaign = estimates.campaign
    discrete = [feature for feature in campaign.asked if feature.moments is None]
    return posterior_of(discrete, len(campaign.label.classes), estimates.questions, estimates.questions)


def class_prior(estimates: Estimates, posterior: Posterior, liars: int) -> FeatureFigure:
    """P(class), pooled over everything that tells it."""
    cells, classes = estimates.class_prior, estimates.campaign.label.classes
    moved = min(liars * estimates.class_prior_per_liar, 1.0) if liars else 0.0  # By all of it at most.
    numbers = (array.tolist() for array in (posterior.classes.value, cells.value, cells.low, cells.high))
    rows = [
        Row(None, name, share, value, low, high, moved)
        for name, share, value, low, high in zip(classes, *numbers, strict=True)
    ]
    says = "The share of each class among the devices, from every question that tells it."
    n = sum(one.n for one in estimates.questions if one.classes is not None)
    title = f"Classes of {estimates.campaign.label.name}"
    return _shares("prior", title, says, "share of devices", n, rows, estimates.campaign.label.classes)


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
        processed, told = estimates.asking(feature.name, PAIR).processed, 0.0
        shares = np.zeros(0) if processed is None else processed
        says = "The share of devices that have each value." + _median_told(estimates, feature)
    else:
        belief = posterior.features[feature.name]
        shares = belief.cells_of(belief.mean[None])[0]
        told = _bits(posterior.classes.value, shares)
        says = f"Of the devices of each class, the share that has each value.{_told_of(told)}"
    table, classes = conditional_table(estimates, feature.name), estimates.campaign.label.classes
    names = feature.cell_names
    cells, known = table.cells, np.isfinite(table.cells.variance)
    columns = (
        shares.ravel(),
        np.where(known, cells.value, np.nan),
        cells.low,
        cells.high,
        conditional_reach(estimates, table, liars),
        table.pair.cells.value if table.pair.n else np.full(known.size, np.nan),
    )
    places = ((value, of_class) for value in names for of_class in classes)
    numbers = zip(*(column.tolist() for column in columns), strict=True)
    rows = [Row(*names_, *row) for names_, row in zip(places, numbers, strict=True)]
    if not known.all() and table.pair.n:
        says += " Nothing is known of a class that too few reports tell from none."
    says += _missing_told(estimates, feature.name)
    unit = "share of the class" if posterior else "share of devices"
    return _shares(f"feature-{place}", feature.name, says, unit, table.pair.n, rows, classes, told)


def _together(estimates: Estimates, one: QuestionEstimate, liars: int) -> FeatureFigure:
    """P(value, value of other) of two features that are asked together."""
    names = [f"{place['value']}, {place['other_value']}" for place in cell_places(estimates.campaign, one.question)]
    moved = np.minimum(liars * estimates.per_liar[one.question.index], 1.0) if liars else np.zeros(len(names))
    numbers = (one.cells.value if one.processed is None else one.processed, one.cells.value, one.cells.low)
    columns = [column.tolist() for column in (*numbers, one.cells.high, moved)]
    rows = [Row(name, "", *row) for name, *row in zip(names, *columns, strict=True)]
    by_chance = next(row["p_value"] for row in estimates.summaries() if row.get("question") == one.question.index)
    says = f"The share of devices that have both. Features that tell nothing of each other look so in {by_chance:.2g}."
    key, title = f"joint-{one.question.index}", f"{one.question.feature} and {one.question.other}"
    return _shares(key, title, says, "share of devices", one.n, rows, estimates.campaign.label.classes)


def _median_told(estimates: Estimates, feature: Feature) -> str:
    if feature.number is None or not estimates.asking(feature.name, PAIR).n:
        return ""
    return " Median: {:.4g} (95 % interval {:g} to {:g}).".format(*estimates.quantile(feature.name))


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
        deviation, told = moments.deviation, 0.0
        value, low, high = (float(part[0]) for part in (deviation.value, deviation.low, deviation.high))
        says = f"The mean. Standard deviation: {value:.3g} (95 % interval {low:.3g} to {high:.3g})."
    else:
        deviations = ", ".join(f"{d:.3g} ({name})" for name, d in zip(classes, np.sqrt(moments.variance), strict=True))
        told = _bits_of_normal(posterior.classes.value, moments.mean, moments.variance)
        says = f"The mean of each class, in units of {feature.name}. Standard deviation: {deviations}.{_told_of(told)}"
    if moments.insufficient.any():
        says += " A class with too few reports shows the mean of all."
    says += _missing_told(estimates, feature.name)
    low, high = float(feature.low), float(feature.high)
    n = sum(one.n for one in estimates.questions if one.question.feature == feature.name)
    title = f"{feature.name}: means with 95 % intervals"
    plot = interval_plot(_bars(rows, classes), title=title, axis=f"mean of {feature.name}", least=low, most=high)
    unit = f"units of {feature.name}"
    return FeatureFigure(f"feature-{place}", feature.name, says, unit, n, tuple(rows), plot, is_share=False, told=told)


def _bits(classes: Array, shares: Array) -> float:
    """Return the mutual information of class and value, for P(value | class), shape (cells, C)."""
    joint = shares * classes
    independent = joint.sum(axis=1, keepdims=True) * classes
    held = joint > 0
    return float((joint[held] * np.log2(joint[held] / independent[held])).sum())


def _bits_of_normal(classes: Array, means: Array, variances: Array) -> float:
    """Return the information on the class of a number that is normal in each, as if it were normal in all together."""
    within = float(classes @ variances)
    return math.log2(1 + float(classes @ (means - classes @ means) ** 2) / within) / 2 if within > 0 else 0.0


def _told_of(told: float) -> str:
    return (
        f" It tells about {told:.2g} bits of the class." if told >= 0.0005 else " It tells nothing of the class so far."
    )


def _missing_told(estimates: Estimates, feature: str) -> str:
    """Return a sentence on the devices without a value, for a feature that may be missing and was asked about."""
    part = estimates.missing.get(feature)
    if part is None or not math.isfinite(part.cells.variance[0]):
        return ""
    share, low, high = (float(end[0]) for end in (part.cells.value, part.cells.low, part.cells.high))
    return f" No value: {share:.1%} of devices (95 % interval {low:.1%} to {high:.1%})."


def _shares(
    key: str, title: str, says: str, unit: str, n: int, rows: Sequence[Row], classes: Sequence[str], told: float = 0.0
) -> FeatureFigure:
    highest = [100 * row.high for row in rows if math.isfinite(row.estimate)]
    plot = interval_plot(
        _bars(rows, classes, 100),
        title=f"{title}: shares with 95 % intervals",
        axis=f"% of {unit.removeprefix('share of ')}",
        least=0.0,
        most=min(max([10.0, *highest]), 100.0),
        beyond=_PERCENT,
    )
    return FeatureFigure(key, title, says, unit, n, tuple(rows), plot, told=told)


def _bars(rows: Sequence[Row], classes: Sequence[str], scale: int = 1) -> list[Bar]:
    return [
        Bar(
            row.value,
            row.of_class,
            classes.index(row.of_class),
            scale * row.believed,
            scale * row.low,
            scale * row.high,
            scale * row.moved if math.isfinite(row.moved) else None,
        )
        for row in rows
    ]


@dataclass(frozen=True)
class Window:
    """A window that has answers: what it is called, how many devices answered, and that over the mean of all such."""

    name: str
    devices: int
    of_the_mean: float


@dataclass(frozen=True)
class OverTime:
    """The windows that have answers, and the shares of classes and values in them."""

    windows: Sequence[Window]
    drawn: Sequence[Drawn]
    intervals_mean: str = INTERVALS_MEAN


def over_time(campaign: Campaign, tally: Tally) -> OverTime | None:
    """Draw a campaign with windows; None for any other one, and before there is an answer."""
    if campaign.windows is None or not tally.n.any():
        return None
    numbers = [devices_counted(campaign, one.n.tolist()) for one in tally.windows]
    mean = sum(numbers) / sum(number > 0 for number in numbers)
    windows = [
        Window(f"{place + 1}, from {campaign.windows.opens(place):%Y-%m-%d %H:%M}", number, number / mean)
        for place, number in enumerate(numbers)
        if number
    ]
    return OverTime(windows, list(_drawn(campaign, tally)))


def _drawn(campaign: Campaign, tally: Tally) -> Iterator[Drawn]:
    classes = campaign.label.classes
    for one in series_of(campaign, tally, _MOST_CELLS):
        if one.question.kind == LABEL:
            lines = [_line(one, cell, name) for cell, name in enumerate(classes)]
            yield _figure("over-time-label", campaign.label.name, lines, _missed(one))
        if one.question.kind == PAIR:
            names = cell_names(campaign, one.question) or []
            for place, of_class in enumerate(classes):
                lines = [_line(one, value * len(classes) + place, name) for value, name in enumerate(names)]
                about = f" and {campaign.label.name} = {of_class}" if campaign.label else ""
                title = f"{one.question.feature}{about}"
                yield _figure(f"over-time-{one.question.index}-{place}", title, lines, _missed(one))


def _line(one: QuestionSeries, cell: int, label: str) -> Line:
    smoothed, known = one.levels.smoothed, one.n > 0
    ends = (np.where(np.isfinite(smoothed.variance), part, np.nan)[:, cell] for part in (smoothed.low, smoothed.high))
    low, high = (end.tolist() for end in ends)
    dots = np.where(known, one.alone.value[:, cell], np.nan).tolist()
    return Line(label, smoothed.value[:, cell].tolist(), low, high, dots)


def _missed(one: QuestionSeries) -> str:
    """Tell the jump into the last window that may be missed, and the least one anywhere; nothing where any may."""
    last, least = (100 * float(size) for size in (one.levels.missed[-1], one.levels.missed.min()))
    if not last < _PERCENT[1]:
        return ""
    best = f", by less than {least:.2g} where it is seen best" if least < last else ""
    return f"A jump of one line by less than {last:.2g} points into the last window may be missed{best}."


def _figure(key: str, title: str, lines: Sequence[Line], missed: str = "") -> Drawn:
    largest = sorted(range(len(lines)), key=lambda place: -max(lines[place].value))[:_MOST_LINES]
    shown = [lines[place] for place in sorted(largest)]
    frequent = f"The {len(shown)} most frequent of {len(lines)} values." if len(shown) < len(lines) else ""
    says = " ".join(filter(None, (frequent, missed)))
    columns = [
        [
            f"{_percent(value)} ({_percent(low)} to {_percent(high)})"
            for value, low, high in zip(line.value, line.low, line.high, strict=True)
        ]
        for line in shown
    ]
    rows = [[str(window), *row] for window, row in enumerate(zip(*columns, strict=True), start=1)]
    plot = series_plot(shown, title=f"{title}, by window")
    return Drawn(key, title, says, plot, ["Window", *(line.label for line in shown)], rows)


def _percent(share: float) -> str:
    return f"{100 * min(max(share, 0.0), 1.0):.1f} %"


GOOD: Final = "good"
LOOK: Final = "look"
BAD: Final = "bad"

CONFLICT: Final = "conflicting-report"
REFUSED_SHARE: Final = 0.01
"""Refusals beyond this share of what was counted are worth a look."""


@dataclass(frozen=True)
class Answer:
    """``mood`` is how it looks at a glance; ``says`` what is behind it."""

    mood: str
    text: str
    says: str
    plot: Markup | None = None


def health(status: str, reports: int, refused: Sequence[Refused], width: float, wrong: str) -> Answer:
    """State of a campaign's counting; ``width``: half that of the worst interval; ``wrong``: what keeps it."""
    number = sum(one.number for one in refused)
    precision = "too few to tell anything yet" if not width < 1 else f"enough for ± {100 * width:.1f} points at worst"
    says = f"{counted(reports, 'report')}, {precision}."
    if wrong:
        return Answer(BAD, "Not counted", wrong)
    if number > max(1, REFUSED_SHARE * reports):
        return Answer(
            LOOK, "Look at what was refused", f"{says} {counted(number, 'refusal')} since this server started."
        )
    if status != "open":
        return Answer(GOOD, status.capitalize(), f"{says} It takes no reports now.")
    return Answer(GOOD, "Healthy", says)


def quality(models: Sequence[ModelRow]) -> Answer:
    """Tell how good the latest model is: as a round measured it, else as expected of its best feature."""
    if not models:
        return Answer(LOOK, "No model yet", "Train publishes one, or says why not.")
    model = models[0]
    if model.accuracy is not None and model.low is not None and model.high is not None:
        told, value, low, high = "measured", model.accuracy, model.low, model.high
        says = "Measured by devices that took no part in training."
    elif model.best is not None:
        told, (feature, low, high) = "expected", model.best
        value = math.nan
        says = f"Expected of {feature} alone; only an evaluation round tells how good all features are together."
    else:
        return Answer(LOOK, "Unknown", "The model does not say what to expect of it; an evaluation round does.")
    bars = [Bar(None, told, 0, 100 * (low + high) / 2 if math.isnan(value) else 100 * value, 100 * low, 100 * high)]
    mood = GOOD if model.tells_something is not False else LOOK
    if model.majority is not None:
        most = 100 * model.majority
        bars.append(Bar(None, "majority class", 1, most, most, most))
        says += f" Always saying the most frequent class is right for {percent(model.majority)}."
    if model.tells_something is False:
        says += " Its features are not known to tell anything of the class, or not enough of it."
    text = f"{percent(low)} to {percent(high)}" if math.isnan(value) else percent(value)
    title = "Share of people whom the model gets right"
    return Answer(mood, text, says, interval_plot(bars, title=title, axis="% of people right", least=0, most=100))


def lies(liars: int, devices: int, shares: Sequence[FeatureFigure], refused: Sequence[Refused]) -> Answer:
    """Tell how far ``liars`` can have moved ``shares`` (of classes; of values without a label), and whether devices
    contradict themselves.
    """
    conflicts = sum(one.number for one in refused if one.code == CONFLICT)
    moved = max((row.moved for one in shares if one.n and one.is_share for row in one.rows), default=math.nan)
    if not math.isfinite(moved) or not devices:
        return Answer(GOOD, "Nothing to move yet", "Too few reports.")
    says = f"{counted(liars, 'liar')} of {counted(devices, 'device')} can have moved the shares so far."
    if conflicts:
        return Answer(
            LOOK, f"± {100 * moved:.1f} points", f"{says} {counted(conflicts, 'report')} came twice, differently."
        )
    return Answer(GOOD, f"± {100 * moved:.1f} points", f"{says} Nothing came twice with another answer.")
