"""A second round of a study: the devices that have not answered yet are asked more about what tells the class.

In the second round a feature gets the weight .9 sqrt(I2_j) / sum + .1 / k, I2_j being the expected square of its
interaction with the class, given the first round; the class alone is asked as often as before. What both rounds counted
adds up when a model is trained on them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.counting.tally import Tally
from ldp_aggregator.estimation.estimates import estimate
from ldp_aggregator.estimation.estimators import Cells
from ldp_aggregator.estimation.moments import present_shares
from ldp_aggregator.estimation.pooling import pool
from ldp_aggregator.learning.training import believe
from protocols import Campaign
from protocols.document.campaign import MODEL
from protocols.document.questions import SQUARE, TRIPLE, VALUE, is_gaussian
from protocols.document.schema import MOST_WEIGHT, Feature
from protocols.drafting.questions import asks_label_seldom

Array = NDArray[np.float64]

Pairs = Sequence[tuple[Campaign, Tally]]
Strengths = Callable[[Pairs], Mapping[str, float]]
"""From what was counted to I2 of every asked feature."""

ADAPTED: Final = 0.9
"""Share of the devices that goes by strength; the rest is spread evenly, so that no feature is given up."""

FIRST_SHARE: Final = 0.3
"""Of all devices that are learned from, in the first round of a simulated study."""

_WHOLE: Final = 10_000
"""The weights of all features together, or less where the label's would be too large."""

_LEAST_PRESENT: Final = 0.1
"""Of a class, as far as it is divided by: noise can say that nobody in it holds a value."""

_LONGEST_TITLE: Final = 200


class SecondRoundError(ValueError):
    """Campaigns that no second round can follow: says what would be right."""


def interactions(pairs: Pairs) -> dict[str, float]:
    """I2 = E |z|^2 of every asked feature, |z|^2 being the mean-square contingency of its value and the class.

    Of a discrete feature as the shrinking estimator believes it. Of a Gaussian one z are the class means about the
    common one, in units of 1/sqrt(3) of half the range, of the records that hold a value. With the noise nu_i of z_i
    (classes taken as independent) and tau = max(0, mean of z_i^2 - nu_i, each with the weight nu_i^-2),
    E z_i^2 = kept nu_i + kept^2 z_i^2, kept = tau / (tau + nu_i).
    """
    found = [estimate(campaign, tally) for campaign, tally in pairs]
    believed = believe(found, [question for one in found for question in one.questions])
    classes = Cells.normal(believed.classes.value, np.zeros(believed.classes.value.size))
    result = {name: float(feature.present * feature.squared_effect) for name, feature in believed.features.items()}
    for feature in pairs[0][0].asked:
        if feature.name not in result:
            cells = pool([one.asking(feature.name, VALUE) for one in found])
            told = bool(np.isfinite(cells.variance).all())
            asked = [one.asking(feature.name, kind) for one in found for kind in (VALUE, SQUARE)]
            present = present_shares(classes, asked).of_class.value
            of_class = _contrasts(np.maximum(present, _LEAST_PRESENT * classes.value))
            squares, noise = 3 * (cells.value @ of_class) ** 2, 3 * cells.variance @ of_class**2
            result[feature.name] = _expected(squares, noise) if told else 0.0
    return result


def _contrasts(shares: Array) -> Array:
    """The matrix A of shape (d, d - 1): the columns but the first of the reflection that maps e_1 to sqrt(shares), over
    sqrt(shares), which are of their sum.
    """
    root = np.sqrt(shares / shares.sum())
    normal = root - np.eye(len(root))[0]
    reflection = np.eye(len(root)) - 2 * np.outer(normal, normal) / max(float(normal @ normal), 1e-300)
    contrasts: Array = reflection[:, 1:] / root[:, None]
    return contrasts


def _expected(squares: Array, noise: Array) -> float:
    weights = noise**-2.0
    spread = max(0.0, float((weights * (squares - noise)).sum() / weights.sum()))
    kept = spread / (spread + noise)
    return float((kept * noise + kept**2 * squares).sum())


def feature_shares(strengths: Mapping[str, float]) -> dict[str, float]:
    """The share of the second round's devices that each feature gets; alike where nothing tells anything."""
    roots = {name: np.sqrt(max(0.0, strength)) for name, strength in strengths.items()}
    total, count = sum(roots.values()), len(roots)
    if not total:
        return dict.fromkeys(roots, 1 / count)
    return {name: float(ADAPTED * root / total + (1 - ADAPTED) / count) for name, root in roots.items()}


def second_round_draft(pairs: Pairs, strengths: Strengths = interactions, title: str | None = None) -> dict[str, Any]:
    """The draft of the round that follows: the first campaign's, with other weights, open from now on. Two features
    that were asked at once have one weight, so that they are again.

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
    for question in first.questions:
        if question.kind == TRIPLE:  # Two features are asked at once where they have one weight.
            both = [name for name in (question.feature, question.other) if name is not None]
            shares |= dict.fromkeys(both, sum(shares[name] for name in both) / len(both))
    draft: dict[str, Any] = json.loads(first.document)
    del draft["questions"]
    label = 0.0
    if not asks_label_seldom(first.label, first.asked, first.privacy):
        label = _kept(1 if first.label.weight is None else first.label.weight, first.asked, shares)
        draft["label"]["weight"] = 0
    whole = min(_WHOLE, MOST_WEIGHT / max(label, *shares.values()))
    if label:
        draft["label"]["weight"] = max(1, round(whole * label))
    for feature in (*draft["features"], *((draft["projection"] or {}).get("outputs", ()))):
        if feature["name"] in shares:
            feature["weight"] = max(1, round(whole * shares[feature["name"]]))
    shortened = first.title[: _LONGEST_TITLE - 20]
    return {**draft, "title": title or f"{shortened}: second round", "opens": None, "closes": None}


def _kept(label: int, asked: Sequence[Feature], shares: Mapping[str, float]) -> float:
    """The label's weight beside ``shares`` with which as many devices answer it as before; a number's weight counts
    twice, for its value and its square.
    """
    questions = {feature.name: 2 if is_gaussian(feature) else 1 for feature in asked}
    before = sum(questions[feature.name] * feature.weight for feature in asked)
    return label * sum(questions[name] * share for name, share in shares.items()) / before
