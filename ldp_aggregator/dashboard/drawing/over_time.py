"""The section of a campaign with windows: how many devices answered in each, and every feature's shares over time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from ldp_aggregator.counting.tally import Tally, devices_counted
from ldp_aggregator.dashboard.drawing.plots import MARKS, Drawn, Line, series_plot
from ldp_aggregator.estimation.cells import cell_names
from ldp_aggregator.learning.series import QuestionSeries, series_of
from ldp_protocols import Campaign
from ldp_protocols.document.questions import LABEL, PAIR

_MOST_LINES: Final = MARKS
"""Lines of a plot: the values that are most frequent."""
_MOST_CELLS: Final = 1 << 9
"""Cells of a question that is drawn: a page does not wait for more to be smoothed, ``estimates --smooth`` does."""


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
            yield _figure("over-time-label", campaign.label.name, lines)
        if one.question.kind == PAIR:
            names = cell_names(campaign, one.question) or []
            for place, of_class in enumerate(classes):
                lines = [_line(one, value * len(classes) + place, name) for value, name in enumerate(names)]
                title = f"{one.question.feature} and {campaign.label.name} = {of_class}"
                yield _figure(f"over-time-{one.question.index}-{place}", title, lines)


def _line(one: QuestionSeries, cell: int, label: str) -> Line:
    smoothed, known = one.levels.smoothed, one.n > 0
    ends = (np.where(np.isfinite(smoothed.variance), part, np.nan)[:, cell] for part in (smoothed.low, smoothed.high))
    low, high = (end.tolist() for end in ends)
    dots = np.where(known, one.alone.value[:, cell], np.nan).tolist()
    return Line(label, smoothed.value[:, cell].tolist(), low, high, dots)


def _figure(key: str, title: str, lines: Sequence[Line]) -> Drawn:
    largest = sorted(range(len(lines)), key=lambda place: -max(lines[place].value))[:_MOST_LINES]
    shown = [lines[place] for place in sorted(largest)]
    says = f"The {len(shown)} most frequent of {len(lines)} values." if len(shown) < len(lines) else ""
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
