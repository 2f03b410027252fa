"""Naive Bayes with noise for the global sensitivity (Vaidya, Shafiq, Basu, Hong 2013).

As published: mean and standard deviation with the sensitivities of *adding* a row, from the exact class sizes; class
counts with Laplace(0, 1) whatever epsilon is (line 18); counts and deviations drawn again until they are not negative.
``published`` does just that and states what it costs. Sound, the deviation gives way to the variance, whose sensitivity
is smaller by the root of the class size, negatives are clamped, which is free, and class counts get their share.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ldp_aggregator.learning.published import Guarantee
from ldp_aggregator.node_statistics import CLASSES, SUM, TABLE
from ldp_aggregator.trainers.base import PUBLISHED, Training
from ldp_aggregator.trainers.model_from_statistics import Options, rebuild
from ldp_aggregator.trainers.moment_training import MomentColumn, MomentTrainer
from ldp_aggregator.trainers.noise import sensitivities
from ldp_aggregator.trainers.noise.integers import discrete_laplace, release
from ldp_aggregator.trainers.noise.sensitivities import ADD_REMOVE, RELATIONS, REPLACE
from ldp_aggregator.trainers.schemas import Schema
from ldp_aggregator.trainers.statistics import QueryNoise, add_noise, plan_noise, statistics_of
from ldp_aggregator.trainers.unseen_features import warn_of_silence
from protocols.exact import Coins
from protocols.model import Model

Integers = NDArray[np.int64]

_MEAN_EXCESS = 2.0
_DEVIATION_EXCESS = 1.09
"""Sensitivity under ``replace`` over the published one, at most: (n + 1)/n, and sqrt((n - 1)/n) (n + 1)/n at n = 3."""


class GlobalSensitivityNB(MomentTrainer):
    """Naive Bayes with Laplace noise for the global sensitivity of every query.

    ``relation="add-remove"`` asks noisy sums, since mean and variance of a private number of rows have no useful global
    sensitivity; ``relation="replace"`` asks means and variances with the public class sizes. Parameters and attributes
    as in :class:`~ldp_aggregator.trainers.SufficientStatisticsNB`, and ``variant="published"`` for the paper's own
    algorithm, whose true guarantee is in ``guarantee_`` (its ``relation`` is always ``replace``).
    """

    def _train(self, training: Training, frame: pd.DataFrame, classes: Integers) -> tuple[Model, Guarantee]:
        if self.variant == PUBLISHED or self.relation == REPLACE:
            return super()._train(training, frame, classes)
        plans = plan_noise(training.schema, self.epsilon, ADD_REMOVE, self.numerical_share, even=True)
        exact = statistics_of(training.schema, frame, classes)
        noisy = add_noise(exact, plans, training.accountant, training.coins)
        warn_of_silence(noisy, plans)
        options = Options(float(self.variance_floor), float(self.smoothing), pool=False, shrink=False)
        return rebuild(training.schema, noisy, plans, options), self._sound_guarantee(ADD_REMOVE)

    def _noisy_counts(self, exact: Integers, plans: list[QueryNoise], training: Training) -> Integers:
        if self.variant != PUBLISHED:
            return super()._noisy_counts(exact, plans, training)
        noisy = exact.copy()
        for plan in plans:
            training.accountant.spend(plan.part.query, plan.epsilon)
            scale = Fraction(1) if plan.part.kind == CLASSES else plan.scale
            pending = np.arange(plan.part.start, plan.part.stop)
            while pending.size:
                noisy[pending] = exact[pending] + discrete_laplace(scale, pending.size, training.coins)
                pending = pending[noisy[pending] < 0]
        return noisy

    def _mean_and_variance(self, column: MomentColumn, epsilon: Fraction, coins: Coins) -> tuple[Fraction, Fraction]:
        if self.variant == PUBLISHED:
            return _published_moments(column, epsilon, coins)
        if column.rows == 0:
            return column.mean, column.variance
        unit = Fraction(1)
        mean = release(column.mean, sensitivities.mean_replacing(column.rows, unit), epsilon, coins)
        variance_sensitivity = sensitivities.variance_replacing(column.rows, unit)
        return mean, release(column.variance, variance_sensitivity, epsilon, coins)

    def _guarantee(self, schema: Schema, plans: tuple[QueryNoise, ...]) -> Guarantee:
        if self.variant != PUBLISHED:
            return self._sound_guarantee(REPLACE)
        loss = 0.0
        for plan in plans:
            if plan.part.kind == TABLE:
                loss += 2 * sensitivities.resampling_loss(float(plan.epsilon))
            elif plan.part.kind == SUM:  # its epsilon is for mean and deviation
                each = float(plan.epsilon / 2)
                loss += _MEAN_EXCESS * each + sensitivities.resampling_loss(_DEVIATION_EXCESS * each)
        public = ("the schema: classes, values, bounds", "the labels and the exact class counts")
        return Guarantee(loss, 0.0, RELATIONS[REPLACE], public)


def _published_moments(column: MomentColumn, epsilon: Fraction, coins: Coins) -> tuple[Fraction, Fraction]:
    """Mean and squared deviation with equations 5 and 7; the deviation is drawn again until it is not negative."""
    mean = release(column.mean, Fraction(sensitivities.mean_adding(column.rows, 1.0)), epsilon, coins)
    exact = Fraction(math.sqrt(column.variance))
    sensitivity = Fraction(sensitivities.deviation_adding(column.rows, 1.0))
    deviation = Fraction(-1)
    while deviation < 0:
        deviation = release(exact, sensitivity, epsilon, coins)
    return mean, deviation**2
