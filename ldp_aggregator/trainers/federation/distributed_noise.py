"""Noise that many nodes add up together: the sum has the law that epsilon takes, a single share does not.

Under secure aggregation (Bonawitz et al. 2017) the server sees the sum of the nodes' shares and nothing else. Then each
node needs to add a part of the noise only, and the model of N nodes has the noise of one, not N times as much. The law:
with a = exp(-1 / t), a geometric variable, P(G = k) = (1 - a) a^k, has the generating function (1 - a) / (1 - a z); its
h-th root is that of the negative binomial (Polya) law of shape 1 / h. So the sum of h independent ones is geometric,
and the difference of two such sums is discrete Laplace of scale t, exactly (Balle, Bell, Gascon, Nissim 2020). Noise of
further nodes is independent of it and takes nothing away. Where less than that is unknown to who attacks, epsilon does
not hold: :mod:`ldp_aggregator.trainers.federation.missing_noise` says what is lost then.

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

from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ldp_aggregator.learning.guarantee import Guarantee
from ldp_aggregator.learning.naive_bayes import NaiveBayes
from ldp_aggregator.node_statistics import (
    MOST_NODES,
    SERIAL_BITS,
    SUM_HEAD,
    DistributedShare,
    decode_distributed,
    encode_distributed,
)
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
    """A node's share for secure aggregation among ``nodes`` nodes, of which ``honest`` suffice (None: two thirds,
    rounded up).

    The campaign's epsilon protects the rows of honest nodes, add-remove, if the share is seen by nobody but in sums
    that contain those of at least ``honest`` honest nodes, this one included. A share alone protects far less.
    """
    enough = checked_honest(nodes, default_honest(nodes) if honest is None else honest)
    schema = Schema.of_campaign(campaign)
    vector = statistics_of(schema, frame, schema.classes_of(labels, len(frame)))
    coins = coins_of(random_state)
    for plan in plan_noise(schema, campaign.privacy.epsilon, ADD_REMOVE):
        place = slice(plan.part.start, plan.part.stop)
        vector[place] += noise_share(plan.scale, enough, plan.part.stop - plan.part.start, coins)
    return encode_distributed(campaign, DistributedShare(vector, nodes, enough, coins.below(1 << SERIAL_BITS)))


def noise_share(scale: Fraction, honest: int, count: int, coins: Coins) -> Integers:
    """``count`` independent draws; the sum of ``honest`` of them is discrete Laplace of scale ``drawable(scale)``."""
    plus, minus = (_thinned(geometric(scale, count, coins), honest, coins) for _ in range(2))
    return plus - minus


def combine(campaign: Campaign, shares: Iterable[bytes]) -> tuple[int, ...]:
    """The sum of nodes' shares as secure aggregation would give it, for :func:`model_of_sum`.

    Safety: whoever calls this sees single shares, which protect next to nothing. It is for tests, and for one who is
    trusted with all of them. Raises ShareError for bytes that are no share of distributed noise for this campaign, and
    ValueError for shares that are not for equally many nodes and honest ones, for the same one twice, for fewer than
    their honest nodes and for more than their nodes.
    """
    decoded = [decode_distributed(share, campaign) for share in shares]
    if len({share.serial for share in decoded}) < len(decoded):
        raise ValueError("a share is there twice; each counts once")
    for share in decoded:
        if (share.nodes, share.honest) != (decoded[0].nodes, decoded[0].honest):
            raise ValueError(
                f"a share is for {share.honest} honest of {share.nodes} nodes, another for {decoded[0].honest} of "
                f"{decoded[0].nodes}; all nodes must agree before they draw"
            )
    if not decoded:
        raise ValueError("there is no share to add up")
    _check_number(len(decoded), decoded[0].nodes, decoded[0].honest)
    columns = zip(*(share.summand().tolist() for share in decoded), strict=True)
    return tuple(sum(column) for column in columns)


def model_of_sum(campaign: Campaign, total: Sequence[int], *, options: Options = DEFAULTS) -> NaiveBayes:
    """The model of what secure aggregation gave: the sum of the shares' ``summand()``.

    How many shares are in it, and for how many honest nodes their noise is, is read from the sum itself. ``total`` has
    signed numbers: where the aggregation is modulo 2^64, values from 2^63 on mean negative ones. Raises ValueError for
    a sum of shares that are not alike, and for one of fewer than protect epsilon: nodes that dropped out took their
    noise along.
    """
    schema, epsilon = Schema.of_campaign(campaign), campaign.privacy.epsilon
    plans = plan_noise(schema, epsilon, ADD_REMOVE)
    length = SUM_HEAD + plans[-1].part.stop
    if len(total) != length:
        raise ValueError(
            f"a sum for this campaign has {length} integers, {SUM_HEAD} of them before the statistics, not {len(total)}"
        )
    shares, nodes, honest = _read_head(total[:SUM_HEAD])
    _check_number(shares, nodes, honest)
    model = robust_model(schema, plans, [Group(total[SUM_HEAD:], shares / honest)], options)
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


def default_honest(nodes: int) -> int:
    """Two thirds of the nodes, rounded up: a third may drop out, or tell, and epsilon holds."""
    return -(-2 * nodes // 3)


def checked_honest(nodes: int, honest: int) -> int:
    """``honest``, or a ValueError."""
    if not 1 <= honest <= nodes <= MOST_NODES:
        raise ValueError(
            f"honest must be from 1 to the number of nodes, and that at most {MOST_NODES}, not {honest} of {nodes}"
        )
    return honest


def _read_head(head: Sequence[int]) -> tuple[int, int, int]:
    """How many shares a sum has, and the nodes and honest ones that each of them is for."""
    shares, *sums = (int(value) for value in head)
    alike = shares > 0 and all(
        total > 0 and total % shares == 0 and shares * squares == total**2 for total, squares in (sums[:2], sums[2:])
    )
    if not alike:
        raise ValueError(
            "this is no sum of shares for equally many nodes and honest ones: add up what 'summand' gives, of shares "
            "that were made with the same numbers"
        )
    return shares, sums[0] // shares, sums[2] // shares


def _check_number(shares: int, nodes: int, honest: int) -> None:
    if shares < honest:
        raise ValueError(
            f"a sum of {shares} shares protects less than epsilon: it takes those of {honest} honest nodes"
        )
    if shares > nodes:
        raise ValueError(f"a sum of {shares} shares is of more than the {nodes} nodes that they are for")


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
