"""How far lying devices can move the parameters of a trained model, beyond the estimates it is made of.

Bounds are sound for any lies, for the number of reports to each question as it is, and follow the training step by
step. They are not always reached: a table's cells are taken to be moved each on its own, though some mechanisms let a
liar move only a few at once. Means and variances have a file of their own,
``ldp_aggregator.estimation.poisoning.moments``.

``norm_sub`` is x -> max(x_i - tau(x), 0) with tau such that the result adds up to 1. tau rises with every x_i, and by c
where all x_i rise by c, so that |x' - x| <= d in every cell makes |tau' - tau| <= d: a processed cell moves by at most
2 d. That is nearly reached, where one cell moves up and all others down.

P(value | class) is j_v / (j_v + rest), rising in its own cell and falling in the rest of its column; its ends lie where
the cell is at one end and the rest at the other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.estimation.estimates import Estimates
from ldp_aggregator.estimation.estimators import Cells, QuestionEstimate
from ldp_aggregator.estimation.joint import pool_tables, table_shares
from ldp_aggregator.estimation.moments import Moments
from ldp_aggregator.estimation.poisoning.intervals import Interval, column_shares, norm_sub_reach
from ldp_aggregator.estimation.poisoning.lies import Lies, lies_of_one_answer
from ldp_aggregator.estimation.poisoning.moments import MomentsReach, moments_reach
from ldp_aggregator.estimation.poisoning.reports import share_moves
from ldp_aggregator.estimation.poisoning.shares import share_variance
from ldp_aggregator.estimation.simplex import FLOOR, norm_sub
from ldp_aggregator.learning.posterior_poisoning import PosteriorLies
from protocols.document.schema import ContinuousFeature, Feature

Array = NDArray[np.float64]


@dataclass(frozen=True)
class ModelReach:
    """The most that ``liars`` devices can have moved each parameter.

    ``prior`` of shape (k,); of a discrete feature P(value | class), shape (values, k); of a Gaussian one mean and
    variance per class, in the feature's own units, infinite where unbounded.
    """

    liars: int
    prior: Array
    features: Mapping[str, Array | MomentsReach]

    def to_json(self) -> dict[str, Any]:
        """The worst of every feature; null where unbounded."""
        return {
            "liars": self.liars,
            "prior": _worst(self.prior),
            "features": {
                name: {"mean": _worst(reach.mean), "variance": _worst(reach.variance)}
                if isinstance(reach, MomentsReach)
                else {"likelihood": _worst(reach)}
                for name, reach in self.features.items()
            },
        }


def model_reach(
    estimates: Sequence[Estimates],
    prior_questions: Sequence[QuestionEstimate],
    shares: Cells,
    moments: Mapping[str, Moments],
    liars: int,
    *,
    post: str,
    smoothing: float,
    variance_floor: float,
    shrinkage: bool,
    believed: PosteriorLies | None = None,
) -> ModelReach:
    """Of a model trained from campaigns; a liar lies in all of them.

    ``shares`` is P(class), pooled from ``prior_questions``; ``moments`` are those of the model. Where it was
    ``believed``, classes and tables have bounds of their own.
    """
    campaigns = [one.campaign for one in estimates]
    classes = len(campaigns[0].label.classes)
    moves = iter(share_moves(prior_questions, classes).tolist())
    pooled = {id(question) for question in prior_questions}
    by_campaign = [[next(moves) for question in one.questions if id(question) in pooled] for one in estimates]
    everything = [one.privacy.answers == "all" for one in campaigns]
    share = sum((sum if both else max)([0.0, *moved]) for both, moved in zip(everything, by_campaign, strict=True))
    noise = Interval.exactly(shares.variance)
    if moments:
        noise = share_variance(prior_questions, shares, classes, liars, shared_records=any(everything))
    features: dict[str, Array | MomentsReach] = {}
    posterior = None if believed is None else believed.reach(liars)
    for feature in campaigns[0].asked:
        if isinstance(feature, ContinuousFeature) and feature.name in moments:
            one_answer = liars == 1 and len(estimates) == 1 and not everything[0]
            features[feature.name] = moments_reach(
                feature,
                [one.round_of(feature) for one in estimates],
                moments[feature.name],
                shares,
                noise,
                lies_of_one_answer(
                    prior_questions, feature.name, classes, at_once=estimates[0].round_of(feature).at_once
                )
                if one_answer
                else [Lies(liars, liars, liars * share)],
                variance_floor=variance_floor,
                shrinkage=shrinkage,
            )
        elif posterior is not None:
            features[feature.name] = posterior.tables[feature.name]
        else:
            features[feature.name] = _pair_reach(estimates, feature, liars, post, smoothing)
    reports = sum(question.n for one in estimates for question in one.questions)
    prior = prior_reach(shares, liars * share, reports) if posterior is None else posterior.classes
    return ModelReach(liars, prior, features)


def _pair_reach(estimates: Sequence[Estimates], feature: Feature, liars: int, post: str, smoothing: float) -> Array:
    """Of a discrete feature's table, pooled over the campaigns that have reports to it."""
    tables = [one.table(feature.name) for one in estimates]
    answered = [table for table in tables if table.precision > 0]
    values = pool_tables(tables).value
    reach = np.full(values.shape, np.inf)
    if answered:
        weights = table_shares(answered)
        reach = sum((t.per_liar * w for t, w in zip(answered, weights, strict=True)), np.zeros_like(reach))
    classes = len(estimates[0].campaign.label.classes)
    return table_reach(values, liars * reach, classes, sum(t.n for t in tables), post, smoothing, size=feature.size)


def prior_reach(shares: Cells, reach: float, reports: int) -> Array:
    """Of the model's class prior: ``norm_sub`` of the shares, with one pseudo-report a class."""
    classes = shares.value.size
    if not math.isfinite(reach):
        return np.ones(classes)
    moved = norm_sub_reach(shares.value, np.full(classes, reach))
    return (moved * reports).reach(norm_sub(shares.value) * reports) / (reports + classes)


def table_reach(
    values: Array, reach: Array, classes: int, reports: int, post: str, smoothing: float, *, size: int
) -> Array:
    """Of P(value | class) of the first ``size`` values, from the cells of the joint table, each moved by ``reach``.

    Shape (size, k).
    """
    if not np.isfinite(reach).all():
        return np.ones((size, classes))
    still, moved = (_weights(values, r, reports, post, smoothing) for r in (np.zeros_like(reach), reach))
    kept, columns = (
        Interval(one.low.reshape(-1, classes)[:size], one.high.reshape(-1, classes)[:size]) for one in (still, moved)
    )
    return column_shares(columns).reach(column_shares(kept).low)


def _weights(values: Array, reach: Array, reports: int, post: str, smoothing: float) -> Interval:
    """The joint table's weights (``training._table``), up to a factor that all cells share."""
    if post != FLOOR:
        return norm_sub_reach(values, reach) * reports + smoothing
    low, high = (values - reach) * reports, (values + reach) * reports
    # What is not above zero counts as 1; a cell that may lie on either side can be anything above zero, and 1.
    return Interval(
        np.where(low > 0, low, np.where(high > 0, 0.0, 1.0)), np.where(low > 0, high, np.maximum(high, 1.0))
    )


def _worst(reach: Array) -> float | None:
    largest = float(reach.max())
    return largest if math.isfinite(largest) else None
