"""Federated Naive Bayes in one process: the rows are spread over nodes, each adds its own noise.

For experiments and for tables that are held apart; over the network, nodes use
:func:`ldp_aggregator.trainers.federation.state.node_statistics` and the aggregator a ``FederatedState``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ldp_aggregator.learning.frames import column_of, without_sparse_columns
from ldp_aggregator.learning.published import Guarantee
from ldp_aggregator.node_statistics import SUM
from ldp_aggregator.trainers.base import PUBLISHED, SOUND, PrivateNaiveBayes, Training
from ldp_aggregator.trainers.federation.state import NodeGroup, robust_model
from ldp_aggregator.trainers.model_from_statistics import DEFAULT_VARIANCE_FLOOR, Options
from ldp_aggregator.trainers.noise.accountant import Accountant
from ldp_aggregator.trainers.noise.integers import STEPS, discrete_laplace
from ldp_aggregator.trainers.noise.randomness import RandomState
from ldp_aggregator.trainers.noise.sensitivities import ADD_REMOVE, checked_relation
from ldp_aggregator.trainers.schemas import Schema
from ldp_aggregator.trainers.statistics import GRID, QueryNoise, book, grid_values, plan_noise, statistics_of
from ldp_aggregator.trainers.unseen_features import warn_of_silence
from protocols.document.schema import ContinuousFeature
from protocols.exact import Coins
from protocols.model import Model

Integers = NDArray[np.int64]

_LOCAL: Final = "none: the noise follows each node's own largest value, and is absent where that is zero"


class FederatedNB(PrivateNaiveBayes):
    """Naive Bayes from the merged noisy statistics of ``nodes`` nodes; ``epsilon`` protects the rows of each.

    The parameters that are not listed and the attributes are those of
    :class:`~ldp_aggregator.trainers.SufficientStatisticsNB`, which is what one node gives; ``relation`` is
    ``add-remove``.

    Parameters
    ----------
    nodes
        Number of nodes; each row goes to one of them at random, whatever the others do.
    groups
        Above 1, the median over the models of so many groups of nodes.
    variant
        ``sound``: public bounds, every class gets noise. ``published`` (Marchioro et al. 2022): the noise follows the
        largest value of the node itself, which guarantees nothing.
    """

    def __init__(
        self,
        schema: Mapping[str, Any] | None = None,
        *,
        nodes: int = 1,
        groups: int = 1,
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
        self.nodes = nodes
        self.groups = groups

    def _train(self, training: Training, frame: pd.DataFrame, classes: Integers) -> tuple[Model, Guarantee]:
        if checked_relation(self.relation) != ADD_REMOVE:
            raise ValueError(f"nodes keep their class counts private; relation must be {ADD_REMOVE}")
        if not 1 <= self.groups <= self.nodes:
            raise ValueError(f"nodes and groups must be at least 1, groups at most nodes; got {self.nodes} nodes")
        schema = training.schema
        published = self.variant == PUBLISHED
        plans = plan_noise(schema, self.epsilon, ADD_REMOVE, self.numerical_share, even=published)
        book(plans, training.accountant)
        owners, frame = self._deal(len(frame)), without_sparse_columns(frame)
        totals, sizes = [], []
        for group in range(self.groups):
            members = range(group, self.nodes, self.groups)
            rows = np.flatnonzero(owners % self.groups == group)
            mine, its_classes = frame.iloc[rows].reset_index(drop=True), classes[rows]
            exact = statistics_of(schema, mine, its_classes)
            noise = _sound_noise(plans, len(members), training.coins)
            if published:
                positions = (owners[rows] - group) // self.groups
                noise = _published_noise(schema, plans, noise, mine, its_classes, positions, training.coins)
            totals.append(exact + noise.sum(axis=0))
            sizes.append(len(members))
        warn_of_silence(sum(totals), plans, self.nodes)
        groups = [NodeGroup(total.tolist(), size) for total, size in zip(totals, sizes, strict=True)]
        model = robust_model(schema, plans, groups, Options(float(self.variance_floor), float(self.smoothing)))
        if published:
            return model, Guarantee(None, 0.0, _LOCAL, ())
        return model, self._sound_guarantee(ADD_REMOVE)

    def _deal(self, rows: int) -> Integers:
        """The node of every row, at random and each by itself: equal shares would move rows because one is added.

        As published, nodes hold equal shares, and there is no guarantee that this could break.
        """
        if self.nodes == 1:
            return np.zeros(rows, dtype=np.int64)
        rng = np.random.default_rng(self.random_state if isinstance(self.random_state, int) else None)
        if self.variant == PUBLISHED:
            dealt: Integers = rng.permutation(np.arange(rows) % self.nodes)
            return dealt
        return rng.integers(0, self.nodes, size=rows)


def _sound_noise(plans: Sequence[QueryNoise], nodes: int, coins: Coins) -> Integers:
    """The noise that each node adds, shape (nodes, length of the vector)."""
    drawn = [
        discrete_laplace(plan.scale, nodes * (plan.part.stop - plan.part.start), coins).reshape(nodes, -1)
        for plan in plans
    ]
    return np.hstack(drawn)


def _published_noise(
    schema: Schema,
    plans: Sequence[QueryNoise],
    noise: Integers,
    frame: pd.DataFrame,
    classes: Integers,
    owners: Integers,
    coins: Coins,
) -> Integers:
    """The noise of the moments as published: of sums of u and u^2, u in [0, 1], by a node's largest u of the class."""
    table, k, nodes = schema.prepare(frame), schema.class_count, len(noise)
    counts = noise[:, :k].astype(np.float64)
    result = noise.copy()
    for plan in plans:
        if plan.part.kind == SUM and isinstance(plan.part.feature, ContinuousFeature):
            u = (grid_values(plan.part.feature, column_of(table, plan.part.feature)) / GRID + 1) / 2
            largest, known = np.zeros((nodes, k)), classes >= 0
            np.maximum.at(largest, (owners[known], classes[known]), u[known])
            unit = 2 * STEPS / plan.epsilon  # its epsilon is for two queries here
            sums, squares = (
                reach * discrete_laplace(unit, nodes * k, coins).reshape(nodes, k) / STEPS
                for reach in (largest, largest**2)
            )
            start, middle, stop = plan.part.start, plan.part.stop, plan.part.stop + k
            # sum of t = 2 sum of u - n, and sum of 1 - t^2 = 4 sum of u - 4 sum of u^2
            result[:, start:middle] = np.rint(GRID * (2 * sums - counts))
            result[:, middle:stop] = np.rint(GRID * 4 * (sums - squares))
    return result
