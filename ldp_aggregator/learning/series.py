"""A campaign with windows over time: every question's estimates window by window, the levels of the population behind
them, with intervals, and what a model of the present is made of.

In window t = 1 .. T, n_t devices that were drawn by lot answer a question, each once in its life. The estimates y_t of
its cells are unbiased and independent from window to window, and the levels x_t of the population move between windows:

    y_t = x_t + e_t,   Var e_t = R_t = r_t + f (1 - f) / n_t,       x_t = x_{t-1} + d_t,   Var d_t = q + j_t,

r_t being the variance of the mechanism's noise. Who is asked in a window is a sample of the population: without
f (1 - f) / n_t the smoother takes that sampling for drift, and at a large epsilon, where it is most of the noise, gains
hardly anything (still population, 100,000 devices in 52 windows, epsilon 4: root mean squared error of .0059 in place
of .0005). f is the level itself: pooled over all windows first, then as smoothed with that.

*Drift.* q is one for all cells of a question, and seldom well known. It is not fixed at its most likely value: every q
of a grid, 0 among them, smooths, and the results are mixed by likelihood, so that intervals hold what is not known of
q. The likelihood is that of the innovations; of k cells, whose levels add up to a constant, k - 1 tell something.

*Jumps.* For each window the shock u_t that would best explain it (de Jong and Penzer 1998) is compared with its
standard error; u_t looks at all windows on both sides, and the innovation of its own window alone would see only large
jumps. Over the cells the squares add up to a chi-square of k - 1 degrees. Where the largest is less probable than
:data:`ALARM` over all windows (Bonferroni), j_t becomes what it exceeds its expectation by, and so on.

All of this is a function of reports, and so post-processing: for any two lives of a device it adds nothing to what its
one report gives away.

Harvey 1989, Forecasting, Structural Time Series Models and the Kalman Filter, sections 3.2 to 3.6.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from ldp_aggregator.counting.tally import Tally
from ldp_aggregator.estimation.cells import Array, Cells, cell_names
from ldp_aggregator.estimation.estimates import estimate
from ldp_aggregator.estimation.estimators import Expectation, QuestionEstimate, variance_per_answer
from ldp_aggregator.estimation.simplex import NONE
from ldp_protocols import Campaign, Question
from ldp_protocols.document.questions import INDEX, PRODUCT

ALL_WINDOWS: Final = "all"
NOW: Final = "now"

ALARM: Final = 0.01
"""The chance of finding a jump in a series without one."""

_MOST_JUMPS: Final = 4
_STEP: Final = 1.5
"""The ratio of a drift variance of the grid to the one before."""
_VAGUE: Final = 1e4
"""The variance of a level before the first answers; levels are 1 at most."""


@dataclass(frozen=True)
class QuestionSeries:
    """A question's cells over the windows; arrays of shape (windows, cells), ``n`` of shape (windows,).

    ``alone`` are the unbiased estimates of each window, as ``ldp_aggregator.estimation`` has them; ``levels`` what is
    known of a window from those before it (filtered) and from all (smoothed). ``per_answer`` is n times the variance of
    each cell's estimate with n answers.
    """

    question: Question
    n: Array
    alone: Cells
    levels: Series
    per_answer: Array


def series_of(campaign: Campaign, tally: Tally, most_cells: int | None = None) -> tuple[QuestionSeries, ...]:
    """Series of a campaign's questions (of at most so many cells), to the last answers. ValueError without windows."""
    if campaign.windows is None:
        raise ValueError(f"campaign {campaign.id} has no windows")
    pooled = estimate(campaign, tally, post=NONE)
    answered = [place for place, one in enumerate(tally.windows) if one.n.any()]
    windows = [estimate(campaign.one_window, one, post=NONE) for one in tally.windows[: max(answered, default=0) + 1]]
    return tuple(
        _series(one.question, np.clip(one.cells.value, 0, 1), [window[one.question.index] for window in windows])
        for one in pooled.questions
        if most_cells is None or one.cells.value.size <= most_cells
    )


def _series(question: Question, shares: Array, windows: Sequence[QuestionEstimate]) -> QuestionSeries:
    n = np.array([one.n for one in windows], dtype=np.float64)
    alone = Cells(*(np.stack(part) for part in zip(*(astuple(one.cells) for one in windows), strict=True)))
    asked = n > 0
    if question.encoding == INDEX:
        per_answer = variance_per_answer(question, Expectation(shares, shares))
        own = np.maximum(per_answer - shares * (1 - shares), 0.0)
        noise, answers = own / np.maximum(n, 1)[:, None], n
    else:  # No shares: how much of the variance is that of the sample, the estimate says with the rest.
        told = alone.variance[asked] * n[asked, None]
        per_answer = told.mean(axis=0) if asked.any() else np.full(alone.value.shape[1], np.inf)
        noise, answers = alone.variance, np.where(asked, np.inf, 0.0)
    return QuestionSeries(question, n, alone, smooth(alone.value, noise, answers), per_answer)


def present(campaign: Campaign, tally: Tally) -> Tally:
    """The tally of a campaign with windows as of its last answers: each window has the weight that the filter gives it.

    A question's weights are its average cell's, 0 before a jump; reports are as many as tell as much without drift.
    """
    now = Tally(campaign.one_window)
    for place, one in enumerate(series_of(campaign, tally)):
        if not one.n.any():
            continue
        per_answer = float(one.per_answer.mean())
        weights, variance = _weights(per_answer, one)
        known = min(per_answer / variance, float(one.n.sum()))
        for weight, window, n in zip(weights, tally.windows, one.n, strict=False):  # The rest has no answers.
            if n:
                now.counts[place] += np.rint(known * weight / n * window.counts[place]).astype(np.int64)
        now.n[place] = round(known)
    return now


def _weights(per_answer: float, one: QuestionSeries) -> tuple[Array, float]:
    """Return what the local level gives every window's estimate in the present one, and the variance of their sum."""
    weights, variance = np.zeros(len(one.n)), np.inf
    for window, n in enumerate(one.n):
        variance = np.inf if window in one.levels.jumps else variance + one.levels.drift
        if n:
            noise = per_answer / n
            gain = 1.0 if np.isinf(variance) else variance / (variance + noise)
            weights *= 1 - gain
            weights[window] = gain
            variance = gain * noise
    return weights, float(variance)


def series_rows(campaign: Campaign, tally: Tally, window: int | None = None) -> list[dict[str, Any]]:
    """A row for every window (or the given one), question and cell: alone, filtered and smoothed, with intervals."""
    if campaign.windows is None:
        raise ValueError(f"campaign {campaign.id} has no windows")
    rows = []
    for one in series_of(campaign, tally):
        named = _names(campaign, one.question)
        for place in range(len(one.n)) if window is None else (window,):
            head = {
                "window": place + 1,
                "from": f"{campaign.windows.opens(place):%Y-%m-%d %H:%M}",
                "question": one.question.index,
                "kind": one.question.kind,
                "feature": one.question.feature,
                "n": int(one.n[place]),
            }
            rows += [head | name | _told(one, place, cell) for cell, name in enumerate(named)]
    return rows


def _names(campaign: Campaign, question: Question) -> list[dict[str, Any]]:
    classes: Sequence[str | None] = (None,) if question.kind == PRODUCT else campaign.label.classes
    values: Sequence[str | None] = cell_names(campaign, question) or [None]
    return [{"value": value, "class": name} for value in values for name in classes]


def _told(one: QuestionSeries, window: int, cell: int) -> dict[str, Any]:
    told: dict[str, Any] = {}
    for name, cells in (("alone", one.alone), ("filtered", one.levels.filtered), ("smoothed", one.levels.smoothed)):
        known = np.isfinite(cells.variance[window, cell])
        for part, numbers in (("", cells.value), ("_low", cells.low), ("_high", cells.high)):
            told[name + part] = float(numbers[window, cell]) if known else None
    return told


@dataclass(frozen=True)
class Series:
    """The levels of a question's cells, arrays of shape (windows, cells), variances infinite where nothing is known.

    ``filtered`` is known of a window from it and those before, given the jumps, the last is the present; ``smoothed``
    from all of them. ``drift`` is the most likely variance of a level's change from one window to the next, beside
    ``jumps``, the windows before which the levels jumped, ascending.
    """

    filtered: Cells
    smoothed: Cells
    drift: float
    jumps: tuple[int, ...]


def smooth(estimates: Array, noise: Array, answers: Array) -> Series:
    """Filter and smooth the estimates of a question's cells, shape (windows, cells).

    ``noise`` is the variance that the mechanism adds to each, ``answers`` the number of reports of each window, shape
    (windows,). A window without any tells nothing. Infinitely many answers are those of the whole population (or of
    something that is no frequency and has its sampling in ``noise``).
    """
    asked = answers > 0
    if not asked.any():
        unknown = Cells.normal(np.zeros(estimates.shape), np.full(estimates.shape, np.inf))
        return Series(unknown, unknown, 0.0, ())
    values, counts = np.where(asked[:, None], estimates, 0.0), np.where(asked, answers, np.inf)[:, None]
    own_noise = np.where(asked[:, None], noise, np.inf)

    def with_sampling(levels: Array) -> Array:
        inside = np.clip(levels, 0.0, 1.0)
        return np.asarray(own_noise + inside * (1 - inside) / counts)

    pooled = (values / own_noise).sum(axis=0) / (1 / own_noise).sum(axis=0)
    first = with_sampling(pooled)
    drift = _drifts(values[asked], first[asked])
    still = np.zeros(len(values))
    plug_in = _mix(_backward(_forward(values, first, drift, still), drift, still)).value
    variance, jumps = with_sampling(plug_in), still
    found = _forward(values, variance, drift, jumps)
    for _ in range(_MOST_JUMPS):
        window, size = _jump(found)
        if not size:
            break
        jumps = jumps + size * (np.arange(len(values)) == window)
        found = _forward(values, variance, drift, jumps)
    filtered, smoothed = _mix(found), _mix(_backward(found, drift, jumps))
    nothing = np.cumsum(asked)[:, None] == 0
    return Series(
        Cells.normal(filtered.value, np.where(nothing, np.inf, filtered.variance)),
        smoothed,
        float(drift[found.best]),
        tuple(np.flatnonzero(jumps).tolist()),
    )


def foreseen_variances(drift: float, variance: float, windows: int) -> tuple[float, float]:
    """Return the variances to expect of a filtered and of a smoothed level, for planning.

    With q the drift and R the variance of one window's estimate (with its sampling), a long series has

        filtered (-q + sqrt(q^2 + 4 q R)) / 2,   smoothed q R / sqrt(q^2 + 4 q R),

    and none less than R / T, that of T windows without drift. Filtered is of the last window, smoothed of the middle.
    The standard errors are right without drift and with much of it, and between the two up to 15 % too small.
    """
    root = math.sqrt(drift * drift + 4 * drift * variance)
    least = variance / windows
    return max((root - drift) / 2, least), max(drift * variance / root if root else 0.0, least)


class _Passed(NamedTuple):
    """The levels under every drift variance of the grid, shape (windows, drifts, cells), and the filter's steps."""

    levels: Array
    variances: Array
    innovations: Array
    totals: Array
    gains: Array
    likelihoods: Array
    """Logarithms for the windows so far, shape (windows, drifts)."""

    @property
    def best(self) -> int:
        return int(self.likelihoods[-1].argmax())


def _drifts(values: Array, variance: Array) -> Array:
    """Drift variances to try: 0, and from `R / T`, the variance of the series' mean, to more than its steps have."""
    typical = 1 / float(np.mean(1 / variance))
    steps = float(np.mean(np.diff(values, axis=0) ** 2)) if len(values) > 1 else 0.0
    low, high = typical / len(values) ** 2, max(10 * typical, 4 * steps)
    return np.concatenate([[0.0], np.geomspace(low, high, math.ceil(math.log(high / low, _STEP)))])


def _forward(values: Array, variance: Array, drift: Array, jumps: Array) -> _Passed:
    """Filter (Kalman), where an infinite ``variance`` is that of a window without answers."""
    cells = values.shape[1]
    level, spread = np.zeros((len(drift), cells)), np.full((len(drift), cells), _VAGUE)
    telling = max(cells - 1, 1) / cells
    likelihood, kept = np.zeros(len(drift)), []
    for value, own, jump in zip(values, variance, jumps, strict=True):
        spread = spread + drift[:, None] + jump
        total, innovation = spread + own, value - level
        gain = spread / total
        level, spread = level + gain * innovation, spread * (1 - gain)
        if np.isfinite(own).all():
            likelihood = likelihood - 0.5 * telling * (np.log(total) + innovation**2 / total).sum(axis=1)
        kept.append((level, spread, innovation, total, gain, likelihood))
    return _Passed(*map(np.stack, zip(*kept, strict=True)))


def _backward(passed: _Passed, drift: Array, jumps: Array) -> _Passed:
    """Smooth (Rauch, Tung and Striebel 1965); every window has the likelihood of them all."""
    levels, variances = passed.levels.copy(), passed.variances.copy()
    for t in range(len(levels) - 2, -1, -1):
        ahead = variances[t] + drift[:, None] + jumps[t + 1]
        gain = variances[t] / ahead
        levels[t] += gain * (levels[t + 1] - levels[t])
        variances[t] += gain**2 * (variances[t + 1] - ahead)
    all_windows = np.broadcast_to(passed.likelihoods[-1], passed.likelihoods.shape)
    return passed._replace(levels=levels, variances=variances, likelihoods=all_windows)


def _mix(passed: _Passed) -> Cells:
    """Mix the levels under every drift variance by likelihood, all being equally likely at first."""
    weights = np.exp(passed.likelihoods - passed.likelihoods.max(axis=1, keepdims=True))
    weights = (weights / weights.sum(axis=1, keepdims=True))[:, :, None]
    value = (weights * passed.levels).sum(axis=1)
    apart = (passed.levels - value[:, None]) ** 2
    return Cells.normal(value, (weights * (passed.variances + apart)).sum(axis=1))


def _jump(passed: _Passed) -> tuple[int, float]:
    """Return the window before which the levels most likely jumped, and the jump's variance; 0 where none did.

    At the most likely drift, backward from r = N = 0: r <- i / F + (1 - g) r and N <- 1 / F + (1 - g)^2 N, with
    innovation i of variance F and gain g. The shock before a window is r / N with variance 1 / N.
    """
    cells = passed.levels.shape[2]
    r = information = np.zeros(cells)
    most, found, size = 0.0, 0, 0.0
    for t in range(len(passed.levels) - 1, 0, -1):
        innovation, total, gain = (part[t, passed.best] for part in (passed.innovations, passed.totals, passed.gains))
        r = innovation / total + (1 - gain) * r
        information = 1 / total + (1 - gain) ** 2 * information
        squares = float((r**2 / np.maximum(information, 1 / _VAGUE)).sum())
        if squares > most:
            most, found, size = squares, t, (squares - cells) / float(information.sum())
    degrees = max(cells - 1, 1)
    improbable = _chi_square_tail(most * degrees / cells, degrees) * (len(passed.levels) - 1) < ALARM
    return found, size if improbable else 0.0


def _chi_square_tail(value: float, degrees: int) -> float:
    """Return the chance of a chi-square beyond ``value``, by Wilson and Hilferty's cube root."""
    spread = 2 / (9 * degrees)
    return math.erfc(((value / degrees) ** (1 / 3) - (1 - spread)) / math.sqrt(2 * spread)) / 2
