"""k-means from noisy counts and sums (Blum, Dwork, McSherry, Nissim 2005; the split of Su et al. 2016).

The number of iterations is fixed, every cluster gets noise in every iteration, empty ones too, and nothing exact is
kept: neither labels nor inertia.

The start is made from noisy counts of a coarse division of the box: of the rows nearest to each of some public points,
the first of Sobol's sequence. The points with those counts as weights are clustered, from several starts, of which the
best is taken: that sees nothing but the counts, and spends no more. It takes an eighth of epsilon; the iterations share
the rest.

Points and centres are integers on the grid of the statistics, and so are their distances: whose a row is follows from
that row and the centres alone. Floating-point products would depend, in their last bits, on how many rows there are.

Kept, and written as JSON, are public features, centres on the grid, promise and spending.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np
import pandas as pd
from scipy.stats.qmc import Sobol
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.cluster import KMeans
from sklearn.utils.validation import check_is_fitted

from ldp_aggregator.guarantees import Guarantee
from ldp_aggregator.learning.frames import column_of
from ldp_aggregator.trainers.accountant import Accountant, FitAccountant
from ldp_aggregator.trainers.base import sound_guarantee
from ldp_aggregator.trainers.randomness import RandomState, coins_of, discrete_laplace, warn_of_second_fit
from ldp_aggregator.trainers.schemas import Schema
from ldp_aggregator.trainers.sensitivities import ADD_REMOVE
from ldp_aggregator.trainers.statistics import GRID, Integers, grid_values
from ldp_protocols.errors import DocumentError
from ldp_protocols.exact import Coins
from ldp_protocols.features import NumericFeature, read_feature
from ldp_protocols.fields import Fields, describe, parse_json

VERSION: Final = 1
KIND: Final = "k-means"
_MOST: Final = 1000
"""Features, as of a schema; and clusters, so that a document has a bound."""


@dataclass(frozen=True)
class Clusters:
    features: tuple[NumericFeature, ...]
    centres: Integers
    """In steps of 1 / GRID of half a range, shape (clusters, features)."""
    guarantee: Guarantee
    budget: Mapping[str, float]


def read_clusters(text: bytes | str) -> Clusters:
    """The inverse of :meth:`PrivateKMeans.to_json`. Raises DocumentError, which names the field."""
    fields = Fields(parse_json(text, _refuse), "", _refuse)
    fields.integer("version", least=VERSION, most=VERSION)
    fields.choice("kind", (KIND,))
    fields.integer("grid", least=GRID, most=GRID)
    values = fields.sequence("features", least=1, most=_MOST)
    features = tuple(_feature(value, f"features[{position}]") for position, value in enumerate(values))
    rows = fields.sequence("centres", least=1, most=_MOST)
    centres = [_centre(row, f"centres[{position}]", len(features)) for position, row in enumerate(rows)]
    guarantee = _guarantee(fields.raw("guarantee"))
    budget = Fields(fields.raw("budget"), "budget", _refuse)
    spent = {name: float(budget.number(name)) for name in fields.raw("budget")}
    fields.finish()
    return Clusters(features, np.array(centres, dtype=np.int64), guarantee, spent)


def _refuse(field: str, problem: str) -> DocumentError:
    return DocumentError("invalid-model", f"{field}: {problem}")


def _feature(value: Any, place: str) -> NumericFeature:
    feature = read_feature(value, place, 1, _refuse).moments
    if feature is None:
        raise _refuse(place, "must be a number without bins")
    return feature


def _centre(row: Any, place: str, features: int) -> list[int]:
    whole = isinstance(row, list) and all(type(one) is int and abs(one) <= GRID for one in row)
    if not whole or len(row) != features:
        raise _refuse(place, f"must be {features} whole numbers from {-GRID} to {GRID}, not {describe(row)}")
    return list(row)


def _guarantee(value: Any) -> Guarantee:
    fields = Fields(value, "guarantee", _refuse)
    epsilon = float(fields.number("epsilon")) if fields.has("epsilon") else fields.raw("epsilon")
    public = tuple(fields.sequence("public", least=0, most=_MOST))
    guarantee = Guarantee(epsilon, float(fields.number("delta")), fields.text("relation"), public)
    fields.finish()
    return guarantee


EVEN: Final = "even"
OPTIMAL: Final = "optimal"
_RHO: Final = 0.225
"""Su et al. 2016: the typical radius of a cluster, relative to the bounds."""

_BLOCK: Final = 1 << 13
"""Rows whose distances are taken at once: they stay in the processor's cache."""

_START_SHARE: Final = Fraction(1, 8)
"""The part of epsilon for the counts of the start."""

_POINTS: Final = 128
"""Public points of the start, at least; there are eight for each cluster."""


class PrivateKMeans(ClusterMixin, BaseEstimator):
    """Lloyd's algorithm with noise, on the features of a schema that are numbers without bins.

    Parameters
    ----------
    schema
        A draft (or campaign document); those of its features and their bounds are used, and public.
    n_clusters, iterations
        Both fixed beforehand. The start spends epsilon / 8, each of T iterations e = 7/8 epsilon / T. More iterations
        have more noise each; above two they help with a large epsilon only.
    split
        ``even`` gives counts and sums half of e each (counts Lap(2 / e), sums Lap(2 d / e) for values in [-1, 1]);
        ``optimal`` gives counts and each dimension cbrt(4 d rho^2) : 1.
    epsilon, accountant, random_state
        As everywhere; the relation is add-remove.

    Attributes
    ----------
    cluster_centers_
        In the features' own units, shape (n_clusters, d).
    guarantee_, budget_
        Guarantee of the fit, and the epsilon that each query spent.

    Examples
    --------
    >>> import pandas as pd
    >>> schema = {
    ...     "label": {"name": "ill", "classes": ["no", "yes"]},
    ...     "features": [{"name": "age", "kind": "continuous", "low": 0, "high": 100, "missing": False}],
    ... }
    >>> table = pd.DataFrame({"age": [30] * 5000 + [70] * 5000})
    >>> fitted = PrivateKMeans(schema, n_clusters=2, epsilon=10.0).fit(table)
    >>> sorted(fitted.cluster_centers_.round().ravel().tolist())
    [30.0, 70.0]
    """

    def __init__(
        self,
        schema: Mapping[str, Any] | None = None,
        *,
        n_clusters: int = 3,
        epsilon: float = 1.0,
        iterations: int = 2,
        split: str = EVEN,
        accountant: Accountant | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.schema = schema
        self.n_clusters = n_clusters
        self.epsilon = epsilon
        self.iterations = iterations
        self.split = split
        self.accountant = accountant
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
            raise ValueError("the schema has no number without bins; k-means needs at least one")
        accountant = FitAccountant(self.epsilon, self.accountant, type(self).__name__, ADD_REMOVE)
        coins = coins_of(self.random_state)
        points = _points(schema.gaussians, schema.prepare(X))
        warn_of_second_fit(X, accountant=self.accountant, random_state=self.random_state)
        start = accountant.spend("start: counts", accountant.total * _START_SHARE)
        counts, sums = self._shares(accountant.total - start, len(points))
        for iteration in range(1, self.iterations + 1):
            accountant.spend(f"iteration {iteration}: counts", counts)
            accountant.spend(f"iteration {iteration}: sums", sums)
        centres = _start(points, self.n_clusters, start, coins)
        for _ in range(self.iterations):
            centres = _improved(points, centres, counts, sums, coins)
        self._adopt(
            Clusters(schema.gaussians, centres, sound_guarantee(self.epsilon, ADD_REMOVE), accountant.to_budget())
        )
        return self

    @classmethod
    def from_json(cls, text: bytes | str) -> PrivateKMeans:
        """The inverse of :meth:`to_json`: it predicts as before; a fit needs a schema. Raises DocumentError."""
        clusters = read_clusters(text)
        estimator = cls(n_clusters=len(clusters.centres))
        estimator._adopt(clusters)
        return estimator

    def to_json(self) -> str:
        """Features with their bounds, centres in steps of the grid, and what the fit promises and spent."""
        check_is_fitted(self, "cluster_centers_")
        document = {
            "version": VERSION,
            "kind": KIND,
            "features": [feature.to_json() for feature in self._features],
            "grid": GRID,
            "centres": self._steps.tolist(),
            "guarantee": self.guarantee_.to_json(),
            "budget": self.budget_,
        }
        return json.dumps(document, ensure_ascii=False, separators=(",", ":"))

    def _adopt(self, clusters: Clusters) -> None:
        self._features, self._steps = clusters.features, clusters.centres
        low, high = np.array([(float(feature.low), float(feature.high)) for feature in clusters.features]).T
        self.cluster_centers_ = low + (clusters.centres + GRID) / (2 * GRID) * (high - low)
        self.n_features_in_ = len(clusters.features)
        self.guarantee_: Guarantee = clusters.guarantee
        self.budget_ = dict(clusters.budget)

    def predict(self, X: pd.DataFrame) -> Integers:
        """The nearest centre of every row, of rows that the caller may look at."""
        check_is_fitted(self, "cluster_centers_")
        return _nearest(_points(self._features, X), self._steps)

    def fit_predict(self, X: pd.DataFrame, y: object = None, **kwargs: Any) -> Integers:
        """Refused: the labels of the rows that were learned from are exact facts about them."""
        raise NotImplementedError("labels of the training rows are not private; fit, and predict for rows of your own")

    def _shares(self, total: Fraction, dimensions: int) -> tuple[Fraction, Fraction]:
        """Epsilon of one iteration's counts and of its sums, of the total of all iterations."""
        each = total / self.iterations
        if self.split == EVEN:
            return each / 2, each / 2
        ratio = Fraction((4 * dimensions * _RHO**2) ** (1 / 3))
        counts = each * ratio / (ratio + dimensions)
        return counts, each - counts


def _points(features: Sequence[NumericFeature], table: pd.DataFrame) -> Integers:
    """Rows in [-1, 1]^d, in steps of 1/:data:`GRID`; shape (d, rows), so that each feature is contiguous."""
    return np.stack([grid_values(feature, column_of(table, feature)).astype(np.int64) for feature in features])


def _start(points: Integers, clusters: int, epsilon: Fraction, coins: Coins) -> Integers:
    """Centres of the public points, weighted by noisy counts of the rows nearest to each; a row moves one by 1."""
    public = _public_points(clusters, len(points))
    counts = np.bincount(_nearest(points, public), minlength=len(public))
    noisy = counts + discrete_laplace(1 / epsilon, len(public), coins)
    # A count within its noise says little, and there are many; some weight is left for clusters that nobody is in.
    weights = np.maximum(noisy - float(1 / epsilon), 1e-3)
    clustering = KMeans(clusters, n_init=10, random_state=coins.below(1 << 32))
    found = clustering.fit(public / GRID, sample_weight=weights).cluster_centers_
    centres: Integers = np.clip(np.rint(found * GRID), -GRID, GRID).astype(np.int64)
    return centres


def _public_points(clusters: int, dimensions: int) -> Integers:
    """Points that fill the box evenly, whatever the data are; shape (points, d)."""
    exponent = (max(_POINTS, 8 * clusters) - 1).bit_length()
    filling = Sobol(dimensions, scramble=False).random_base2(exponent)
    public: Integers = ((2 * filling - 1) * GRID).astype(np.int64) + (GRID >> exponent)
    return public


def _improved(
    points: Integers, centres: Integers, count_epsilon: Fraction, sum_epsilon: Fraction, coins: Coins
) -> Integers:
    """One iteration: noisy sums over noisy counts. A row moves one count by 1 and d sums by at most 1 each."""
    clusters, dimensions = centres.shape
    owners = _nearest(points, centres)
    counts = np.bincount(owners, minlength=clusters) + discrete_laplace(1 / count_epsilon, clusters, coins)
    noise = discrete_laplace(dimensions * GRID / sum_epsilon, clusters * dimensions, coins)
    # Exact: doubles hold the sums of 2^33 rows.
    exact = np.stack([np.bincount(owners, weights=column, minlength=clusters) for column in points], axis=1)
    sums = exact.astype(np.int64) + noise.reshape(clusters, dimensions)
    rows = np.maximum(counts, 1)[:, None]
    improved: Integers = np.clip((2 * sums + rows) // (2 * rows), -GRID, GRID)
    return np.where(counts[:, None] < 1, centres, improved)


def _nearest(points: Integers, centres: Integers) -> Integers:
    """The nearest centre of each point, of equals the first. |c
    ^2 - 2 x c is exact: below 2^52 up to 1000 features.
    """
    constants = (centres**2).sum(axis=1).tolist()
    factors = (-2 * centres).tolist()
    nearest: Integers = np.zeros(points.shape[1], dtype=np.int64)
    for start in range(0, points.shape[1], _BLOCK):
        block, owners = points[:, start : start + _BLOCK], nearest[start : start + _BLOCK]
        least = np.full(block.shape[1], np.iinfo(np.int64).max)
        distances, product = np.empty_like(least), np.empty_like(least)
        for centre, (constant, of_centre) in enumerate(zip(constants, factors, strict=True)):
            distances.fill(constant)
            for column, factor in zip(block, of_centre, strict=True):
                distances += np.multiply(column, factor, out=product)
            owners[distances < least] = centre
            np.minimum(least, distances, out=least)
    return nearest
