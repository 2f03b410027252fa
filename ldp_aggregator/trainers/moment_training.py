"""Training from counts and, for every number, a mean and a variance of each class: what both papers have in common."""

from __future__ import annotations

from abc import abstractmethod
from fractions import Fraction
from typing import Final, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ldp_aggregator.learning.frames import column_of
from ldp_aggregator.learning.published import Guarantee
from ldp_aggregator.node_statistics import CLASSES, SUM, TABLE
from ldp_aggregator.trainers.base import PUBLISHED, PrivateNaiveBayes, Training
from ldp_aggregator.trainers.model_from_statistics import Options, rebuild
from ldp_aggregator.trainers.noise.sensitivities import ADD_REMOVE
from ldp_aggregator.trainers.schemas import Schema
from ldp_aggregator.trainers.statistics import GRID, QueryNoise, add_noise, grid_values, plan_noise, statistics_of
from ldp_aggregator.trainers.unseen_features import warn_of_silence
from protocols.exact import Coins
from protocols.model import Model

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

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
        """In [0, 1]."""
        scaled: Array = self.steps / SPAN
        return scaled

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
        plans = plan_noise(schema, self.epsilon, relation, self.numerical_share, even=True)
        exact = statistics_of(schema, frame, classes)
        counted = [plan for plan in plans if plan.part.kind in (CLASSES, TABLE)]
        noisy = self._noisy_counts(exact, counted, training)
        warn_of_silence(noisy, counted)
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
        return add_noise(exact, plans, training.accountant, training.coins)

    @abstractmethod
    def _mean_and_variance(self, column: MomentColumn, epsilon: Fraction, coins: Coins) -> tuple[Fraction, Fraction]:
        """Both with noise, each for ``epsilon``, in units in which the bounds are 0 and 1."""

    @abstractmethod
    def _guarantee(self, schema: Schema, plans: tuple[QueryNoise, ...]) -> Guarantee:
        """The promise of the training."""


def _columns(schema: Schema, name: str, frame: pd.DataFrame, classes: Integers) -> list[MomentColumn]:
    feature = next(feature for feature in schema.gaussians if feature.name == name)
    steps = grid_values(feature, column_of(schema.prepare(frame), feature)).astype(np.int64) + GRID
    return [MomentColumn(np.sort(steps[classes == c])) for c in range(schema.class_count)]


def _square_sum(steps: Integers) -> int:
    """Exact: the squares are below 2^43, so that 2^20 of them fit into 63 bits."""
    pieces = (steps[start : start + (1 << 20)] for start in range(0, len(steps), 1 << 20))
    return sum(int(piece @ piece) for piece in pieces)
