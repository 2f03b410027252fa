"""Noise that many nodes add up together: the sum has the law that epsilon takes, a single share does not.

Under secure aggregation (Bonawitz et al. 2017) the server sees the sum of the nodes' shares and nothing else. Then each
node needs to add a part of the noise only, and the model of N nodes has the noise of one, not N times as much. The law:
with a = exp(-1 / t), a geometric variable, P(G = k) = (1 - a) a^k, has the generating function (1 - a) / (1 - a z); its
h-th root is that of the negative binomial (Polya) law of shape 1 / h. So the sum of h independent ones is geometric,
and the difference of two such sums is discrete Laplace of scale t, exactly (Balle, Bell, Gascon, Nissim 2020). Noise of
further nodes is independent of it and takes nothing away.

A Polya variable is drawn in integers only: draw G, geometric; take a uniformly random permutation of G things; keep
each of its cycles with probability 1 / h; K is the number of things in the cycles kept. Proof, by the exponential
formula (a permutation is a set of cycles, and there are (k - 1)! cycles on k things)::

    E[z^K] = (1 - a) sum_n a^n / n! sum_permutations prod_cycles (z^length / h + 1 - 1 / h)
           = (1 - a) exp( sum_k a^k / k (z^k / h + 1 - 1 / h) )
           = (1 - a) (1 - a z)^(-1/h) (1 - a)^(-(1 - 1/h))  =  ((1 - a) / (1 - a z))^(1/h).

And the cycle of the first of n things has a length that is uniform on 1, ..., n, and leaves a uniformly random
permutation of the others: some ln G uniform integers suffice, however large G is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ldp_aggregator.counting.shares import DistributedShare, encode_distributed
from ldp_aggregator.learning.guarantee import Guarantee
from ldp_aggregator.learning.naive_bayes import NaiveBayes
from ldp_aggregator.trainers.base import sound_guarantee
from ldp_aggregator.trainers.federation.state import DEFAULTS, Group, robust_model
from ldp_aggregator.trainers.noise.integers import below, geometric
from ldp_aggregator.trainers.noise.randomness import RandomState, coins_of
from ldp_aggregator.trainers.noise.sensitivities import ADD_REMOVE
from ldp_aggregator.trainers.rebuilding import Options
from ldp_aggregator.trainers.schemas import Schema
from ldp_aggregator.trainers.statistics import plan_noise, statistics_of
from protocols.document.campaign import Campaign
from protocols.exact.coins import Coins

Integers = NDArray[np.int64]


def distributed_statistics(
    campaign: Campaign,
    frame: pd.DataFrame,
    labels: pd.Series[Any],
    *,
    nodes: int,
    honest: int | None = None,
    random_state: RandomState = None,
) -> bytes:
    """A node's share for secure aggregation among ``nodes`` nodes, of which ``honest`` (None: all) suffice.

    The campaign's epsilon protects the rows of honest nodes, add-remove, if the share is seen by nobody but in sums
    that contain those of at least ``honest`` honest nodes, this one included. A share alone protects far less.
    """
    enough = checked_honest(nodes, nodes if honest is None else honest)
    schema = Schema.of_campaign(campaign)
    vector = statistics_of(schema, frame, schema.classes_of(labels, len(frame)))
    coins = coins_of(random_state)
    for plan in plan_noise(schema, campaign.privacy.epsilon, ADD_REMOVE):
        place = slice(plan.part.start, plan.part.stop)
        vector[place] += noise_share(plan.scale, enough, plan.part.stop - plan.part.start, coins)
    return encode_distributed(campaign, DistributedShare(vector, nodes, enough))


def noise_share(scale: Fraction, honest: int, count: int, coins: Coins) -> Integers:
    """``count`` independent draws; the sum of ``honest`` of them is discrete Laplace of scale ``drawable(scale)``."""
    plus, minus = (_thinned(geometric(scale, count, coins), honest, coins) for _ in range(2))
    return plus - minus


def model_of_sum(
    campaign: Campaign, total: Sequence[int], *, shares: int, honest: int, options: Options = DEFAULTS
) -> NaiveBayes:
    """The model of what secure aggregation gave: the sum of so many shares, each of noise for ``honest`` honest nodes.

    ``total`` has signed numbers: where the aggregation is modulo 2^64, values from 2^63 on mean negative ones. Raises
    ValueError for a sum of fewer shares than protect epsilon: nodes that dropped out took their noise along.
    """
    schema, epsilon = Schema.of_campaign(campaign), campaign.privacy.epsilon
    plans = plan_noise(schema, epsilon, ADD_REMOVE)
    if len(total) != plans[-1].part.stop:
        raise ValueError(f"a sum for this campaign has {plans[-1].part.stop} integers, not {len(total)}")
    if not 1 <= honest <= shares:
        raise ValueError(
            f"a sum of {shares} shares protects less than epsilon: it takes those of {honest} honest nodes"
        )
    model = robust_model(schema, plans, [Group(total, shares / honest)], options)
    guarantee = distributed_guarantee(epsilon, honest)
    training = {"campaigns": [campaign.id], "nodes": shares, "honest": honest, "guarantee": guarantee.to_json()}
    return NaiveBayes.from_model(replace(model, training=training), guarantee)


def distributed_guarantee(epsilon: float, honest: int) -> Guarantee:
    """What the sum promises, and under which trust."""
    sound = sound_guarantee(epsilon, ADD_REMOVE)
    return replace(
        sound,
        relation=f"{sound.relation} of an honest node, whose share nobody sees but in sums with the shares of at least "
        f"{honest} honest nodes",
    )


def checked_honest(nodes: int, honest: int) -> int:
    """``honest``, or a ValueError."""
    if not 1 <= honest <= nodes:
        raise ValueError(f"honest must be from 1 to the number of nodes, not {honest} of {nodes}")
    return honest


def _thinned(totals: Integers, honest: int, coins: Coins) -> Integers:
    """Of each total, what is in the cycles kept; see above."""
    kept: Integers = np.zeros_like(totals)
    rest = totals.copy()
    running = np.flatnonzero(rest)
    while running.size:
        length = below(rest[running].astype(np.uint64), coins).astype(np.int64) + 1
        mine = below(np.full(running.size, honest, dtype=np.uint64), coins) == 0
        kept[running[mine]] += length[mine]
        rest[running] -= length
        running = running[rest[running] > 0]
    return kept
