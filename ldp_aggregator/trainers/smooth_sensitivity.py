"""Naive Bayes with noise for the smooth sensitivity (Zafarani, Clifton 2020).

Sound: the variance instead of the deviation, the exact smooth sensitivity by its definition, the tight calibration with
the largest beta that costs nothing (see :mod:`ldp_aggregator.trainers.noise.smoothness`). Published: the largest change
of mean and deviation within k replacements instead of the local sensitivity there, and noise sqrt(2) S / epsilon with
the reading beta = epsilon / sqrt(2), which is the one that would be sound for a smooth S.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.learning.published import Guarantee
from ldp_aggregator.trainers.base import PUBLISHED
from ldp_aggregator.trainers.moment_training import MomentColumn, MomentTrainer
from ldp_aggregator.trainers.noise import smoothness
from ldp_aggregator.trainers.noise.sensitivities import REPLACE
from ldp_aggregator.trainers.schemas import Schema
from ldp_aggregator.trainers.statistics import QueryNoise
from protocols.exact import Coins

Array = NDArray[np.float64]

_STEP: Final = Fraction(1, 1 << 40)
"""Grid of what is released, in units in which the bounds are 0 and 1; it does not depend on the data."""

_NOT_SMOOTH: Final = "none: the published sensitivity does not bound the local sensitivity of neighbouring tables"


class SmoothSensitivityNB(MomentTrainer):
    """Naive Bayes with Cauchy noise for the smooth sensitivity of mean and variance, Laplace noise for counts.

    Under ``relation="replace"``, the paper's, the noise follows the values; under ``add-remove`` only the (private)
    class sizes. Parameters and attributes as in :class:`~ldp_aggregator.trainers.SufficientStatisticsNB`;
    ``numerical_share`` is the paper's Figure 10. ``variant="published"`` is the paper's algorithm and guarantees
    nothing.
    """

    def _mean_and_variance(self, column: MomentColumn, epsilon: Fraction, coins: Coins) -> tuple[Fraction, Fraction]:
        if self.variant == PUBLISHED:
            return _published_moments(column, float(epsilon), coins)
        # The smooth sensitivities take a little less than the beta that alpha is for: see the module of the noise.
        beta = smoothness.largest_beta(float(epsilon))
        alpha = smoothness.calibrate(float(epsilon), beta)
        used = max(beta - smoothness.SLACK, 0.0)
        if self.relation == REPLACE:
            mean, variance = (smooth(column.values, used) for smooth in _OF_VALUES)
        else:
            mean, variance = (smooth(column.rows, used) for smooth in _OF_SIZE)
        return (
            smoothness.release(column.mean, mean, alpha, _STEP, coins),
            smoothness.release(column.variance, variance, alpha, _STEP, coins),
        )

    def _guarantee(self, schema: Schema, plans: Sequence[QueryNoise]) -> Guarantee:
        if self.variant == PUBLISHED:
            return Guarantee(None, 0.0, _NOT_SMOOTH, ())
        return self._sound_guarantee(self.relation)


_OF_VALUES: Final = (smoothness.smooth_mean, smoothness.smooth_variance)
_OF_SIZE: Final = (smoothness.smooth_mean_of_size, smoothness.smooth_variance_of_size)


def published_sensitivities(ascending: Array, beta: float) -> tuple[float, float]:
    """Max over k of exp(-beta k) |f(V) - f(V')| for mean and deviation, V' within k replacements of V.

    For the mean, the k largest go to 0 or the k smallest to 1. For the deviation those two and, to make it smaller, the
    k values of one end go to the mean of the others.
    """
    m = len(ascending)
    if m == 0:
        return 0.0, 0.0
    reflected = 1 - ascending[::-1]
    weights = np.exp(-beta * np.arange(1, m + 1))
    mean = max(float((weights * np.cumsum(side[::-1])).max()) / m for side in (ascending, reflected))
    here = float(ascending.std())
    deviation = 0.0
    replaced = np.arange(1, m)
    for side in (ascending, reflected):
        kept = m - replaced
        sums, squares = np.cumsum(side)[kept - 1], np.cumsum(side**2)[kept - 1]
        moved = (squares / m - (sums / m) ** 2, (squares - sums**2 / kept) / m)
        for variance in moved:
            changes = np.abs(np.sqrt(np.maximum(variance, 0.0)) - here)
            deviation = max(deviation, float((weights[:-1] * changes).max(initial=0.0)))
    return mean, deviation


def _published_moments(column: MomentColumn, epsilon: float, coins: Coins) -> tuple[Fraction, Fraction]:
    alpha = beta = epsilon / math.sqrt(2)
    mean, deviation = published_sensitivities(column.values, beta)
    noisy = smoothness.release(Fraction(math.sqrt(column.variance)), deviation, alpha, _STEP, coins)
    return smoothness.release(column.mean, mean, alpha, _STEP, coins), max(noisy, Fraction(0)) ** 2
