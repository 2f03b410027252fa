"""From noisy statistics to a Naive Bayes model. All of it is post-processing and costs no privacy.

The variance of the noise is public, and is used twice. Class sizes are pooled from every query that carries them, by
inverse variance. And what the noise has made worthless is shrunk: a class's mean and variance towards those of all
classes together, by the known variance of their noise, as the moments of devices are
(:mod:`ldp_aggregator.estimation.moments`).

The sums are centred on the public midpoint, so that one row moves them least.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd

from ldp_aggregator.estimation.moments import VARIANCE_PRIOR, shrink
from ldp_aggregator.guarantees import Guarantee
from ldp_aggregator.learning.naive_bayes import discrete_likelihood
from ldp_aggregator.node_statistics import SQUARE, SUM, TABLE
from ldp_aggregator.trainers import statistics
from ldp_aggregator.trainers.accountant import Accountant
from ldp_aggregator.trainers.base import SOUND, PrivateNaiveBayes, Training
from ldp_aggregator.trainers.randomness import RandomState
from ldp_aggregator.trainers.schemas import Schema
from ldp_aggregator.trainers.sensitivities import ADD_REMOVE
from ldp_aggregator.trainers.statistics import GRID, Array, Integers, QueryNoise
from ldp_protocols.document.model import GaussianLikelihood, Likelihood, Model
from ldp_protocols.features import NumericFeature

DEFAULT_VARIANCE_FLOOR: Final = 1e-4
"""Relative to (high - low)^2."""

_NOISY_FLOOR: Final = 1e-3
_NOISE_PER_FLOOR: Final = 2.0
"""A variance is not believed below so many standard deviations of its noise, up to a floor of :data:`_NOISY_FLOOR`."""

_SURPRISE: Final = 3.0
"""Standard deviations by which a table's total may differ from the class count and still be pooled with it."""


class Options(NamedTuple):
    """The options of rebuilding; every combination is sound."""

    variance_floor: float = DEFAULT_VARIANCE_FLOOR
    smoothing: float = 1.0
    pool: bool = True
    shrink: bool = True


Released = Mapping[str, tuple[Array, Array]]
"""Mean and variance per class of Gaussian features by name, in units in which the bounds are 0 and 1."""


def rebuild(
    schema: Schema,
    vector: Integers,
    plans: Sequence[QueryNoise],
    options: Options,
    *,
    copies: float = 1,
    released: Released | None = None,
) -> Model:
    """The model of statistics with ``copies`` of the planned noise, and of ``released`` moments in place of sums."""
    variances = [plan.variance * copies for plan in plans]
    k = schema.class_count
    pieces = [vector[plan.part.start : plan.part.stop].astype(np.float64) for plan in plans]
    counts, count_variance = _class_counts(plans, pieces, variances, k, options.pool)
    likelihoods: list[Likelihood] = []
    for position, plan in enumerate(plans):
        part = plan.part
        if part.feature is None:
            continue
        number = part.feature.moments
        if number is None:
            table = np.maximum(pieces[position].reshape(-1, k), 0.0) + options.smoothing
            likelihoods.append(discrete_likelihood(part.feature, table))
        elif part.kind == SUM:
            if released is not None:
                likelihoods.append(_likelihood(number, *released[number.name], options.variance_floor))
                continue
            if plans[position + 1].part.kind != SQUARE:
                raise AssertionError("the squares of a feature follow its sums")
            sums, squares = (piece / GRID for piece in pieces[position : position + 2])
            of_sums, of_squares = (variance / GRID**2 for variance in variances[position : position + 2])
            moments = _Moments(counts, count_variance, sums, of_sums, squares, of_squares)
            likelihoods.append(_gaussian(number, moments, options))
    prior = (counts / counts.sum()).tolist()
    return Model(schema.label.name, schema.label.classes, tuple(prior), tuple(likelihoods), schema.projection)


def _class_counts(
    plans: Sequence[QueryNoise], pieces: Sequence[Array], variances: Sequence[float], k: int, pool: bool
) -> tuple[Array, float]:
    """Class sizes, at least 1 each, and the variance of their noise.

    A table whose total surprises is left out: rows without a declared value are in none of its cells.
    """
    counts, variance = pieces[0], variances[0]
    if pool and variance > 0:
        weights, weighted = 1 / variance, counts / variance
        for plan, piece, cell_variance in zip(plans[1:], pieces[1:], variances[1:], strict=True):
            if plan.part.kind == TABLE:
                totals = piece.reshape(-1, k).sum(axis=0)
                noise = cell_variance * (len(piece) // k)
                if (np.abs(totals - counts) <= _SURPRISE * np.sqrt(noise + variance)).all():
                    weights, weighted = weights + 1 / noise, weighted + totals / noise
        counts, variance = weighted / weights, 1 / weights
    return np.maximum(counts, 1.0), variance


class _Moments(NamedTuple):
    """Noisy statistics of one feature per class, in units of t, with the variances of their noise."""

    counts: Array
    count_variance: float
    sums: Array
    sum_variance: float
    squares: Array
    square_variance: float


def _gaussian(feature: NumericFeature, m: _Moments, options: Options) -> GaussianLikelihood:
    mean = np.clip(m.sums / m.counts, -1.0, 1.0)
    second = np.clip(1.0 - m.squares / m.counts, 0.0, 1.0)
    variance = second - mean**2
    if options.shrink:
        rows, least = m.counts.sum(), 4 * options.variance_floor
        mean_noise = (m.sum_variance + mean**2 * m.count_variance) / m.counts**2
        second_noise = (m.square_variance + (1.0 - second) ** 2 * m.count_variance) / m.counts**2
        noise = second_noise + 4 * mean**2 * mean_noise
        common = float(np.clip(m.sums.sum() / rows, -1.0, 1.0))
        total = float(np.clip(1.0 - m.squares.sum() / rows, 0.0, 1.0))
        mean = shrink(mean, mean_noise, common, max(total - common**2, least))
        within = max(total - float(m.counts @ mean**2) / rows, least)
        variance = shrink(variance, noise, within, (VARIANCE_PRIOR * within) ** 2)
        variance = np.maximum(variance, np.minimum(_NOISE_PER_FLOOR * np.sqrt(noise), 4 * _NOISY_FLOOR))
    return _likelihood(feature, (mean + 1) / 2, variance / 4, options.variance_floor)


def _likelihood(feature: NumericFeature, mean: Array, variance: Array, floor: float) -> GaussianLikelihood:
    """The likelihood in the feature's own units: a mean within the bounds, a variance that they allow."""
    low, span = float(feature.low), float(feature.high) - float(feature.low)
    mean = np.clip(mean, 0.0, 1.0)
    variance = np.clip(variance, floor, np.maximum(mean * (1 - mean), floor))
    return GaussianLikelihood(feature, tuple((low + span * mean).tolist()), tuple((span**2 * variance).tolist()))


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

    Examples
    --------
    >>> import pandas as pd
    >>> schema = {
    ...     "label": {"name": "ill", "classes": ["no", "yes"]},
    ...     "features": [{"name": "age", "kind": "continuous", "low": 0, "high": 100, "missing": False}],
    ... }
    >>> table = pd.DataFrame({"age": [30] * 5000 + [70] * 5000})
    >>> model = SufficientStatisticsNB(schema, epsilon=1.0).fit(table, ["no"] * 5000 + ["yes"] * 5000)
    >>> model.predict(pd.DataFrame({"age": [25, 75]})).tolist()
    ['no', 'yes']
    >>> model.guarantee_.epsilon
    1.0
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
        vector, _ = statistics.statistics_of_chunks(schema, chunks)
        self._finish(training, *self._release(training, vector))
        return self

    def _train(self, training: Training, frame: pd.DataFrame, classes: Integers) -> tuple[Model, Guarantee]:
        return self._release(training, statistics.statistics_of(training.schema, frame, classes))

    def _release(self, training: Training, vector: Integers) -> tuple[Model, Guarantee]:
        if self.variant != SOUND:
            raise ValueError("SufficientStatisticsNB is no paper's algorithm; its only variant is 'sound'")
        plans = statistics.plan_noise(training.schema, self.epsilon, self.relation, self.numerical_share)
        noisy = statistics.add_noise(vector, plans, training.accountant, training.coins)
        statistics.warn_of_silence(noisy, plans)
        options = Options(float(self.variance_floor), float(self.smoothing))
        return rebuild(training.schema, noisy, plans, options), self._sound_guarantee(self.relation)
