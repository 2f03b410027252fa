"""Inline SVG: intervals, and a curve over time. Colours come from the page's style sheet, sizes are in user units.

Attributes only, no ``style``: the page's Content-Security-Policy allows none. Every text is escaped.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Final

from markupsafe import Markup, escape

WIDTH: Final = 360
ROW: Final = 20
TOP: Final = 8
FOOT: Final = 34
LEFT: Final = 118
RIGHT: Final = 14
MARKS: Final = 6
"""Classes beyond so many take the first mark again; a row always names its class."""
_LABEL_LETTERS: Final = 15
_GROUP_LETTERS: Final = 48
"""Longer names are cut; the table beside the figure has them whole."""
_TICKS: Final = 4
_CURVE_HEIGHT: Final = 120
_MINUTES: Final = 600
"""Seconds from which on minutes tell the ends of a curve apart."""


_COLOURS: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
_STYLE: Final = "text{font:11px sans-serif;fill:#333}.grid{stroke:#ddd;fill:none}polyline{fill:none}" + "".join(
    f"line.mark{place},path.mark{place},polyline.mark{place}{{stroke:{colour};stroke-width:2;fill:none}}"
    f"circle.mark{place}{{fill:{colour}}}"
    for place, colour in enumerate(_COLOURS)
)
"""Style of a plot outside of a page."""


@dataclass(frozen=True)
class Drawn:
    """A plot, and the table of its numbers: heads and rows of text."""

    key: str
    title: str
    says: str
    plot: Markup
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Bar:
    """A row of an interval plot, below its ``group``'s name; lies move it by ``reach`` either way, None: unbounded."""

    group: str | None
    label: str
    mark: int
    value: float
    low: float
    high: float
    reach: float | None = 0.0


def interval_plot(
    bars: Sequence[Bar],
    *,
    title: str,
    axis: str,
    least: float,
    most: float,
    beyond: tuple[float, float] = (-math.inf, math.inf),
) -> Markup:
    """A dot with its interval for every bar, over the band that lies can have moved it in.
    The axis spans ``least`` to ``most`` and finite intervals up to ``beyond``, where longer ones end.
    """
    ends = [end for bar in bars for end in (bar.low, bar.high, bar.value) if math.isfinite(end)]
    low = min([least, *(max(end, beyond[0]) for end in ends)])
    high = max([most, *(min(end, beyond[1]) for end in ends)])
    ticks = nice_ticks(low, high)
    low, high = min(low, ticks[0]), max(high, ticks[-1])
    lines = list(_lines(bars))
    height = TOP + ROW * len(lines) + FOOT

    def across(value: float) -> str:
        inside = min(max(value, low), high)
        return f"{LEFT + (inside - low) / (high - low) * (WIDTH - LEFT - RIGHT):.1f}"

    foot = TOP + ROW * len(lines)
    parts = [_head(title, height)]
    for tick in ticks:
        x = across(tick)
        parts.append(f'<line class="grid" x1="{x}" y1="{TOP}" x2="{x}" y2="{foot}"/>')
        parts.append(f'<text class="tick" x="{x}" y="{foot + 13}" text-anchor="middle">{tick_text(tick)}</text>')
    for place, bar in enumerate(lines):
        y = TOP + ROW * place + ROW / 2
        if isinstance(bar, str):
            parts.append(f'<text class="group" x="2" y="{y + 5:g}">{escape(_short(bar, _GROUP_LETTERS))}</text>')
            continue
        label = escape(_short(bar.label, _LABEL_LETTERS))
        parts.append(f'<text class="name" x="{LEFT - 8}" y="{y + 4:g}" text-anchor="end">{label}</text>')
        if bar.reach is None:
            parts.append(_band(LEFT, WIDTH - RIGHT, y))
        elif bar.reach > 0:
            parts.append(_band(float(across(bar.low - bar.reach)), float(across(bar.high + bar.reach)), y))
        if not math.isfinite(bar.low + bar.high + bar.value):
            continue
        kind = f"mark{bar.mark % MARKS}"
        parts.append(f'<line class="{kind}" x1="{across(bar.low)}" y1="{y:g}" x2="{across(bar.high)}" y2="{y:g}"/>')
        if low <= bar.value <= high:
            parts.append(f'<circle class="{kind}" cx="{across(bar.value)}" cy="{y:g}" r="3.5"/>')
    parts.append(
        f'<text class="axis" x="{WIDTH - RIGHT}" y="{height - 5}" text-anchor="end">{escape(axis)}</text></svg>'
    )
    return Markup("".join(parts))  # noqa: S704 - every text in it was escaped above


def curve(points: Sequence[tuple[datetime, int]], *, title: str) -> Markup:
    """Numbers against time, from 0; empty where there are fewer than two points in time."""
    if len(points) < 2 or points[0][0] == points[-1][0]:
        return Markup("")
    start, end = points[0][0], points[-1][0]
    most = max(max(number for _, number in points), 1)
    height = TOP + _CURVE_HEIGHT + FOOT
    left, span = 52, (end - start).total_seconds()
    foot = TOP + _CURVE_HEIGHT
    path = " ".join(
        f"{left + (at - start).total_seconds() / span * (WIDTH - left - RIGHT):.1f},"
        f"{foot - n / most * _CURVE_HEIGHT:.1f}"
        for at, n in points
    )
    form = "%m-%d %H:%M" if start.date() != end.date() else "%H:%M" if span >= _MINUTES else "%H:%M:%S"
    parts = [_head(title, height)]
    for share in (0.0, 0.5, 1.0):
        y = foot - share * _CURVE_HEIGHT
        parts.append(f'<line class="grid" x1="{left}" y1="{y:g}" x2="{WIDTH - RIGHT}" y2="{y:g}"/>')
        if share * most == int(share * most):
            parts.append(
                f'<text class="tick" x="{left - 6}" y="{y + 4:g}" text-anchor="end">{_count(share * most)}</text>'
            )
    parts.append(f'<polyline class="mark0" points="{path}"/>')
    parts.append(f'<text class="tick" x="{left}" y="{foot + 13}" text-anchor="start">{start.strftime(form)}</text>')
    parts.append(
        f'<text class="tick" x="{WIDTH - RIGHT}" y="{foot + 13}" text-anchor="end">{end.strftime(form)}</text>'
        f'<text class="axis" x="{WIDTH - RIGHT}" y="{height - 5}" text-anchor="end">reports, time in UTC</text></svg>'
    )
    return Markup("".join(parts))  # noqa: S704 - numbers and times only, and an escaped title


SPARK_BINS: Final = 24
_SPARK: Final = (4, 24)
"""Width of a bar and height of a sparkline."""


def sparkline(points: Sequence[tuple[datetime, int]], *, title: str) -> Markup:
    """The numbers that came in each of some equal times, as bars; empty where nothing came."""
    if len(points) < 2 or points[0][0] == points[-1][0] or points[0][1] == points[-1][1]:
        return Markup("")
    start, span = points[0][0], (points[-1][0] - points[0][0]).total_seconds()
    came = [0.0] * SPARK_BINS
    for (_, before), (at, now) in pairwise(points):
        came[min(int((at - start).total_seconds() / span * SPARK_BINS), SPARK_BINS - 1)] += max(now - before, 0)
    (wide, tall), most = _SPARK, max(came)
    heights = [max(1.0, number / most * tall) for number in came]  # Where nothing came there is a line at the foot.
    bars = "".join(
        f'<rect x="{wide * place}" y="{tall - height:.1f}" width="{wide - 1}" height="{height:.1f}"/>'
        for place, height in enumerate(heights)
    )
    head = f'<svg class="spark" viewBox="0 0 {wide * SPARK_BINS} {tall}" role="img" aria-label="{escape(title)}" '
    return Markup(f'{head}xmlns="http://www.w3.org/2000/svg">{bars}</svg>')  # noqa: S704 - escaped above


@dataclass(frozen=True)
class Share:
    """A share of a class, with its interval, that lies move by ``reach`` either way; all in percent."""

    mark: int
    value: float
    low: float
    high: float
    reach: float = 0.0


_SLOT: Final = 13
"""Height of one class in a row of a plot of shares."""
_GAP: Final = 7


def shares_plot(rows: Sequence[tuple[str, Sequence[Share]]], *, title: str, most: float) -> Markup:
    """Shares by value, on an axis from 0 to ``most`` percent: in each row a mark a class, over the band that lies can
    have moved it in. An interval ends at 0 and 100.
    """
    ticks = nice_ticks(0.0, most)
    most = ticks[-1]
    heights = [_SLOT * max(len(shares), 1) + _GAP for _, shares in rows]
    foot = TOP + sum(heights)

    def across(value: float) -> float:
        return _LEFT_OF_SHARES + min(max(value, 0.0), most) / most * (WIDTH - _LEFT_OF_SHARES - _RIGHT_OF_SHARES)

    parts = [_head(title, foot + _FOOT_OF_SHARES)]
    for tick in ticks:
        x = f"{across(tick):.1f}"
        parts.append(f'<line class="grid" x1="{x}" y1="{TOP}" x2="{x}" y2="{foot}"/>')
        parts.append(f'<text class="tick" x="{x}" y="{foot + 14}" text-anchor="middle">{tick_text(tick)}\u00a0%</text>')
    top = float(TOP)
    for (name, shares), height in zip(rows, heights, strict=True):
        middle = top + height / 2
        label = escape(_short(name, _VALUE_LETTERS))
        parts.append(
            f'<text class="name" x="{_LEFT_OF_SHARES - 8}" y="{middle + 4:g}" text-anchor="end">{label}</text>'
        )
        for place, share in enumerate(shares):
            y = top + _GAP / 2 + _SLOT * (place + 0.5)
            if share.reach > 0:
                parts.append(_band(across(share.low - share.reach), across(share.high + share.reach), y, _SLOT - 2))
            kind = f"mark{share.mark % MARKS}"
            low, high = across(share.low), across(share.high)
            parts.append(f'<line class="{kind}" x1="{low:.1f}" y1="{y:g}" x2="{high:.1f}" y2="{y:g}"/>')
            parts.append(_mark(share.mark, across(share.value), y))
        top += height
    return Markup("".join(parts) + "</svg>")  # noqa: S704 - every text in it was escaped above


_FOOT_OF_SHARES: Final = 20
_LEFT_OF_SHARES: Final = 136
_RIGHT_OF_SHARES: Final = 20
_VALUE_LETTERS: Final = 19
_SHAPES: Final = (
    "M{l} {y}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z",
    "M{l} {t}h8v8h-8z",
    "M{x} {t}L{r} {y}L{x} {b}L{l} {y}z",
    "M{x} {t}L{r} {b}L{l} {b}z",
    "M{l} {t}L{r} {t}L{x} {b}z",
    "M{l} {t}L{r} {b}M{l} {b}L{r} {t}",
)
"""A shape for each mark, so that colours need not be told apart."""


def _mark(number: int, x: float, y: float) -> str:
    ends = {"x": x, "y": y, "l": x - 4, "r": x + 4, "t": y - 4, "b": y + 4}
    path = _SHAPES[number % MARKS].format(**{name: f"{place:.1f}" for name, place in ends.items()})
    return f'<path class="shape mark{number % MARKS}" d="{path}"/>'


def legend_mark(number: int) -> Markup:
    """The mark of a class, for a legend."""
    drawn = _mark(number, 6, 6)
    return Markup(f'<svg class="legend" viewBox="0 0 12 12" aria-hidden="true">{drawn}</svg>')  # noqa: S704 - numbers


@dataclass(frozen=True)
class Line:
    """A share over windows: what is believed of each with its interval, and the ``dots`` of each window alone."""

    label: str
    value: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]
    dots: Sequence[float]


def series_plot(lines: Sequence[Line], dates: Sequence[datetime], *, title: str, running: bool) -> Markup:
    """Shares against the windows' beginnings, each as a line in its band over the dots of single windows; the last
    window's dots are hollow where it is still ``running``.
    """
    windows = len(lines[0].value)
    most = max([0.0, *(end for line in lines for end in (*line.high, *line.value) if math.isfinite(end))])
    ticks = nice_ticks(0.0, min(max(most, 0.01), 1.0))
    left, foot, top = 52, TOP + _CURVE_HEIGHT, ticks[-1]

    def at(window: int, share: float) -> tuple[float, float]:
        inside = min(max(share, 0.0), top)
        return left + window / max(windows - 1, 1) * (WIDTH - left - RIGHT), foot - inside / top * _CURVE_HEIGHT

    parts = [_head(title, foot + FOOT + ROW * len(lines))]
    for tick in ticks:
        _, y = at(0, tick)
        parts.append(f'<line class="grid" x1="{left}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}"/>')
        parts.append(f'<text class="tick" x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{100 * tick:g} %</text>')
    if running and windows > 1:
        x, _ = at(windows - 1, 0)
        before, _ = at(windows - 2, 0)
        parts.append(
            f'<rect class="running" x="{before:.1f}" y="{TOP}" width="{x - before:.1f}" height="{_CURVE_HEIGHT}"/>'
        )
    for place, line in enumerate(lines):
        mark = f"mark{place % MARKS}"
        finite = [window for window in range(windows) if math.isfinite(line.low[window])]
        ends = [at(w, line.high[w]) for w in finite] + [at(w, line.low[w]) for w in reversed(finite)]
        parts.append(f'<polygon class="band {mark}" points="{_points(ends)}"/>')
        parts.append(f'<polyline class="{mark}" points="{_points(at(w, line.value[w]) for w in finite)}"/>')
        for window, (x, y) in ((w, at(w, dot)) for w, dot in enumerate(line.dots) if 0 <= dot <= top):
            hollow = " hollow" if running and window == windows - 1 else ""
            parts.append(f'<circle class="{mark}{hollow}" cx="{x:.1f}" cy="{y:.1f}" r="2"/>')
        y = foot + FOOT + ROW * place + ROW / 2
        parts.append(f'<line class="{mark}" x1="{left}" y1="{y:g}" x2="{left + 18}" y2="{y:g}"/>')
        label = escape(_short(line.label, _GROUP_LETTERS))
        parts.append(f'<text class="name" x="{left + 26}" y="{y + 4:g}">{label}</text>')
    for place in sorted({0, (windows - 1) // 2, windows - 1}):
        x, _ = at(place, 0)
        anchor = "start" if place == 0 else "end" if place == windows - 1 else "middle"
        date = f"{dates[place]:%m-%d %H:%M}"
        parts.append(f'<text class="tick" x="{x:.1f}" y="{foot + 13}" text-anchor="{anchor}">{date}</text>')
    return Markup("".join(parts) + "</svg>")  # noqa: S704 - numbers, and texts that were escaped above


def _points(places: Iterable[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in places)


def rates_plot(points: Sequence[tuple[float, float, float, float]], *, title: str, axes: tuple[str, str]) -> Markup:
    """Draw proportions against proportions in [0, 1], points with their intervals of y, over the diagonal of chance."""
    left, side = 52, WIDTH - 52 - RIGHT
    foot = TOP + ROW + side

    def at(x: float, y: float) -> tuple[float, float]:
        return left + min(max(x, 0.0), 1.0) * side, foot - min(max(y, 0.0), 1.0) * side

    parts = [_head(title, foot + FOOT)]
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        (x, y), text = at(share, share), f"{100 * share:g}"
        parts.append(f'<line class="grid" x1="{x:.1f}" y1="{TOP + ROW}" x2="{x:.1f}" y2="{foot}"/>')
        parts.append(f'<line class="grid" x1="{left}" y1="{y:.1f}" x2="{left + side}" y2="{y:.1f}"/>')
        parts.append(f'<text class="tick" x="{x:.1f}" y="{foot + 13}" text-anchor="middle">{text}</text>')
        parts.append(f'<text class="tick" x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{text}</text>')
    corners = f"M{left} {foot}L{left + side} {TOP + ROW}"
    parts.append(f'<path class="grid" d="{corners}"/>')
    ordered = sorted(points)
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (at(0, 0), *(at(x, y) for x, y, _, _ in ordered), at(1, 1)))
    parts.append(f'<polyline class="mark0" points="{path}"/>')
    for x, y, low, high in ordered:
        (across, up), (_, least), (_, most) = at(x, y), at(x, low), at(x, high)
        parts.append(
            f'<line class="mark0" x1="{across:.1f}" y1="{least:.1f}" x2="{across:.1f}" y2="{most:.1f}"/>'
            f'<circle class="mark0" cx="{across:.1f}" cy="{up:.1f}" r="3.5"/>'
        )
    parts.append(f'<text class="axis" x="2" y="{TOP + 8}">{escape(axes[1])}</text>')
    parts.append(
        f'<text class="axis" x="{WIDTH - RIGHT}" y="{foot + FOOT - 5}" text-anchor="end">{escape(axes[0])}</text></svg>'
    )
    return Markup("".join(parts))  # noqa: S704 - numbers, and texts that were escaped above


def standalone(plots: Sequence[Markup]) -> Markup:
    """Put plots below one another into one SVG document, with the colours that a page's style sheet gives them."""
    top, parts = 0.0, []
    for plot in plots:
        height = float(plot.split('viewBox="0 0 ', 1)[1].split('"', 1)[0].split()[1])
        parts.append(f'<svg y="{top:g}" width="{WIDTH}" height="{height:g}"' + str(plot).removeprefix("<svg"))
        top += height + ROW
    head = f'<svg viewBox="0 0 {WIDTH} {top:g}" xmlns="http://www.w3.org/2000/svg"><style>{_STYLE}</style>'
    return Markup(f'{head}<rect width="{WIDTH}" height="{top:g}" fill="#fff"/>{"".join(parts)}</svg>\n')  # noqa: S704


def nice_ticks(low: float, high: float) -> list[float]:
    """Round numbers from at or below ``low`` to at or above ``high``, about four steps."""
    if not high > low:
        high = low + 1.0
    rough = (high - low) / _TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1.0, 2.0, 5.0, 10.0) if factor * power >= rough * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [step * number for number in range(first, last + 1)]


def tick_text(value: float) -> str:
    """A round number, short."""
    if value and abs(value) >= 10_000:
        return _count(value).replace("-", "\u2212")
    return f"{value + 0.0:.6g}".replace("-", "\u2212")


def _count(value: float) -> str:
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= 10 * size or (abs(value) >= size and size > 1e3):
            return f"{value / size:.3g} {letter}"
    return f"{value:g}"


def _band(left: float, right: float, y: float, height: float = 12) -> str:
    width = max(right - left, 0)
    return f'<rect class="reach" x="{left:.1f}" y="{y - height / 2:g}" width="{width:.1f}" height="{height:g}"/>'


def _head(title: str, height: float) -> str:
    return (
        f'<svg class="plot" viewBox="0 0 {WIDTH} {height:g}" role="img" aria-label="{escape(title)}" '
        f'xmlns="http://www.w3.org/2000/svg">'
    )


def _lines(bars: Sequence[Bar]) -> Iterator[str | Bar]:
    """The rows, and the name of every group before its first."""
    before = None
    for bar in bars:
        if bar.group is not None and bar.group != before:
            yield bar.group
        before = bar.group
        yield bar


def _short(text: str, letters: int) -> str:
    return text if len(text) <= letters else text[: letters - 1] + "…"
