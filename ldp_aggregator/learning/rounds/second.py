"""A second round of a study: the devices that have not answered yet are asked more about what tells the class.

Of the devices of the second round a feature gets the share .9 sqrt(I2_j) / sum + .1 / k, I2_j being the expected square
of its interaction with the class, given the first round. What both rounds counted adds up when a model is trained on
them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.counting.tally import Tally
from ldp_aggregator.estimation.estimates import estimate
from ldp_aggregator.estimation.joint import pool_tables
from ldp_aggregator.estimation.pooling import pool, pool_classes
from ldp_aggregator.estimation.simplex import norm_sub
from protocols import Campaign
from protocols.document.campaign import MODEL
from protocols.document.questions import VALUE, is_gaussian
from protocols.document.schema import MOST_WEIGHT

Array = NDArray[np.float64]

Pairs = Sequence[tuple[Campaign, Tally]]
Strengths = Callable[[Pairs], Mapping[str, float]]
"""From what was counted to I2 of every asked feature."""

ADAPTED: Final = 0.9
"""Share of the devices that goes by strength; the rest is spread evenly, so that no feature is given up."""

FIRST_SHARE: Final = 0.3
"""Of all devices that are learned from, in the first round of a simulated study."""

_WHOLE: Final = 10_000
"""The weights of all features together."""

_LONGEST_TITLE: Final = 200


class SecondRoundError(ValueError):
    """Campaigns that no second round can follow: says what would be right."""


def interactions(pairs: Pairs) -> dict[str, float]:
    """I2 of every asked feature by empirical Bayes, feature by feature.

    The interaction of value and class is z = A' P B of shape (values - 1, classes - 1), P the joint table, the columns
    of diag(sqrt(m)) A orthonormal and orthogonal to sqrt(m), m the marginal; B likewise of the classes. |z|^2 is
    Pearson's mean-square contingency. Of a Gaussian feature it is the class means, in units of 1/sqrt(3) of half the
    range. With the noise nu_i of z_i (cells taken as independent) and tau = max(0, mean of z_i^2 - nu_i, each with the
    weight nu_i^-2), E z_i^2 = kept nu_i + kept^2 z_i^2, kept = tau / (tau + nu_i).
    """
    found = [estimate(campaign, tally) for campaign, tally in pairs]
    campaign = pairs[0][0]
    classes = len(campaign.label.classes)
    everything = any(one.campaign.privacy.answers == "all" for one in found)
    shares = pool_classes([q for one in found for q in one.questions], classes, shared_records=everything)
    of_class = _contrasts(_positive(shares.value))
    result = {}
    for feature in campaign.asked:
        if is_gaussian(feature):
            cells = pool([one.asking(feature.name, VALUE) for one in found])
            of_value = np.array([[np.sqrt(3.0)]])
        else:
            cells = pool_tables([one.table(feature.name) for one in found])
            of_value = _contrasts(_positive(cells.value.reshape(-1, classes).sum(axis=1)))
        value, variance = (of.reshape(-1, classes) for of in (cells.value, cells.variance))
        told = bool(np.isfinite(variance).all())
        result[feature.name] = (
            _expected(of_value.T @ value @ of_class, of_value.T**2 @ variance @ of_class**2) if told else 0.0
        )
    return result


def _positive(shares: Array) -> Array:
    """Probabilities of which a tenth is spread evenly, so that the noise of what hardly occurs is not blown up."""
    result: Array = 0.9 * norm_sub(shares) + 0.1 / len(shares)
    return result


def _contrasts(shares: Array) -> Array:
    """The matrix A of shape (d, d - 1): the columns but the first of the reflection that maps e_1 to sqrt(shares), over
    sqrt(shares).
    """
    root = np.sqrt(shares)
    normal = root - np.eye(len(root))[0]
    reflection = np.eye(len(root)) - 2 * np.outer(normal, normal) / max(float(normal @ normal), 1e-300)
    contrasts: Array = reflection[:, 1:] / root[:, None]
    return contrasts


def _expected(interaction: Array, noise: Array) -> float:
    weights = noise**-2.0
    spread = max(0.0, float((weights * (interaction**2 - noise)).sum() / weights.sum()))
    kept = spread / (spread + noise)
    return float((kept * noise + kept**2 * interaction**2).sum())


def feature_shares(strengths: Mapping[str, float]) -> dict[str, float]:
    """The share of the second round's devices that each feature gets; alike where nothing tells anything."""
    roots = {name: np.sqrt(max(0.0, strength)) for name, strength in strengths.items()}
    total, count = sum(roots.values()), len(roots)
    if not total:
        return dict.fromkeys(roots, 1 / count)
    return {name: float(ADAPTED * root / total + (1 - ADAPTED) / count) for name, root in roots.items()}


def second_round_draft(pairs: Pairs, strengths: Strengths = interactions, title: str | None = None) -> dict[str, Any]:
    """The draft of the round that follows: the first campaign's, with other weights, open from now on.

    Raises SecondRoundError for campaigns of no study, whose devices could answer again, and for other rounds.
    """
    first = pairs[0][0]
    for campaign, _ in pairs:
        if campaign.asks != MODEL:
            raise SecondRoundError(
                f'campaign {campaign.id} has "asks": "{campaign.asks}"; only a model has a second round'
            )
        if campaign.privacy.answers != "one":
            raise SecondRoundError(f"the devices of campaign {campaign.id} answer everything; weights change nothing")
        if campaign.study is None or campaign.study != first.study:
            raise SecondRoundError("the campaigns must be of one study, so that no device answers two of its rounds")
    shares = feature_shares(strengths(pairs))
    before = sum(feature.weight for feature in first.asked)
    draft: dict[str, Any] = json.loads(first.document)
    del draft["questions"]
    for feature in (*draft["features"], *((draft["projection"] or {}).get("outputs", ()))):
        if feature["name"] in shares:
            feature["weight"] = _weight(shares[feature["name"]])
    draft["label"]["weight"] = _weight(first.label.weight / before) if first.label.weight else 0
    shortened = first.title[: _LONGEST_TITLE - 20]
    return {**draft, "title": title or f"{shortened}: second round", "opens": None, "closes": None}


def _weight(share: float) -> int:
    return min(MOST_WEIGHT, max(1, round(_WHOLE * share)))
