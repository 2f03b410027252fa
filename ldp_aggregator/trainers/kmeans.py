"""k-means from noisy counts and sums (Blum, Dwork, McSherry, Nissim 2005; the split of Su et al. 2016).

The number of iterations is fixed, the start does not look at the data, every cluster gets noise in every iteration,
empty ones too, and nothing exact is kept: neither labels nor inertia.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import check_is_fitted

from ldp_aggregator.learning.frames import column_of
from ldp_aggregator.learning.guarantee import Guarantee
from ldp_aggregator.trainers.base import sound_guarantee
from ldp_aggregator.trainers.noise.accountant import Accountant
from ldp_aggregator.trainers.noise.integers import discrete_laplace
from ldp_aggregator.trainers.noise.randomness import RandomState, coins_of
from ldp_aggregator.trainers.noise.sensitivities import ADD_REMOVE
from ldp_aggregator.trainers.schemas import Schema
from ldp_aggregator.trainers.statistics import GRID, grid_values
from protocols.document.schema import ContinuousFeature
from protocols.exact.coins import Coins

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

EVEN: Final = "even"
OPTIMAL: Final = "optimal"
_RHO: Final = 0.225
"""Su et al. 2016: the typical radius of a cluster, relative to the bounds."""

_STARTS: Final = 64
"""Candidates from which the start takes the one farthest from the points before."""


class PrivateKMeans(ClusterMixin, BaseEstimator):
    """Lloyd's algorithm with noise, on the continuous features of a schema.

    Parameters
    ----------
    schema
        A draft (or campaign document); its continuous features and their bounds are used, and public.
    n_clusters, iterations
        Both fixed beforehand; each iteration spends epsilon / iterations.
    split
        ``even`` gives counts and sums half of epsilon each (counts Lap(2 T / epsilon), sums Lap(2 d T / epsilon) for
        values in [-1, 1]); ``optimal`` gives counts and each dimension cbrt(4 d rho^2) : 1.
    epsilon, random_state
        As everywhere; the relation is add-remove.

    Attributes
    ----------
    cluster_centers_
        In the features' own units, shape (n_clusters, d).
    guarantee_, budget_
        What the fit promises, and what it spent on what.
    """

    def __init__(
        self,
        schema: Mapping[str, Any] | None = None,
        *,
        n_clusters: int = 3,
        epsilon: float = 1.0,
        iterations: int = 5,
        split: str = EVEN,
        random_state: RandomState = None,
    ) -> None:
        self.schema = schema
        self.n_clusters = n_clusters
        self.epsilon = epsilon
        self.iterations = iterations
        self.split = split
        self.random_state = random_state

    def fit(self, X: pd.DataFrame, y: object = None) -> PrivateKMeans:
        """Find the centres; ``y`` is ignored."""
        if self.schema is None:
            raise ValueError("PrivateKMeans needs a schema: bounds read off the table would not be private")
        if self.split not in (EVEN, OPTIMAL):
            raise ValueError(f"split must be {EVEN} or {OPTIMAL}, not {self.split!r}")
        if self.n_clusters < 1 or self.iterations < 1:
            raise ValueError("n_clusters and iterations must be at least 1")
        schema = Schema.read(self.schema)
        if not schema.gaussians:
            raise ValueError("the schema has no continuous feature without bins; k-means needs at least one")
        accountant, coins = Accountant(self.epsilon), coins_of(self.random_state)
        points = _points(schema, X)
        centres = _start(self.n_clusters, points.shape[1], coins)
        shares = self._shares(accountant.total, points.shape[1])
        for iteration in range(1, self.iterations + 1):
            count_epsilon = accountant.spend(f"iteration {iteration}: counts", shares[0])
            sum_epsilon = accountant.spend(f"iteration {iteration}: sums", shares[1])
            centres = _improved(points, centres, count_epsilon, sum_epsilon, coins)
        self._features = schema.gaussians
        self._scaled_centers = centres
        low, high = (np.array([float(bound) for bound in bounds]) for bounds in _bounds(schema.gaussians))
        self.cluster_centers_ = low + (centres + 1) / 2 * (high - low)
        self.n_features_in_ = len(schema.gaussians)
        self.guarantee_: Guarantee = sound_guarantee(self.epsilon, ADD_REMOVE)
        self.budget_ = accountant.to_budget()
        return self

    def predict(self, X: pd.DataFrame) -> Integers:
        """The nearest centre of every row, of rows that the caller may look at."""
        check_is_fitted(self, "cluster_centers_")
        points = np.column_stack([grid_values(f, column_of(X, f)) / GRID for f in self._features])
        return _nearest(points, self._scaled_centers)

    def fit_predict(self, X: pd.DataFrame, y: object = None, **kwargs: Any) -> Integers:
        """Refused: the labels of the rows that were learned from are exact facts about them."""
        raise NotImplementedError("labels of the training rows are not private; fit, and predict for rows of your own")

    def _shares(self, total: Fraction, dimensions: int) -> tuple[Fraction, Fraction]:
        """Epsilon of one iteration's counts and of its sums."""
        each = total / self.iterations
        if self.split == EVEN:
            return each / 2, each / 2
        ratio = Fraction((4 * dimensions * _RHO**2) ** (1 / 3))
        counts = each * ratio / (ratio + dimensions)
        return counts, each - counts


def _points(schema: Schema, X: pd.DataFrame) -> Array:
    """Rows in [-1, 1]^d, on the grid."""
    table = schema.prepare(X)
    return np.column_stack([grid_values(f, column_of(table, f)) / GRID for f in schema.gaussians])


def _bounds(features: Sequence[ContinuousFeature]) -> tuple[list[float], list[float]]:
    return [feature.low for feature in features], [feature.high for feature in features]


def _start(clusters: int, dimensions: int, coins: Coins) -> Array:
    """Points spread over the box without a look at the data: each is the farthest of some random candidates."""

    def draw(count: int) -> Array:
        cells = [[coins.below(2 * GRID + 1) for _ in range(dimensions)] for _ in range(count)]
        return np.array(cells, dtype=np.float64) / GRID - 1

    centres = draw(1) / 2
    while len(centres) < clusters:
        candidates = draw(_STARTS) / 2
        gaps = np.linalg.norm(candidates[:, None] - centres[None], axis=2).min(axis=1)
        centres = np.vstack([centres, candidates[gaps.argmax()]])
    return centres


def _improved(points: Array, centres: Array, count_epsilon: Fraction, sum_epsilon: Fraction, coins: Coins) -> Array:
    """One iteration: noisy sums over noisy counts. A row moves one count by 1 and d sums by at most 1 each."""
    clusters, dimensions = centres.shape
    owners = _nearest(points, centres)
    counts = np.bincount(owners, minlength=clusters) + discrete_laplace(1 / count_epsilon, clusters, coins)
    sums = np.column_stack(
        [np.bincount(owners, weights=points[:, i] * GRID, minlength=clusters) for i in range(dimensions)]
    )
    noise = discrete_laplace(dimensions * GRID / sum_epsilon, clusters * dimensions, coins)
    noisy = (np.rint(sums) + noise.reshape(clusters, dimensions)) / GRID
    improved: Array = np.clip(noisy / np.maximum(counts, 1)[:, None], -1.0, 1.0)
    improved[counts < 1] = centres[counts < 1]
    return improved


def _nearest(points: Array, centres: Array) -> Integers:
    """|x - c|^2 without |x|^2, which is the same for every c."""
    distances = -2 * points @ centres.T + (centres**2).sum(axis=1)
    nearest: Integers = distances.argmin(axis=1).astype(np.int64)
    return nearest
