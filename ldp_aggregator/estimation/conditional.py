"""P(value | class) of a discrete feature, with 95 % intervals: the joint table divided by P(class).

Both are estimates, and they are not independent: a question about a pair of value and class tells the class, too. With
J the cell, pi the pooled share of its class, and their variances and covariance V_J, V_pi, C, the interval is Fieller's
(1954): all ratios R that the data do not refuse, (J - R pi)^2 <= z^2 (V_J - 2 R C + R^2 V_pi). It is bounded where pi
can be told from zero, and only there is anything said: elsewhere the share can be anything from 0 to 1.

The covariance of a cell with the sum of its class follows from the mechanism's joint support, as the variance of that
sum does; the pooled share moves with the question's own sum by as much as the question weighs in it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.estimation.estimates import Estimates
from ldp_aggregator.estimation.estimators import Z_95, Cells, QuestionEstimate
from ldp_aggregator.estimation.poisoning.quotients import quotient_reach
from ldp_aggregator.estimation.pooling import class_shares
from ldp_aggregator.estimation.simplex import norm_sub
from ldp_aggregator.mechanisms import facts_of
from protocols.document.questions import PAIR

Array = NDArray[np.float64]


@dataclass(frozen=True)
class ConditionalTable:
    """P(value | class), shape (values * k,), index ``value * k + class``, beside the ``pair`` of value and class that
    was asked, of which a made-up report moves a cell by up to ``per_liar``.

    A cell of a class that cannot be told from nobody's is uninformed: 1 / values, from 0 to 1, of infinite variance.
    """

    cells: Cells
    pair: QuestionEstimate
    per_liar: Array


def conditional_table(estimates: Estimates, feature: str) -> ConditionalTable:
    """Return P(value | class) of a discrete feature that the campaign asked about."""
    pair, classes = estimates.asking(feature, PAIR), estimates.class_prior
    k = classes.value.size
    members = pair.cells.value.size // k
    pi, pi_variance = np.tile(classes.value, members), np.tile(classes.variance, members)
    cells = ratio_of(pair.cells, Cells.normal(pi, pi_variance), _covariance(estimates, pair), 1 / members)
    return ConditionalTable(cells, pair, estimates.per_liar[pair.question.index])


def conditional_reach(estimates: Estimates, table: ConditionalTable, liars: int) -> Array:
    """The most that so many liars can have moved each cell: a share, so by no more than 1."""
    if liars == 0:
        return np.zeros_like(table.cells.value)
    prior = estimates.class_prior.value
    pi = np.tile(prior, table.cells.value.size // prior.size)
    reach = quotient_reach(table.cells.value, liars * table.per_liar, pi, liars * estimates.class_prior_per_liar)
    return np.where(np.isfinite(table.cells.variance), np.minimum(reach, 1.0), 1.0)


def ratio_of(share: Cells, whole: Cells, covariance: Array, untold: float) -> Cells:
    """Return the ratio of two unbiased shares with Fieller's interval; of a whole that cannot be told from zero
    ``untold``, from 0 to 1, with infinite variance.
    """
    pi, pi_variance = whole.value, whole.variance
    known = np.isfinite(share.variance) & np.isfinite(pi_variance) & (pi > 0)
    known[known] = pi[known] ** 2 > Z_95**2 * pi_variance[known]
    value, variance = np.full_like(pi, untold), np.full_like(pi, np.inf)
    low, high = np.zeros_like(pi), np.ones_like(pi)
    j, p, v_j, v_p, c = (array[known] for array in (share.value, pi, share.variance, pi_variance, covariance))
    ratio = j / p
    a, b = p**2 - Z_95**2 * v_p, j * p - Z_95**2 * c
    reach = np.sqrt(np.maximum(b**2 - a * (j**2 - Z_95**2 * v_j), 0.0))
    value[known], low[known], high[known] = ratio, (b - reach) / a, (b + reach) / a
    variance[known] = np.maximum(v_j - 2 * ratio * c + ratio**2 * v_p, 0.0) / p**2
    return Cells(value, variance, low, high)


def _covariance(estimates: Estimates, pair: QuestionEstimate) -> Array:
    """Return that of every cell with the pooled share of its class; never beyond what their variances allow."""
    deviation = np.sqrt(estimates.class_prior.variance)
    limit = np.sqrt(pair.cells.variance) * np.tile(deviation, pair.cells.value.size // deviation.size)
    if not np.isfinite(limit).all():
        return np.zeros_like(limit)
    covariance: Array = np.clip(_of_pair(estimates, pair), -limit, limit)
    return covariance


def _of_pair(estimates: Estimates, one: QuestionEstimate) -> Array:
    k = estimates.class_prior.value.size
    telling = [other for other in estimates.questions if other.classes is not None and other.n > 0]
    weight = class_shares(telling, k)[next(place for place, other in enumerate(telling) if other is one)]
    frequency = norm_sub(one.cells.value).reshape(-1, k)
    total, others = frequency.sum(axis=0), len(frequency) - 1
    of_records = frequency * (1 - total)
    p, q, one_true, none_true, noise = facts_of(one.question.mechanism).support
    supported = q + (p - q) * frequency
    # Over the other cells of the class: how often one of the two is the true one, and how often neither.
    either = others * frequency + total - frequency
    together = either * one_true + (others - either) * none_true - supported * (supported.sum(axis=0) - supported)
    answers = (supported * (1 - supported) + together) / (p - q) ** 2 + noise
    if estimates.campaign.privacy.answers == "all":
        # The same records are behind every question; only the noise is this one's own.
        answers = weight * (answers - of_records) + of_records
    else:
        answers = weight * answers
    covariance: Array = answers.ravel() / one.n
    return covariance
