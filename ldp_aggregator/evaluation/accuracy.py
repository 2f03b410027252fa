"""The accuracy of a model, at the threshold and with the slope that an evaluation round takes.

It is pooled from both questions, by the inverse of their predicted variances. Thresholds other than the model's own are
looked at too, and the one of the largest z-score is taken where that is above :data:`CLEARLY_BETTER`. What is then told
of its accuracy is told *given that it was taken* (Lee et al. 2016, theorem 5.2): the truncated normal law of a linear
function of E given linear inequalities of E. So the number is not too high because it was chosen.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, softmax
from scipy.stats import truncnorm

from ldp_aggregator.estimation.cells import Array, Cells
from ldp_aggregator.estimation.estimators import QuestionEstimate
from ldp_aggregator.estimation.evidence import covariance_of_cells
from ldp_aggregator.evaluation.score_table import ScoreTable, right_cells
from ldp_aggregator.learning.expected_accuracy import draw_scores
from ldp_protocols.document.authored import Evaluation

CLEARLY_BETTER: Final = 2.0
"""Standard errors of the difference by which another threshold must be better than the model's own."""

_FLAT: Final = 1e-12
"""A slope below which a bound does not depend on what is told."""

_SLOPES: Final[Array] = np.round(np.arange(0.1, 1.525, 0.05), 2)
"""Numbers by which log odds may be multiplied."""

RECORDS: Final = 20_000
"""Drawn from a model's own tables, for what a round is expected to tell."""


@dataclass(frozen=True)
class Figure:
    """An estimate with its 95 % interval; None where the answers do not tell it."""

    value: float | None
    low: float | None
    high: float | None

    @classmethod
    def of(cls, cells: Cells, place: int = 0) -> Figure:
        if not math.isfinite(cells.variance[place]):
            return cls(None, None, None)
        value, low, high = (float(one[place]) for one in (cells.value, cells.low, cells.high))
        return cls(min(max(value, 0.0), 1.0), max(low, 0.0), min(high, 1.0))


UNTOLD: Final = Figure(None, None, None)


def figures_by_class(names: Sequence[str], cells: Cells) -> dict[str, Figure]:
    """A figure of each cell, by the name of its class."""
    return {name: Figure.of(cells, place) for place, name in enumerate(names)}


@dataclass(frozen=True)
class Accuracy:
    """Accuracy as a linear function of ``estimates``, the cells of the table and the frequency of right answers, with
    their ``covariance``: ``own`` at the model's own threshold.
    """

    estimates: Array
    covariance: Array
    own: Array

    @classmethod
    def of(
        cls,
        evaluation: Evaluation,
        bit: QuestionEstimate | None,
        score: QuestionEstimate | None,
        table: ScoreTable | None,
    ) -> Accuracy:
        """The accuracy of the model as it was trained, from the answers to either question or to both."""
        right = _right(evaluation)
        cells = right.size
        estimates, covariance, weights = np.zeros(cells + 1), np.zeros((cells + 1, cells + 1)), [0.0, 0.0]
        if score is not None and table is not None:
            estimates[:-1], covariance[:-1, :-1] = table.value.ravel(), table.covariance
            even = covariance_of_cells(score.question, np.full(cells, 1 / cells))
            weights[0] = score.n / float(right @ even @ right)
        if bit is not None:
            estimates[-1], covariance[-1, -1] = bit.cells.value[1], bit.cells.variance[1]
            weights[1] = bit.n / float(covariance_of_cells(bit.question, np.array([0.5, 0.5]))[1, 1])
        whole = sum(weights) or 1.0
        return cls(estimates, covariance, np.append(right * weights[0], weights[1]) / whole)

    def as_trained(self) -> Figure:
        """The accuracy at the model's own threshold."""
        return Figure.of(Cells.normal(np.array([self.own @ self.estimates]), np.array([self._variance(self.own)])))

    def published(self, evaluation: Evaluation) -> tuple[Figure, float, str]:
        """The accuracy at the threshold that is taken, the threshold, and the reason."""
        edges = [edge for edge in evaluation.edges or () if edge]
        own = _right(evaluation)
        if not edges:
            return self.as_trained(), 0.0, "the score has two bins, and no other threshold"
        gains = np.array([np.append(_right(evaluation, edge) - own, 0.0) for edge in edges])
        errors = np.sqrt([self._variance(gain) for gain in gains])
        scores = gains @ self.estimates / errors
        best = int(np.argmax(scores))
        if not scores[best] > CLEARLY_BETTER:
            why = f"no other threshold is better by {CLEARLY_BETTER:g} standard errors"
            return self.as_trained(), 0.0, why
        # It was taken because its score is above the others', and above what is clear: linear in what was told.
        scaled = gains / errors[:, None]
        bounds = np.concatenate([np.delete(scaled, best, axis=0) - scaled[best], -scaled[[best]]])
        limits = np.append(np.zeros(len(edges) - 1), -CLEARLY_BETTER)
        figure = self._given(self.own + gains[best], bounds, limits)
        gain, error = float(gains[best] @ self.estimates), float(errors[best])
        why = f"log odds above {edges[best]:g} instead of 0 are right more often by {gain:.4f} +- {error:.4f}"
        return figure, edges[best], why

    def slope(self, evaluation: Evaluation, threshold: float) -> float:
        """The number that log odds above the threshold are multiplied by: the one with which the model says on
        average how often it is right, where without any it is off by more than is clear. A place says what the model's
        own records in it say on average.
        """
        scores = draw_scores(evaluation.model, RECORDS, np.random.default_rng(0))[0]
        classes = scores.shape[1]
        if evaluation.edges is None:
            places, sure = scores.argmax(axis=1), softmax(scores * _SLOPES[:, None, None], axis=2).max(axis=2)
        else:
            edges = np.array(evaluation.edges)
            middles = [edges[0] - 1, *(edges[1:] + edges[:-1]) / 2, edges[-1] + 1]
            odds = np.append(scores[:, 1] - scores[:, 0], middles)
            places, sure = np.searchsorted(edges, odds, side="left"), expit(np.abs(odds - threshold) * _SLOPES[:, None])
        drawn = np.bincount(places, minlength=evaluation.places)
        said = np.array([np.bincount(places, one, evaluation.places) for one in sure]).T
        # What the model never says of its own records it may say of others', as surely as it does on average.
        said = np.where(drawn[:, None] > 0, said / np.maximum(drawn, 1)[:, None], said.sum(axis=0) / len(places))
        right = self.own + np.append(_right(evaluation, threshold) - _right(evaluation), 0.0)
        too_sure = np.vstack([np.repeat(said, classes, axis=0), np.zeros(len(_SLOPES))]).T - right
        off, error = too_sure @ self.estimates, math.sqrt(self._variance(too_sure[_SLOPES == 1.0][0]))
        clear = abs(float(off[_SLOPES == 1.0][0])) > CLEARLY_BETTER * error
        return float(_SLOPES[np.abs(off).argmin()]) if clear else 1.0

    def _given(self, function: Array, bounds: Array, limits: Array) -> Figure:
        """Median-unbiased value of a linear function given `bounds @ estimates <= limits`, with its 95 % interval."""
        variance, value = self._variance(function), float(function @ self.estimates)
        slopes = bounds @ self.covariance @ function / variance
        rest = limits - bounds @ (self.estimates - self.covariance @ function / variance * value)
        with np.errstate(divide="ignore"):
            ends = rest / slopes
        low = float(max(ends[slopes < -_FLAT], default=-math.inf))
        high = float(min(ends[slopes > _FLAT], default=math.inf))
        found = (_mean_with(level, value, math.sqrt(variance), low, high) for level in (0.5, 0.975, 0.025))
        middle, least, most = (min(max(one, 0.0), 1.0) for one in found)
        return Figure(middle, least, most)

    def _variance(self, function: Array) -> float:
        return float(function @ self.covariance @ function)


def _right(evaluation: Evaluation, threshold: float = 0.0) -> Array:
    """1 for the cells in which the model is right, 0 for the others, shape (places k,)."""
    return right_cells(evaluation, threshold).ravel().astype(np.float64)


def _mean_with(level: float, value: float, deviation: float, low: float, high: float) -> float:
    """The mean of the normal law, cut to [low, high], of which ``level`` lies below ``value``."""

    def below(mean: float) -> float:
        return float(truncnorm.cdf(value, (low - mean) / deviation, (high - mean) / deviation, mean, deviation)) - level

    reach = 40 * deviation
    if below(value - reach) < 0:
        return value - reach
    if below(value + reach) > 0:
        return value + reach
    return float(brentq(below, value - reach, value + reach, xtol=1e-10))
