"""Naive Bayes from noisy sufficient statistics: counts, sums and centred squares.

The sums are centred on the public midpoint, so that one row moves them least; class sizes are pooled from all queries;
what the noise drowned is shrunk by its known variance. See :mod:`ldp_aggregator.trainers.model_from_statistics`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ldp_aggregator.learning.published import Guarantee
from ldp_aggregator.trainers.base import SOUND, PrivateNaiveBayes, Training
from ldp_aggregator.trainers.model_from_statistics import DEFAULT_VARIANCE_FLOOR, Options, rebuild
from ldp_aggregator.trainers.noise.accountant import Accountant
from ldp_aggregator.trainers.noise.randomness import RandomState
from ldp_aggregator.trainers.noise.sensitivities import ADD_REMOVE
from ldp_aggregator.trainers.schemas import Schema
from ldp_aggregator.trainers.statistics import add_noise, plan_noise, statistics_of, statistics_of_chunks
from ldp_aggregator.trainers.unseen_features import warn_of_silence
from protocols.model import Model

Integers = NDArray[np.int64]


class SufficientStatisticsNB(PrivateNaiveBayes):
    """Naive Bayes from noisy class counts, tables, sums and squares, each asked once.

    Parameters
    ----------
    schema
        A draft (or campaign document) as a mapping: ``label``, ``features`` and ``projection`` are used, and public.
        None reads them off the table, which warns and guarantees nothing.
    epsilon
        Total privacy loss of one fit.
    relation
        ``add-remove`` one row, or ``replace`` the values of one row (labels public).
    numerical_share
        Share of epsilon for sums and squares; None gives every query the same, and class counts a fifth at least where
        there are no tables.
    smoothing
        Pseudo-count per table cell.
    variance_floor
        Least variance of a Gaussian feature, relative to (high - low)^2; where the noise is larger, the floor is, up to
        0.001.
    accountant
        None, or the one that several fits share: each books its epsilon there before it draws anything, and is refused
        with BudgetError beyond the total.
    random_state
        None takes the operating system's CSPRNG. A seed repeats, and warns: its output is not for release.
    """

    def __init__(
        self,
        schema: Mapping[str, Any] | None = None,
        *,
        epsilon: float = 1.0,
        relation: str = ADD_REMOVE,
        variant: str = SOUND,
        numerical_share: float | None = None,
        smoothing: float = 1.0,
        variance_floor: float = DEFAULT_VARIANCE_FLOOR,
        accountant: Accountant | None = None,
        random_state: RandomState = None,
    ) -> None:
        super().__init__(
            schema,
            epsilon=epsilon,
            relation=relation,
            variant=variant,
            numerical_share=numerical_share,
            smoothing=smoothing,
            variance_floor=variance_floor,
            accountant=accountant,
            random_state=random_state,
        )

    def fit_chunks(self, chunks: Iterable[tuple[pd.DataFrame, Any]]) -> SufficientStatisticsNB:
        """Learn from ``(X, y)`` pieces of one table; memory holds one piece and the statistics."""
        if self.schema is None:
            raise ValueError("pieces of a table need a schema: no piece knows the bounds of the others")
        schema = Schema.read(self.schema)
        training = self._begin(schema)
        vector, _ = statistics_of_chunks(schema, chunks)
        self._warn_of_second_fit(vector)
        self._finish(training, *self._release(training, vector))
        return self

    def _train(self, training: Training, frame: pd.DataFrame, classes: Integers) -> tuple[Model, Guarantee]:
        return self._release(training, statistics_of(training.schema, frame, classes))

    def _release(self, training: Training, vector: Integers) -> tuple[Model, Guarantee]:
        if self.variant != SOUND:
            raise ValueError("SufficientStatisticsNB is no paper's algorithm; its only variant is 'sound'")
        plans = plan_noise(training.schema, self.epsilon, self.relation, self.numerical_share)
        noisy = add_noise(vector, plans, training.accountant, training.coins)
        warn_of_silence(noisy, plans)
        options = Options(float(self.variance_floor), float(self.smoothing))
        return rebuild(training.schema, noisy, plans, options), self._sound_guarantee(self.relation)
