"""Training from counts and, for every number, a mean and a variance of each class: what both papers have in common.

Global sensitivity (Vaidya, Shafiq, Basu, Hong 2013), as published: mean and standard deviation with the sensitivities
of *adding* a row, from the exact class sizes; class counts with Laplace(0, 1) whatever epsilon is (line 18); counts and
deviations drawn again until they are not negative. ``published`` does just that and states what it costs. Sound, the
deviation gives way to the variance, whose sensitivity is smaller by the root of the class size, negatives are clamped,
which is free, and class counts get their share.

Smooth sensitivity (Zafarani, Clifton 2020), sound: the variance instead of the deviation, the exact smooth sensitivity
by its definition, the tight calibration with the largest beta that costs nothing (see
:mod:`ldp_aggregator.trainers.smoothness`). Published: the largest change of mean and deviation within k
replacements instead of the local sensitivity there, and noise sqrt(2) S / epsilon with the reading beta = epsilon /
sqrt(2), which is the one that would be sound for a smooth S.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from typing import Final, NamedTuple

import numpy as np
import pandas as pd

from ldp_aggregator.guarantees import Guarantee
from ldp_aggregator.learning.frames import column_of
from ldp_aggregator.node_statistics import CLASSES, SUM, TABLE
from ldp_aggregator.trainers import sensitivities, smoothness, statistics
from ldp_aggregator.trainers.base import PUBLISHED, PrivateNaiveBayes, Training
from ldp_aggregator.trainers.model_from_statistics import Options, rebuild
from ldp_aggregator.trainers.randomness import discrete_laplace, release
from ldp_aggregator.trainers.schemas import Schema
from ldp_aggregator.trainers.sensitivities import ADD_REMOVE, RELATIONS, REPLACE
from ldp_aggregator.trainers.statistics import GRID, Array, Integers, QueryNoise
from ldp_protocols.document.model import Model
from ldp_protocols.exact import Coins

SPAN: Final = 2 * GRID
"""A value in [0, 1] is an integer of so many steps."""


class MomentColumn(NamedTuple):
    """The values of one feature in one class: integers from 0 to :data:`SPAN`, ascending."""

    steps: Integers

    @property
    def rows(self) -> int:
        return len(self.steps)

    @property
    def values(self) -> Array:
        """The values in [0, 1]."""
        return self.steps / SPAN

    @property
    def mean(self) -> Fraction:
        """Exact; 1/2 without rows."""
        return Fraction(int(self.steps.sum()), SPAN * self.rows) if self.rows else Fraction(1, 2)

    @property
    def variance(self) -> Fraction:
        """Population variance, exact; 0 without rows."""
        if not self.rows:
            return Fraction(0)
        total, squares = int(self.steps.sum()), _square_sum(self.steps)
        return Fraction(self.rows * squares - total**2, (SPAN * self.rows) ** 2)


class MomentTrainer(PrivateNaiveBayes):
    """Noisy counts as everywhere; :meth:`_mean_and_variance` says how the moments get their noise."""

    def _train(self, training: Training, frame: pd.DataFrame, classes: Integers) -> tuple[Model, Guarantee]:
        schema = training.schema
        relation = ADD_REMOVE if self.variant == PUBLISHED else self.relation
        plans = statistics.plan_noise(schema, self.epsilon, relation, self.numerical_share, even=True)
        exact = statistics.statistics_of(schema, frame, classes)
        counted = [plan for plan in plans if plan.part.kind in (CLASSES, TABLE)]
        noisy = self._noisy_counts(exact, counted, training)
        statistics.warn_of_silence(noisy, counted)
        released = {}
        for plan in plans:
            if plan.part.kind == SUM and plan.part.feature is not None:
                name, each = plan.part.feature.name, plan.epsilon / 2
                for moment in ("mean", "variance"):
                    training.accountant.spend(f"{name}: {moment}", each)
                pairs = [
                    self._mean_and_variance(column, each, training.coins)
                    for column in _columns(schema, name, frame, classes)
                ]
                released[name] = (np.array([float(m) for m, _ in pairs]), np.array([float(v) for _, v in pairs]))
        options = Options(float(self.variance_floor), float(self.smoothing), pool=False, shrink=False)
        return rebuild(schema, noisy, plans, options, released=released), self._guarantee(schema, plans)

    def _noisy_counts(self, exact: Integers, plans: list[QueryNoise], training: Training) -> Integers:
        return statistics.add_noise(exact, plans, training.accountant, training.coins)

    @abstractmethod
    def _mean_and_variance(self, column: MomentColumn, epsilon: Fraction, coins: Coins) -> tuple[Fraction, Fraction]:
        """Both with noise, each for ``epsilon``, in units in which the bounds are 0 and 1."""

    @abstractmethod
    def _guarantee(self, schema: Schema, plans: tuple[QueryNoise, ...]) -> Guarantee:
        """The promise of the training."""


def _columns(schema: Schema, name: str, frame: pd.DataFrame, classes: Integers) -> list[MomentColumn]:
    feature = next(feature for feature in schema.gaussians if feature.name == name)
    steps = statistics.grid_values(feature, column_of(schema.prepare(frame), feature)).astype(np.int64) + GRID
    return [MomentColumn(np.sort(steps[classes == c])) for c in range(schema.class_count)]


def _square_sum(steps: Integers) -> int:
    """Exact: the squares are below 2^43, so that 2^20 of them fit into 63 bits."""
    pieces = (steps[start : start + (1 << 20)] for start in range(0, len(steps), 1 << 20))
    return sum(int(piece @ piece) for piece in pieces)


_MEAN_EXCESS = 2.0
_DEVIATION_EXCESS = 1.09
"""Sensitivity under ``replace`` over the published one, at most: (n + 1)/n, and sqrt((n - 1)/n) (n + 1)/n at n = 3."""


class GlobalSensitivityNB(MomentTrainer):
    """Naive Bayes with Laplace noise for the global sensitivity of every query.

    ``relation="add-remove"`` asks noisy sums, since mean and variance of a private number of rows have no useful global
    sensitivity; ``relation="replace"`` asks means and variances with the public class sizes. Parameters and attributes
    as in :class:`~ldp_aggregator.trainers.SufficientStatisticsNB`, and ``variant="published"`` for the paper's own
    algorithm, whose true guarantee is in ``guarantee_`` (its ``relation`` is always ``replace``).

    Examples
    --------
    >>> import pandas as pd
    >>> schema = {
    ...     "label": {"name": "ill", "classes": ["no", "yes"]},
    ...     "features": [{"name": "age", "kind": "continuous", "low": 0, "high": 100, "missing": False}],
    ... }
    >>> table = pd.DataFrame({"age": [30] * 5000 + [70] * 5000})
    >>> model = GlobalSensitivityNB(schema, epsilon=1.0, relation="replace")
    >>> model.fit(table, ["no"] * 5000 + ["yes"] * 5000).predict(pd.DataFrame({"age": [25, 75]})).tolist()
    ['no', 'yes']
    """

    def _train(self, training: Training, frame: pd.DataFrame, classes: Integers) -> tuple[Model, Guarantee]:
        if self.variant == PUBLISHED or self.relation == REPLACE:
            return super()._train(training, frame, classes)
        plans = statistics.plan_noise(training.schema, self.epsilon, ADD_REMOVE, self.numerical_share, even=True)
        exact = statistics.statistics_of(training.schema, frame, classes)
        noisy = statistics.add_noise(exact, plans, training.accountant, training.coins)
        statistics.warn_of_silence(noisy, plans)
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
            return _moments_as_published(column, epsilon, coins)
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


def _moments_as_published(column: MomentColumn, epsilon: Fraction, coins: Coins) -> tuple[Fraction, Fraction]:
    """Mean and squared deviation with equations 5 and 7; the deviation is drawn again until it is not negative."""
    mean = release(column.mean, Fraction(sensitivities.mean_adding(column.rows, 1.0)), epsilon, coins)
    exact = Fraction(math.sqrt(column.variance))
    sensitivity = Fraction(sensitivities.deviation_adding(column.rows, 1.0))
    deviation = Fraction(-1)
    while deviation < 0:
        deviation = release(exact, sensitivity, epsilon, coins)
    return mean, deviation**2


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
            values = column.values
            mean, variance = smoothness.smooth_mean(values, used), smoothness.smooth_variance(values, used)
        else:
            mean = smoothness.smooth_mean_of_size(column.rows, used)
            variance = smoothness.smooth_variance_of_size(column.rows, used)
        return (
            smoothness.release(column.mean, mean, alpha, _STEP, coins),
            smoothness.release(column.variance, variance, alpha, _STEP, coins),
        )

    def _guarantee(self, schema: Schema, plans: Sequence[QueryNoise]) -> Guarantee:
        if self.variant == PUBLISHED:
            return Guarantee(None, 0.0, _NOT_SMOOTH, ())
        return self._sound_guarantee(self.relation)


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
        left = m - replaced
        sums, squares = np.cumsum(side)[left - 1], np.cumsum(side**2)[left - 1]
        moved = (squares / m - (sums / m) ** 2, (squares - sums**2 / left) / m)
        for variance in moved:
            changes = np.abs(np.sqrt(np.maximum(variance, 0.0)) - here)
            deviation = max(deviation, float((weights[:-1] * changes).max(initial=0.0)))
    return mean, deviation


def _published_moments(column: MomentColumn, epsilon: float, coins: Coins) -> tuple[Fraction, Fraction]:
    alpha = beta = epsilon / math.sqrt(2)
    mean, deviation = published_sensitivities(column.values, beta)
    noisy = smoothness.release(Fraction(math.sqrt(column.variance)), deviation, alpha, _STEP, coins)
    return smoothness.release(column.mean, mean, alpha, _STEP, coins), max(noisy, Fraction(0)) ** 2
