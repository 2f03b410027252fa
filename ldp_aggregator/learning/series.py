"""A campaign with windows over time: every question's estimates window by window, the levels of the population behind
them, with intervals, and what a model of the present is made of.

In window t = 1 .. T, n_t devices that were drawn by lot answer a question, each once in its life. The estimates y_t of
its cells are unbiased and independent from window to window, and the level x_t of a cell moves between windows:

    y_t = x_t + e_t,   Var e_t = R_t = r_t + f (1 - f) / n_t,
    x_t = w_t + b u_t,   w_t = w_{t-1} + d_t,   Var d_t = q,

r_t being the variance of the mechanism's noise. Who is asked in a window is a sample of the population: without
f (1 - f) / n_t the smoother takes that sampling for drift, and at a large epsilon, where it is most of the noise, gains
hardly anything (still population, 100,000 devices in 52 windows, epsilon 4: root mean squared error of .0059 in place
of .0005). f is the level itself: pooled over all windows first, then as smoothed with that.

*Hypotheses.* q is any of a grid, 0 among them; u_t is nothing, a jump before any one of the windows, or a trend, and b
normal. No test decides: a cell's levels under all of these are mixed by prior and likelihood, so that intervals hold
what is not known of them. A shape's weight b is normal given the filter's innovations of y and of u (the shocks of de
Jong and Penzer 1998), so that one pass of a filter over y and all u serves all shapes and sizes.

*Cells* of a question add up to a constant: what moves in one moves in others. Each cell's prior is what the other cells
tell: a move that any of them makes counts in full, standing still by their average. As a cell's own likelihood is taken
to the power :data:`_CAUTION`, it moves as others do until it clearly stands still, or alone until it clearly does not:
a level that moves by about its noise would else be taken for one that stands.

All of this is a function of reports, and so post-processing: for any two lives of a device it adds nothing to what its
one report gives away.

Harvey 1989, Forecasting, Structural Time Series Models and the Kalman Filter, sections 3.2 to 3.6.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np

from ldp_aggregator.counting.tally import Tally
from ldp_aggregator.estimation.cells import Array, Cells, cell_places
from ldp_aggregator.estimation.estimates import estimate
from ldp_aggregator.estimation.estimators import Expectation, QuestionEstimate, variance_per_answer
from ldp_aggregator.estimation.simplex import NONE
from ldp_protocols import Campaign, Question
from ldp_protocols.document.questions import INDEX

ALL_WINDOWS: Final = "all"
NOW: Final = "now"
INTERVALS_MEAN: Final = (
    "An interval of 95 % holds the level in 95 of 100 windows on average over cells, and in about 90 of a cell that "
    "moves alone; next to a jump that is missed it may not hold."
)

_STEP: Final = 2.5
"""The ratio of a drift variance of the grid to the one before."""
_VAGUE: Final = 1e4
"""The variance of a level before the first answers; levels are 1 at most."""
_JUMP: Final = 0.35
"""The prior probability of a jump before any of the windows."""
_TREND: Final = 0.6
"""The prior probability of a trend over all windows."""
_CAUTION: Final = 0.4
"""The power that a cell's own likelihood is taken to."""
_OWN: Final = 2.5
"""A cell's own prior counts for this over the root of the number of cells, 1 at most, beside what the others tell."""
MISSED: Final = 6.0
"""Standard errors of a jump of one cell from where on its cell's intervals hold again in 9 of 10 windows."""
_MOST: Final = 1 << 19
"""Numbers of an array: so many cells are smoothed together; one that has more is looked through for fewer jumps."""


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
    answered = n > 0
    if question.encoding == INDEX:
        per_answer = variance_per_answer(question, Expectation(shares, shares))
        own = np.maximum(per_answer - shares * (1 - shares), 0.0)
        noise, answers = own / np.maximum(n, 1)[:, None], n
    else:  # No shares: how much of the variance is that of the sample, the estimate says with the rest.
        variances = alone.variance[answered] * n[answered, None]
        per_answer = variances.mean(axis=0) if answered.any() else np.full(alone.value.shape[1], np.inf)
        noise, answers = alone.variance, np.where(answered, np.inf, 0.0)
    return QuestionSeries(question, n, alone, smooth(alone.value, noise, answers), per_answer)


def present(campaign: Campaign, tally: Tally) -> Tally:
    """The tally of a campaign with windows as of its last answers: each window has the weight that the filter gives it.

    A question's weights are its average cell's; reports are as many as tell as much without drift.
    """
    now = Tally(campaign.one_window)
    for place, one in enumerate(series_of(campaign, tally)):
        if not one.n.any():
            continue
        reports = min(float(one.per_answer.mean() / one.levels.filtered.variance[-1].mean()), float(one.n.sum()))
        weights = one.levels.weights
        for weight, window, n in zip(weights, tally.windows, one.n, strict=False):  # The rest has no answers.
            if n:
                now.counts[place] += np.rint(reports * weight / n * window.counts[place]).astype(np.int64)
        now.n[place] = round(reports)
    return now


def series_rows(campaign: Campaign, tally: Tally, window: int | None = None) -> list[dict[str, Any]]:
    """A row for every window (or the given one), question and cell: alone, filtered and smoothed, with intervals;
    ``jump_missed`` is the size of a jump before the window below which it may be missed.
    """
    if campaign.windows is None:
        raise ValueError(f"campaign {campaign.id} has no windows")
    rows = []
    for one in series_of(campaign, tally):
        named = cell_places(campaign, one.question)
        for place in range(len(one.n)) if window is None else (window,):
            head = {
                "window": place + 1,
                "from": f"{campaign.windows.opens(place):%Y-%m-%d %H:%M}",
                "question": one.question.index,
                "kind": one.question.kind,
                "feature": one.question.feature,
                "n": int(one.n[place]),
            }
            missed = float(one.levels.missed[place])
            last = {"jump_missed": missed if math.isfinite(missed) else None}
            rows += [head | name | _levels_of(one, place, cell) | last for cell, name in enumerate(named)]
    return rows


def _levels_of(one: QuestionSeries, window: int, cell: int) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for name, cells in (("alone", one.alone), ("filtered", one.levels.filtered), ("smoothed", one.levels.smoothed)):
        finite = np.isfinite(cells.variance[window, cell])
        for part, numbers in (("", cells.value), ("_low", cells.low), ("_high", cells.high)):
            row[name + part] = float(numbers[window, cell]) if finite else None
    return row


@dataclass(frozen=True)
class Series:
    """The levels of a question's cells, arrays of shape (windows, cells), variances infinite where nothing is known.

    ``filtered`` is known of a window from it and those before, the last is the present; ``smoothed`` from all of them.
    ``weights``, shape (windows,), is what the average cell's present makes of each window: at least 0, adding up to 1.
    ``missed``, shape (windows,), is what a jump of one cell before a window, the average one, exceeds where it is not
    missed; next to one that is, intervals may leave the level out.
    """

    filtered: Cells
    smoothed: Cells
    weights: Array
    missed: Array


def smooth(estimates: Array, noise: Array, answers: Array) -> Series:
    """Filter and smooth the estimates of a question's cells, shape (windows, cells).

    ``noise`` is the variance that the mechanism adds to each, ``answers`` the number of reports of each window, shape
    (windows,). A window without any tells nothing. Infinitely many answers are those of the whole population (or of
    something that is no frequency and has its sampling in ``noise``).
    """
    answered = answers > 0
    if not answered.any():
        unknown = Cells.normal(np.zeros(estimates.shape), np.full(estimates.shape, np.inf))
        return Series(unknown, unknown, np.zeros(len(answers)), np.full(len(answers), np.inf))
    values, counts = np.where(answered[:, None], estimates, 0.0), np.where(answered, answers, np.inf)[:, None]
    own_noise = np.where(answered[:, None], noise, np.inf)

    def with_sampling(levels: Array) -> Array:
        inside = np.clip(levels, 0.0, 1.0)
        return np.asarray(own_noise + inside * (1 - inside) / counts)

    pooled = (values / own_noise).sum(axis=0) / (1 / own_noise).sum(axis=0)
    first = with_sampling(pooled)
    typical = 1 / float(np.mean(1 / first[answered]))
    drifts, values = _drifts(values[answered], typical), values - pooled
    size = max(10 * typical, float(np.ptp(values[answered], axis=0).max()) ** 2)
    plain = _Hypotheses(drifts, size, np.zeros((len(values), 0)), np.zeros(0))
    variance = with_sampling(_judged(values, first, plain).smoothed.value + pooled)
    found = _judged(values, variance, _Hypotheses(drifts, size, *_shapes(len(values), len(drifts))))
    nothing = np.cumsum(answered)[:, None] == 0
    return Series(
        Cells.normal(found.filtered.value + pooled, np.where(nothing, np.inf, found.filtered.variance)),
        Cells.normal(found.smoothed.value + pooled, found.smoothed.variance),
        found.weights,
        found.missed,
    )


def foreseen_variances(drift: float, variance: float, windows: int) -> tuple[float, float]:
    """The variances to expect of a filtered and of a smoothed level, for planning.

    With q the drift and R the variance of one window's estimate (with its sampling), a long series has

        filtered (-q + sqrt(q^2 + 4 q R)) / 2,   smoothed q R / sqrt(q^2 + 4 q R),

    and none less than R / T, that of T windows without drift. Filtered is of the last window, smoothed of the middle.
    The standard errors are right without drift and with much of it, and between the two up to 15 % too small.
    """
    root = math.sqrt(drift * drift + 4 * drift * variance)
    least = variance / windows
    return max((root - drift) / 2, least), max(drift * variance / root if root else 0.0, least)


class _Hypotheses(NamedTuple):
    """Drift variances, shape (drifts,), by shapes u of levels, shape (windows, shapes), or none."""

    drifts: Array
    size: float
    """The variance of b, of a jump or of a trend from end to end."""
    shapes: Array
    chances: Array
    """Prior probabilities of the shapes; the rest has none."""

    @property
    def prior(self) -> Array:
        """Shape (drifts, 1 + shapes), adding up to 1; first is no drift and no shape."""
        every = np.array([1 - self.chances.sum(), *self.chances])
        return np.tile(every / len(self.drifts), (len(self.drifts), 1))


def _drifts(values: Array, typical: float) -> Array:
    """Drift variances to try: 0, and from `R / T`, the variance of the series' mean, to more than its steps have."""
    steps = float((np.diff(values, axis=0) ** 2).mean(axis=0).max()) if len(values) > 1 else 0.0
    low, high = typical / len(values) ** 2, max(10 * typical, 4 * steps)
    return np.concatenate([[0.0], np.geomspace(low, high, math.ceil(math.log(high / low, _STEP)))])


def _shapes(windows: int, drifts: int) -> tuple[Array, Array]:
    """Jumps, before every window or as many as there is room for, with a trend last; and their prior."""
    most = max(1, min(windows - 1, _MOST // (windows * drifts)))
    time, places = np.arange(windows), np.linspace(windows - 1, 1, most).round()[::-1] if windows > 1 else np.zeros(0)
    jumps = (time[:, None] >= places).astype(np.float64)
    if windows < 3:
        return jumps, np.full(len(places), _JUMP / max(len(places), 1))
    trend = time / (windows - 1) - 0.5
    return np.column_stack([jumps, trend]), np.array([*np.full(most, _JUMP / most), _TREND])


class _Passed(NamedTuple):
    """A filter's levels under every drift, of y and of the shapes, (windows, drifts, cells, 1 + shapes), with their
    variances, (windows, drifts, cells); and for the windows so far the log likelihoods without a shape, and for each
    shape u the sums of i_u^2 / F and of i_u i_y / F over innovations i of variance F.
    """

    levels: Array
    variances: Array
    likelihoods: Array
    information: Array
    shocks: Array


def _forward(values: Array, variance: Array, hypotheses: _Hypotheses) -> _Passed:
    """Filter (Kalman), where an infinite ``variance`` is that of a window without answers."""
    drifts, cells, shapes = len(hypotheses.drifts), values.shape[1], hypotheses.shapes.shape[1]
    level, spread = np.zeros((drifts, cells, 1 + shapes)), np.full((drifts, cells), _VAGUE)
    likelihood = np.zeros((drifts, cells))
    information = shocks = np.zeros((drifts, cells, shapes))
    passed = []
    for window, (value, own, shape) in enumerate(zip(values, variance, hypotheses.shapes, strict=True)):
        spread = spread + hypotheses.drifts[:, None] * (window > 0)
        if np.isfinite(own).all():
            total = spread + own
            innovation = np.column_stack([value, np.broadcast_to(shape, (cells, shapes))]) - level
            gain = spread / total
            level, spread = level + gain[:, :, None] * innovation, gain * own
            likelihood = likelihood - 0.5 * (np.log(total) + innovation[:, :, 0] ** 2 / total)
            weighed = innovation[:, :, 1:] / total[:, :, None]
            information = information + weighed * innovation[:, :, 1:]
            shocks = shocks + weighed * innovation[:, :, :1]
        passed.append((level, spread, likelihood, information, shocks))
    return _Passed(*map(np.stack, zip(*passed, strict=True)))


def _backward(passed: _Passed, drifts: Array) -> _Passed:
    """Smooth (Rauch, Tung and Striebel 1965); every window has seen them all."""
    levels, variances = passed.levels.copy(), passed.variances.copy()
    for t in range(len(levels) - 2, -1, -1):
        ahead = variances[t] + drifts[:, None]
        gain = variances[t] / ahead
        levels[t] += gain[:, :, None] * (levels[t + 1] - levels[t])
        variances[t] += gain**2 * (variances[t + 1] - ahead)
    return _Passed(levels, variances, *(seen[-1:] for seen in passed[2:]))


def _evidence(passed: _Passed, size: float) -> Array:
    """The log likelihood of every hypothesis from the windows so far, shape (windows, drifts, cells, ...)."""
    plain, precision = passed.likelihoods[..., None], 1 + size * passed.information
    return np.concatenate([plain, plain + 0.5 * (size * passed.shocks**2 / precision - np.log(precision))], axis=-1)


def _posterior(logarithms: Array) -> Array:
    """Weights that add up to 1 over a cell's hypotheses."""
    weights = np.exp(logarithms - logarithms.max(axis=(1, 3), keepdims=True))
    return np.asarray(weights / weights.sum(axis=(1, 3), keepdims=True))


def _mix(passed: _Passed, weights: Array, hypotheses: _Hypotheses) -> Cells:
    """Mix the levels under all hypotheses by weight."""
    plain, rest = passed.levels[..., 0], hypotheses.shapes[:, None, None, :] - passed.levels[..., 1:]
    variance = hypotheses.size / (1 + hypotheses.size * passed.information)
    mean, of_shape = variance * passed.shocks, weights[..., 1:]
    shifted, share = (of_shape * mean * rest).sum(axis=-1), weights.sum(axis=-1)
    value = (share * plain + shifted).sum(axis=1)
    squares = share * (passed.variances + plain**2) + 2 * plain * shifted
    squares += (of_shape * (variance + mean**2) * rest**2).sum(axis=-1)
    return Cells.normal(value, np.maximum(squares.sum(axis=1) - value**2, 0.0))


def _present(passed: _Passed, smoothed: _Passed, weights: Array, variance: Array, hypotheses: _Hypotheses) -> Array:
    """Weights of every window's estimates in the last level, shape (windows, cells): gains, and the weight of
    each in b, `M^-1 u = R^-1 (u - smoothed u)` for y of covariance M without the shape.
    """
    gains = passed.variances / variance[:, None]
    later = np.cumprod(np.concatenate([np.ones_like(gains[:1]), 1 - gains[:0:-1]]), axis=0)[::-1]
    rest = hypotheses.shapes[:, None, None, :] - smoothed.levels[..., 1:]
    pull = weights[..., 1:] * hypotheses.size / (1 + hypotheses.size * smoothed.information[0]) * rest[-1]
    plain = (weights.sum(axis=-1) * gains * later).sum(axis=1)
    return np.asarray(plain + np.einsum("kcs,tkcs->tc", pull, rest) / variance)


def _judged(values: Array, variance: Array, hypotheses: _Hypotheses) -> Series:
    """Mix all hypotheses, each cell's with a prior from what the others tell."""
    windows, cells = values.shape
    together = max(1, _MOST // (windows * hypotheses.prior.size))
    parts = [slice(start, start + together) for start in range(0, cells, together)]
    own = hypotheses.prior * min(1.0, _OWN / math.sqrt(cells))
    alone, counts = own / cells, np.full(own.shape, float(max(cells - 1, 1)))
    alone[0, 0], counts[0, 0] = 1 - alone.sum() + alone[0, 0], 1.0

    @lru_cache(maxsize=1)
    def heard(place: int) -> tuple[_Passed, Array, Array]:
        passed = _forward(values[:, parts[place]], variance[:, parts[place]], hypotheses)
        evidence = _evidence(passed, hypotheses.size)
        return passed, evidence, _posterior(evidence + np.log(alone)[:, None])

    total = sum(heard(place)[2].sum(axis=2, keepdims=True) for place in range(len(parts)))
    mixed = []
    for place, part in enumerate(parts):
        passed, evidence, opinions = heard(place)
        prior = own[:, None] + counts[:, None] * np.maximum(total - opinions, 0.0)
        weights = _posterior(_CAUTION * evidence + np.log(prior))
        smoothed = _backward(passed, hypotheses.drifts)
        information = (weights[-1].sum(axis=-1, keepdims=True) * passed.information[-1]).sum(axis=0)
        filtered, past = _mix(passed, weights, hypotheses), _mix(smoothed, weights[-1:], hypotheses)
        now = _present(passed, smoothed, weights[-1], variance[:, part], hypotheses)
        mixed.append((filtered.value, filtered.variance, past.value, past.variance, now, information.T))
    *levels, now, information = (np.concatenate(one, axis=1) for one in zip(*mixed, strict=True))
    now = np.maximum(now.mean(axis=1), 0.0)
    with np.errstate(divide="ignore"):
        sizes = MISSED * np.sqrt((1 / information).mean(axis=1))
    missed = np.full(windows, np.inf)
    jumps = hypotheses.shapes[0] == 0  # A trend starts below.
    if jumps.any():
        missed[1:] = np.interp(np.arange(1, windows), hypotheses.shapes[:, jumps].argmax(axis=0), sizes[jumps])
    return Series(Cells.normal(*levels[:2]), Cells.normal(*levels[2:]), now / now.sum(), missed)
