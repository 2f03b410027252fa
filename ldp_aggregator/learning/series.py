"""A campaign with windows over time: every question's estimates window by window, smoothed, and what a model of the
present is made of.

Everything here is computed from what was counted, and costs no device anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import Any, Final

import numpy as np

from ldp_aggregator.counting.tally import Tally
from ldp_aggregator.estimation.cell_tables import cell_names
from ldp_aggregator.estimation.estimates import estimate
from ldp_aggregator.estimation.estimators import QuestionEstimate
from ldp_aggregator.estimation.expected import Expectation, variance_per_answer
from ldp_aggregator.estimation.intervals import Array, Cells
from ldp_aggregator.estimation.simplex import NONE
from ldp_aggregator.estimation.smoothing import Series, smooth
from ldp_protocols import Campaign, Question
from ldp_protocols.document.questions import INDEX, PRODUCT

ALL_WINDOWS: Final = "all"
NOW: Final = "now"


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
    """Return the series of every question of a campaign with windows (or of those with at most so many cells), up to
    the last window with answers. Raises ValueError for a campaign without windows.
    """
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
    """Return the tally of a campaign with windows as of its last answers: every window weighs as much as the filter
    gives it, and there are as many reports as would be known as well without drift.

    A question's weights are those of its average cell. What a jump lies after counts for nothing.
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
    """Return one row for every window that has answers (or for the one told, from 0), every question and cell: the
    estimate of that window alone, as filtered and as smoothed, each with its 95 % interval.
    """
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
