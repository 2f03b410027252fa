"""Several nodes, one model: shares are merged as exact integers, and the model is derived when it is asked for.

Marchioro, Giaretta, Markatos, Girdzijauskas (2022) update means and variances share by share. Keeping the sums instead
makes the result independent of the order, lets a node replace or withdraw its share, and never divides by zero. The
noise of N nodes adds up: for the error of one node that has all the data, epsilon has to be sqrt(N) times as large.

Over the network nodes use :func:`node_statistics` and the aggregator a :class:`FederatedState`. :class:`FederatedNB` is
all of it in one process, for experiments and for tables that are held apart.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pandas as pd

from ldp_aggregator.guarantees import Guarantee
from ldp_aggregator.learning.frames import column_of, without_sparse_columns
from ldp_aggregator.learning.naive_bayes import NaiveBayes
from ldp_aggregator.node_statistics import SUM, Releases, decode_share, encode_share, has_other_rows, parts_of
from ldp_aggregator.trainers import statistics
from ldp_aggregator.trainers.accountant import Accountant, checked_epsilon
from ldp_aggregator.trainers.base import PUBLISHED, SOUND, PrivateNaiveBayes, Training, sound_guarantee
from ldp_aggregator.trainers.model_from_statistics import DEFAULT_VARIANCE_FLOOR, Options, rebuild
from ldp_aggregator.trainers.randomness import STEPS, RandomState, coins_of, discrete_laplace
from ldp_aggregator.trainers.schemas import Schema
from ldp_aggregator.trainers.sensitivities import ADD_REMOVE, checked_relation
from ldp_aggregator.trainers.statistics import GRID, Integers, QueryNoise
from ldp_protocols.campaign import Campaign
from ldp_protocols.document.model import DiscreteLikelihood, GaussianLikelihood, Likelihood, Model
from ldp_protocols.exact import Coins, float_up

DEFAULTS: Final = Options()

_LOCAL: Final = "none: the noise follows each node's own largest value, and is absent where that is zero"


def node_statistics(
    campaign: Campaign,
    frame: pd.DataFrame,
    labels: pd.Series[Any],
    *,
    other_rows: bool = False,
    random_state: RandomState = None,
) -> bytes:
    """A node's noisy share for a federated campaign: its rows get the campaign's epsilon, add-remove, each node.

    Every query of every class gets noise, those without rows too. A node computes one share: a second one from the
    same rows spends epsilon again. A share that was not delivered is sent again as it is. ``other_rows`` is the node's
    word that no row of the table was in a share that it sent before for this campaign; then no row's epsilon is spent
    again.
    """
    schema = Schema.of_campaign(campaign)
    exact = statistics.statistics_of(schema, frame, schema.classes_of(labels, len(frame)))
    noisy = noisy_share(schema, campaign.privacy.epsilon, exact, random_state)
    return encode_share(campaign, noisy, other_rows=other_rows)


def noisy_share(schema: Schema, epsilon: float, exact: Integers, random_state: RandomState = None) -> Integers:
    """Exact statistics with one node's noise."""
    plans = statistics.plan_noise(schema, epsilon, ADD_REMOVE)
    noisy = statistics.add_noise(exact, plans, Accountant(epsilon), coins_of(random_state))
    statistics.warn_of_silence(noisy, plans)
    return noisy


class FederatedState:
    """The shares of one campaign, by node. Any order of the same final shares gives the same bits.

    It knows nothing of storage: keep the shares' bytes by node and build it from them, or replay them one by one.
    Whoever saw a node's shares has seen every one of them, replaced and withdrawn ones too: that is what the guarantee
    counts. ``releases`` says what the nodes have sent so far, the ``shares`` included.
    """

    def __init__(
        self,
        campaign: Campaign,
        shares: Mapping[str, bytes] | None = None,
        releases: Mapping[str, Releases] | None = None,
    ) -> None:
        self.campaign = campaign
        self.schema = Schema.of_campaign(campaign)
        self._totals = [0] * parts_of(self.schema.label, self.schema.features)[-1].stop
        self._shares: dict[str, Integers] = {}
        self._seen: set[tuple[str, bytes]] = set()
        self._releases: dict[str, Releases] = {}
        for node, share in (shares or {}).items():
            self.put(node, share)
        self._releases.update(releases or {})

    @property
    def nodes(self) -> tuple[str, ...]:
        """List the nodes that have a share in the model, sorted."""
        return tuple(sorted(self._shares))

    def put(self, node: str, share: bytes) -> bool:
        """Merge a node's share, in place of its last one; False where it is the same. Raises DocumentError."""
        vector = decode_share(share, self.campaign)
        self._count(node, share)
        before = self._shares.get(node)
        if before is not None and (before == vector).all():
            return False
        if before is not None:
            self.withdraw(node)
        self._shares[node] = vector
        self._add(vector, 1)
        return True

    def withdraw(self, node: str) -> bool:
        """Take a node's share out again; False where it has none."""
        vector = self._shares.pop(node, None)
        if vector is None:
            return False
        self._add(vector, -1)
        return True

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee that holds for every row of every node, after all that was sent."""
        return federated_guarantee(self.campaign.privacy.epsilon, self._releases)

    @property
    def totals(self) -> tuple[int, ...]:
        """The sum of all shares, exact whatever its size."""
        return tuple(self._totals)

    def model(self, options: Options = DEFAULTS, *, groups: int | None = None, salt: bytes = b"") -> NaiveBayes:
        """The model of all shares. With ``groups`` above 1 it is the median of as many models of random nodes; by
        default they are :func:`default_groups`.

        The median holds as long as fewer than half of the groups contain a node that lies. ``salt`` is secret from the
        nodes and decides who is in which group. Raises ValueError where there are fewer nodes than groups.
        """
        if not self._shares:
            raise ValueError("no node has sent its statistics yet")
        number = default_groups(self.campaign, len(self._shares)) if groups is None else groups
        groups_of_nodes = self._groups(number, salt)
        replacements = max(sent.replacements for sent in self._releases.values())
        about = {"nodes": len(self._shares), "groups": len(groups_of_nodes), "replacements": replacements}
        return _train(self.campaign, groups_of_nodes, about, self.guarantee, options)

    def _groups(self, groups: int, salt: bytes) -> list[NodeGroup]:
        if groups == 1:
            return [NodeGroup(self._totals, len(self._shares))]
        if not 1 <= groups <= len(self._shares):
            raise ValueError(f"groups must be from 1 to the {len(self._shares)} nodes there are, not {groups}")
        if not salt and groups < len(self._shares):
            raise ValueError("groups are drawn by a salt that the nodes do not know; give one, and keep it")
        order = sorted(self._shares, key=lambda node: hashlib.sha256(salt + node.encode()).digest())
        found = ([self._shares[node].tolist() for node in order[first::groups]] for first in range(groups))
        return [NodeGroup([sum(column) for column in zip(*of, strict=True)], len(of)) for of in found]

    def _count(self, node: str, share: bytes) -> None:
        """Once for every share; what a node sends first replaces nothing."""
        one = (node, hashlib.sha256(share).digest())
        if one in self._seen:
            return
        self._seen.add(one)
        sent = self._releases.get(node)
        if sent is None:
            self._releases[node] = Releases()
        elif has_other_rows(share):
            self._releases[node] = replace(sent, other_rows=sent.other_rows + 1)
        else:
            self._releases[node] = replace(sent, replacements=sent.replacements + 1)

    def _add(self, vector: Integers, sign: int) -> None:
        for position, value in enumerate(vector.tolist()):
            self._totals[position] += sign * value


MOST_DEFAULT_GROUPS: Final = 9
"""Nodes that are a group each where the document says nothing; more are dealt to so many groups."""


def default_groups(campaign: Campaign, nodes: int) -> int:
    """Groups of a campaign's nodes: those of its document, else as many as there are nodes, from 3 on to
    :data:`MOST_DEFAULT_GROUPS`; a median of two defends against nobody.
    """
    if campaign.federation is not None and campaign.federation.groups is not None:
        return campaign.federation.groups
    return min(nodes, MOST_DEFAULT_GROUPS) if nodes > 2 else 1


@dataclass(frozen=True)
class NodeGroup:
    """The merged statistics of some nodes, and how many times the planned noise is in them."""

    totals: Sequence[int]
    copies: float


def model_of_totals(
    campaign: Campaign, totals: Sequence[int], *, nodes: int, options: Options = DEFAULTS
) -> NaiveBayes:
    """The model of the sum of so many shares, however it came about: equal totals give equal bytes."""
    guarantee = federated_guarantee(campaign.privacy.epsilon, {})
    return _train(
        campaign, [NodeGroup(totals, nodes)], {"nodes": nodes, "groups": 1, "replacements": 0}, guarantee, options
    )


def federated_guarantee(epsilon: float, releases: Mapping[str, Releases]) -> Guarantee:
    """For the rows of each node epsilon times its shares that may be of the same rows: 1 + replacements.

    A share that a node declares to be of other rows adds nothing: a row is in one share of those declared so, or in the
    first, and in as many more as were not.
    """
    nodes = Counter(1 + sent.replacements for sent in releases.values()) or Counter([1])
    losses = [(float_up(shares * checked_epsilon(epsilon)), nodes[shares]) for shares in sorted(nodes)]
    sound = sound_guarantee(losses[-1][0], ADD_REMOVE)
    if len(losses) > 1:
        sound = replace(sound, of_nodes=tuple(losses))
    if not any(sent.other_rows for sent in releases.values()):
        return sound
    return replace(sound, relation=f"{sound.relation} of a node whose shares have other rows where it declared so")


def _train(
    campaign: Campaign, groups: Sequence[NodeGroup], about: Mapping[str, int], guarantee: Guarantee, options: Options
) -> NaiveBayes:
    schema = Schema.of_campaign(campaign)
    model = robust_model(schema, statistics.plan_noise(schema, campaign.privacy.epsilon, ADD_REMOVE), groups, options)
    training = {"campaigns": [campaign.id], **about, "guarantee": guarantee.to_json()}
    return NaiveBayes.from_model(replace(model, training=training), guarantee)


def robust_model(schema: Schema, plans: Sequence[QueryNoise], groups: Sequence[NodeGroup], options: Options) -> Model:
    """The model of one group, or the median of every parameter over the models of several."""
    most = (1 << 63) - 1  # Only a lie can be larger than that, and it stays as large as it can be.
    totals = [np.array([min(max(total, -most), most) for total in group.totals], dtype=np.int64) for group in groups]
    copies = [group.copies for group in groups]
    models = [rebuild(schema, of, plans, options, copies=one) for of, one in zip(totals, copies, strict=True)]
    return models[0] if len(models) == 1 else _median(models)


def _median(models: Sequence[Model]) -> Model:
    first = models[0]
    prior = np.median([model.prior for model in models], axis=0)
    likelihoods: list[Likelihood] = []
    for position, likelihood in enumerate(first.likelihoods):
        alike = [model.likelihoods[position] for model in models]
        if isinstance(likelihood, GaussianLikelihood):
            mean = np.median([one.mean for one in alike if isinstance(one, GaussianLikelihood)], axis=0)
            variance = np.median([one.variance for one in alike if isinstance(one, GaussianLikelihood)], axis=0)
            likelihoods.append(replace(likelihood, mean=tuple(mean.tolist()), variance=tuple(variance.tolist())))
        else:
            table = np.median([one.table for one in alike if isinstance(one, DiscreteLikelihood)], axis=0)
            table = table / table.sum(axis=0)
            likelihoods.append(replace(likelihood, table=tuple(map(tuple, table.tolist()))))
    shares = prior / math.fsum(prior)
    return replace(first, prior=tuple(shares.tolist()), likelihoods=tuple(likelihoods))


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
        plans = statistics.plan_noise(schema, self.epsilon, ADD_REMOVE, self.numerical_share, even=published)
        statistics.book(plans, training.accountant)
        owners, frame = self._deal(len(frame)), without_sparse_columns(frame)
        totals, sizes = [], []
        for group in range(self.groups):
            members = range(group, self.nodes, self.groups)
            rows = np.flatnonzero(owners % self.groups == group)
            mine, its_classes = frame.iloc[rows].reset_index(drop=True), classes[rows]
            exact = statistics.statistics_of(schema, mine, its_classes)
            drawn = (
                discrete_laplace(plan.scale, len(members) * (plan.part.stop - plan.part.start), training.coins)
                for plan in plans
            )
            noise = np.hstack([one.reshape(len(members), -1) for one in drawn])
            if published:
                positions = (owners[rows] - group) // self.groups
                noise = _published_noise(schema, plans, noise, mine, its_classes, positions, training.coins)
            totals.append(exact + noise.sum(axis=0))
            sizes.append(len(members))
        statistics.warn_of_silence(sum(totals), plans, self.nodes)
        groups = [NodeGroup(total.tolist(), size) for total, size in zip(totals, sizes, strict=True)]
        model = robust_model(schema, plans, groups, Options(float(self.variance_floor), float(self.smoothing)))
        if published:
            return model, Guarantee(None, 0.0, _LOCAL, ())
        return model, self._sound_guarantee(ADD_REMOVE)

    def _deal(self, rows: int) -> Integers:
        """Each row's node, drawn by itself: equal shares, as published without a guarantee, would move others' rows."""
        if self.nodes == 1:
            return np.zeros(rows, dtype=np.int64)
        rng = np.random.default_rng(self.random_state if isinstance(self.random_state, int) else None)
        if self.variant == PUBLISHED:
            return rng.permutation(np.arange(rows) % self.nodes)
        return rng.integers(0, self.nodes, size=rows)


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
        number = plan.part.feature.moments if plan.part.feature else None
        if plan.part.kind == SUM and number is not None:
            u = (statistics.grid_values(number, column_of(table, number)) / GRID + 1) / 2
            largest, labelled = np.zeros((nodes, k)), classes >= 0
            np.maximum.at(largest, (owners[labelled], classes[labelled]), u[labelled])
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
