"""How often each candidate of an evaluation round is right, and which of them to publish.

A device votes on one candidate by one randomised bit, so that with e = exp(epsilon) the unbiased accuracy a of a
candidate with n votes has n Var = e / (e - 1)^2 + a (1 - a): the noise of direct encoding on two cells, and the spread
of the devices. It is an accuracy on devices that took no part in training.

Every candidate's own accuracy is unbiased, and its interval a 95 % one. The one that is chosen is chosen because its
number is high, by noise too: what is told of it has an interval that holds for all candidates at once (Bonferroni), so
that it covers whichever is chosen. Its number, where it replaced the first, is too high by about one standard error on
average.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from statistics import NormalDist
from typing import Any, Final

from ldp_aggregator.counting.arrivals import Arrivals
from ldp_aggregator.counting.tally import Tally
from ldp_aggregator.estimation.estimates import estimate
from ldp_aggregator.estimation.estimators import wilson
from ldp_aggregator.learning.guarantee import Guarantee
from ldp_aggregator.learning.naive_bayes import NaiveBayes
from ldp_aggregator.learning.published import PublishedGuarantee, published_by
from ldp_aggregator.learning.relays import counted_twice, relayed
from protocols import Campaign
from protocols.document.campaign import SCORE
from protocols.mechanisms import PureMechanism

FEWEST_VOTERS: Final = 1_000
"""Voters a candidate below which the first one is kept: the noise would choose."""

CLEARLY_BETTER: Final = 1.5
"""Standard errors of the difference by which another candidate must be better than the first.

With 200,000 devices at epsilon 1, a twentieth of them voting, one, one and a half and two gain .015, .010 and .007 on
mushroom and .011, .008 and .005 on chess; one costs more than the others where little is to be won, connect4 and spect.
"""

_WRONG: Final = 0.05


@dataclass(frozen=True)
class Score:
    """A candidate's accuracy, unbiased, with its variance and 95 % interval; infinite, or None, without votes."""

    name: str
    n: int
    accuracy: float
    variance: float
    low: float
    high: float
    per_liar: float

    @property
    def standard_error(self) -> float:
        return math.sqrt(self.variance)


@dataclass(frozen=True)
class Evaluation:
    """The scores of all candidates, the place of the ``chosen`` one, and why it is that one. The accuracy of whichever
    is chosen lies from ``low`` to ``high`` in 95 of 100 rounds at least.
    """

    campaign: Campaign
    scores: tuple[Score, ...]
    chosen: int
    reason: str
    low: float
    high: float

    @property
    def winner(self) -> Score:
        return self.scores[self.chosen]

    def to_json(self) -> dict[str, Any]:
        """As a model carries it; what is infinite is null."""
        return {
            "campaign": self.campaign.id,
            "epsilon": self.campaign.privacy.epsilon,
            "chosen": self.winner.name,
            "reason": self.reason,
            "accuracy": _finite(self.winner.accuracy) if self.winner.n else None,
            "low": self.low,
            "high": self.high,
            "candidates": [
                {key: _finite(value) if isinstance(value, float) else value for key, value in asdict(score).items()}
                for score in self.scores
            ],
        }


def evaluate(campaign: Campaign, tally: Tally) -> Evaluation:
    """What an evaluation round says. Raises ValueError for any other campaign."""
    if campaign.asks != SCORE:
        raise ValueError(f'campaign {campaign.id} has "asks": "{campaign.asks}"; an evaluation round has "{SCORE}"')
    found = estimate(campaign, tally)
    scores = []
    for question in campaign.questions:
        cells, of = found[question.index].cells, found.per_liar[question.index]
        value, variance, low, high, liar = (
            float(values[1]) for values in (cells.value, cells.variance, cells.low, cells.high, of)
        )
        name = campaign.candidates[question.group].name
        scores.append(Score(name, found[question.index].n, value, variance, _inside(low), _inside(high), liar))
    chosen, reason = choose(scores)
    return Evaluation(campaign, tuple(scores), chosen, reason, *_interval_of_all(campaign, tally, chosen))


def _interval_of_all(campaign: Campaign, tally: Tally, chosen: int) -> tuple[float, float]:
    """The interval of the chosen candidate that holds together with those of all others."""
    question = next(one for one in campaign.questions if one.group == chosen)
    n, mechanism = int(tally.n[question.index]), question.mechanism
    if n == 0 or not isinstance(mechanism, PureMechanism):
        return 0.0, 1.0
    z = NormalDist().inv_cdf(1 - _WRONG / 2 / len(campaign.questions))
    p, q = float(mechanism.p), float(mechanism.q)
    low, high = (float(end[1]) for end in wilson(tally.counts[question.index], n, z))
    return _inside((low - q) / (p - q)), _inside((high - q) / (p - q))


def _inside(share: float) -> float:
    return min(max(share, 0.0), 1.0)


def choose(scores: Sequence[Score]) -> tuple[int, str]:
    """The place of the candidate to publish, and the reason.

    The first, unless another is better by :data:`CLEARLY_BETTER` standard errors of their difference; with fewer than
    :data:`FEWEST_VOTERS` voters a candidate always the first.
    """
    voters = sum(score.n for score in scores) // len(scores)
    first = scores[0]
    if voters < FEWEST_VOTERS:
        return 0, f"{voters:,} voters a candidate are fewer than {FEWEST_VOTERS:,}: {first.name}, the first, is kept"
    better = [
        place
        for place, score in enumerate(scores)
        if score.accuracy - first.accuracy > CLEARLY_BETTER * math.sqrt(score.variance + first.variance)
    ]
    if not better:
        return 0, f"none is better than {first.name}, the first, by {CLEARLY_BETTER} standard errors of the difference"
    best = max(better, key=lambda place: scores[place].accuracy)
    gain, error = scores[best].accuracy - first.accuracy, math.sqrt(scores[best].variance + first.variance)
    return best, f"{scores[best].name} is better than {first.name}, the first, by {gain:.4f} +- {error:.4f}"


def evaluated_model(evaluation: Evaluation, tally: Tally, arrivals: Arrivals | None = None) -> NaiveBayes:
    """The chosen candidate, with its accuracy and what both rounds together cost a device.

    A device answers one campaign of a study, so that the worse of the rounds holds, locally and of what is published,
    under the conditions of both. ``arrivals`` are those of the round, where that is known: then its relays' words and
    what is in the sums twice stand beside those of training.
    """
    campaign = evaluation.campaign
    model = campaign.candidates[evaluation.chosen].model
    training = dict(model.training)
    stated = training.get("guarantee")
    if stated is None or "published" not in training:
        raise ValueError(f"candidate {evaluation.winner.name} does not say how it was trained, nor what that cost")
    guarantee = Guarantee(**{**stated, "public": tuple(stated["public"])})
    if guarantee.epsilon is not None:
        guarantee = replace(guarantee, epsilon=max(guarantee.epsilon, campaign.privacy.epsilon))
    of_training = PublishedGuarantee(**training["published"])
    of_votes = published_by([(campaign, tally)], () if arrivals is None else (arrivals,))
    conditions = dict.fromkeys((*of_training.conditions, *of_votes.conditions))
    published = replace(max((of_training, of_votes), key=_epsilon), conditions=tuple(conditions))
    if arrivals is not None:
        twice, before = counted_twice([arrivals]), training.get("counted_twice", {})
        training["relayed"] = [*training.get("relayed", ()), relayed(campaign, arrivals).to_json()]
        training["counted_twice"] = {key: number + before.get(key, 0) for key, number in twice.items()}
    training |= {
        "evaluation": evaluation.to_json(),
        "guarantee": guarantee.to_json(),
        "published": published.to_json(),
    }
    return NaiveBayes.from_model(replace(model, training=training), guarantee)


def _epsilon(guarantee: Guarantee) -> float:
    return math.inf if guarantee.epsilon is None else guarantee.epsilon


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
