"""Shares of a share: P(value | class), with 95 % intervals, and frequencies among those who hold a value.

Numerator J and denominator pi are both estimates, and they are not independent: a question about a pair of value and
class tells the class, too. The interval has all ratios R that the data do not refuse, (J - R pi)^2 <= z^2 V(R) (Fieller
1954), V(R) = V_J - 2 R C + R^2 V_pi with the variances and the covariance that J and pi have *if R is the ratio*. That
is quadratic in R, and without noise Wilson's interval (1927) of a binomial share: where few people are behind J, their
number tells as little about its own variance. It is bounded where pi can be told from zero, and only there is anything
said: elsewhere the share can be anything from 0 to 1.

Of the cells E_i of a pair question and the share M of its last cells, which say that the value is missing, r_i = E_i /
(1 - M) is P(value, class | present), and to first order

    Var r_i = (Var E_i + r_i^2 Var M + 2 r_i Cov(E_i, M)) / (1 - M)^2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ldp_aggregator.estimation import estimators
from ldp_aggregator.estimation.cells import Z_95, Array, Cells
from ldp_aggregator.estimation.estimators import CampaignEstimates, QuestionEstimate
from ldp_aggregator.estimation.poisoning import quotient_reach, sum_range
from ldp_protocols import Campaign
from ldp_protocols.document.questions import PAIR


@dataclass(frozen=True)
class ShareEstimates:
    """Estimated shares, and the most that one made-up report moves each; infinite where there is no bound."""

    cells: Cells
    per_liar: Array


def missing_shares(campaign: Campaign, questions: Sequence[QuestionEstimate]) -> Mapping[str, ShareEstimates]:
    """P(missing), shape (1,), of every asked feature that may be missing; unbiased, from its own questions alone."""
    found = {}
    for feature in campaign.asked:
        about = [one for one in questions if (one.question.feature, one.question.other) == (feature.name, None)]
        shares = [(one, one.missing_share) for one in about if one.missing_share is not None]
        answered = [(one, share) for one, share in shares if one.n > 0]
        if answered:
            weights = estimators.pool_shares([one for one, _ in answered])
            moved = [sum_range(one.question, len(campaign.label.classes)) / one.n for one, _ in answered]
            # A device answers one question about a feature at most.
            reach = campaign.answers_of_a_person * (weights * moved).max()
            found[feature.name] = ShareEstimates(
                estimators.weighted([share for _, share in answered], weights), np.full(1, reach)
            )
        elif shares:
            found[feature.name] = ShareEstimates(shares[0][1], np.full(1, np.inf))
    return found


def among_present(pair: QuestionEstimate, per_liar: Array, campaign: Campaign) -> ShareEstimates:
    """P(value, class | present), shape (values * k,), as a pair question tells it whose values may be missing."""
    classes = len(campaign.label.classes)
    missing = pair.missing_share
    if missing is None:
        raise TypeError(f"question {pair.question.index} is about a feature that is complete")
    size = pair.cells.value.size - classes
    present = 1 - float(missing.value[0])
    if not np.isfinite(missing.variance[0]) or present <= 0:
        # Nobody who holds a value is known of.
        low, high = np.zeros(size), np.ones(size)
        return ShareEstimates(Cells(np.full(size, 1 / size), np.full(size, np.inf), low, high), np.full(size, np.inf))
    cells, absent = pair.cells.value[:size], np.clip(missing.value, 0.0, 1.0)
    value = cells / present
    both = estimators.covariance_of_sums(pair.question, (1, np.clip(cells, 0.0, 1.0)), (classes, absent))[1] / pair.n
    spread = pair.cells.variance[:size] + value**2 * missing.variance[0] + 2 * value * both
    of_present = campaign.answers_of_a_person * sum_range(pair.question, classes) / pair.n
    reach = quotient_reach(value, per_liar[:size], np.full(size, present), of_present)
    return ShareEstimates(Cells.normal(value, np.maximum(spread, 0.0) / present**2), reach)


@dataclass(frozen=True)
class ConditionalTable:
    """P(value | class), shape (values * k,), index ``value * k + class``, beside the ``pair`` of value and class that
    was asked, of which a made-up report moves a cell by up to ``per_liar``.

    A cell of a class that cannot be told from nobody's is uninformed: 1 / values, from 0 to 1, of infinite variance.
    """

    cells: Cells
    pair: QuestionEstimate
    per_liar: Array


def conditional_table(estimates: CampaignEstimates, feature: str) -> ConditionalTable:
    """P(value | class) of a discrete feature that the campaign asked about."""
    pair, classes = estimates.asking(feature, PAIR), estimates.class_prior
    members = pair.cells.value.size // classes.value.size
    if classes.value.size == 1:  # Of everybody.
        return ConditionalTable(pair.cells, pair, estimates.per_liar[pair.question.index])
    whole = Cells.normal(np.tile(classes.value, members), np.tile(classes.variance, members))
    cells = ratio_of(pair.cells, whole, _variance_at(estimates, pair, whole), 1 / members)
    return ConditionalTable(cells, pair, estimates.per_liar[pair.question.index])


def conditional_reach(estimates: CampaignEstimates, table: ConditionalTable, liars: int) -> Array:
    """The most that so many liars can have moved each cell: a share, so by no more than 1."""
    if liars == 0:
        return np.zeros_like(table.cells.value)
    prior = estimates.class_prior.value
    pi = np.tile(prior, table.cells.value.size // prior.size)
    reach = quotient_reach(table.cells.value, liars * table.per_liar, pi, liars * estimates.class_prior_per_liar)
    return np.where(np.isfinite(table.cells.variance), np.minimum(reach, 1.0), 1.0)


Variance = Callable[[float], Array]
"""V(R): the variance of J - R pi if R is their ratio, quadratic in R."""


def ratio_of(share: Cells, whole: Cells, variance_at: Variance, untold: float) -> Cells:
    """The ratio of two unbiased shares; a whole ``untold`` from zero gives [0, 1] and infinite variance."""
    pi, pi_variance = whole.value, whole.variance
    bounded = np.isfinite(share.variance) & np.isfinite(pi_variance) & (pi > 0)
    bounded[bounded] = pi[bounded] ** 2 > Z_95**2 * pi_variance[bounded]
    value, variance = np.full_like(pi, untold), np.full_like(pi, np.inf)
    low, high = np.zeros_like(pi), np.ones_like(pi)
    if not bounded.any():
        return Cells(value, variance, low, high)
    j, p = share.value[bounded], pi[bounded]
    ratio, (none, half, every) = j / p, (variance_at(at)[bounded] for at in (0.0, 0.5, 1.0))
    square = 2 * (none + every - 2 * half)
    linear = every - none - square
    a, b = np.maximum(p**2 - Z_95**2 * square, 1e-12), j * p + Z_95**2 * linear / 2
    reach = np.sqrt(np.maximum(b**2 - a * (j**2 - Z_95**2 * none), 0.0))
    value[bounded], low[bounded], high[bounded] = ratio, (b - reach) / a, (b + reach) / a
    within = np.clip(ratio, 0.0, 1.0)
    variance[bounded] = np.maximum(none + linear * within + square * within**2, 0.0) / p**2
    return Cells(value, variance, low, high)


def _variance_at(estimates: CampaignEstimates, pair: QuestionEstimate, whole: Cells) -> Variance:
    """V(R) of cells and their classes' pooled shares: what a question adds to a share goes by its weight."""
    k = estimates.class_prior.value.size
    telling = [other for other in estimates.questions if other.classes is not None and other.n > 0]
    if pair.n == 0:
        return lambda _: np.full_like(whole.value, np.inf)
    weight = estimators.class_shares(telling, k)[next(place for place, one in enumerate(telling) if one is pair)]
    total, members = np.clip(whole.value, 0.0, 1.0), whole.value.size // k
    alike = estimates.campaign.privacy.answers == "all"

    def variance_at(ratio: float) -> Array:
        cells = ratio * total
        own, beside, _ = estimators.covariance_of_sums(pair.question, (1, cells), (members - 1, total - cells))
        both = weight * (own + beside)
        if alike:  # The same records are behind every question; only the noise is this one's own.
            both = both + (1 - weight) * cells * (1 - total)
        return np.asarray((own - 2 * ratio * both) / pair.n + ratio**2 * whole.variance)

    return variance_at
