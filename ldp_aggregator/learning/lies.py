"""What lying devices can have done to a model: found by training again on what they would have sent.

An estimate has an exact bound (:mod:`ldp_aggregator.estimation.poisoning`), and so have the shares of the classes. A
table has none that is worth telling: what is believed of one number depends on all others. So one device in a hundred
is taken to lie, the tally that these lies make is learned from by the same code, and the change told is the one that
was *found*: liars may know worse ways.

All liars name the rarest class, whose numbers a lie moves the furthest, with the value of a feature that is least like
it. Each feature is lied about by all of them in turn; the shares of the classes are those of the honest tally then.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ldp_aggregator.counting.tally import Tally
from ldp_aggregator.estimation.estimators import QuestionEstimate
from ldp_aggregator.estimation.poisoning.reports import report_that_names
from protocols import Campaign, Question
from protocols.document.questions import PAIR, SIGN, SQUARE, signs_of
from protocols.model import DiscreteLikelihood, GaussianLikelihood, Likelihood, Model

if TYPE_CHECKING:
    from ldp_aggregator.learning.training import Learned

Pairs = Sequence[tuple[Campaign, Tally]]

SHARE: Final = 0.01
"""Of the devices that lie, at least one."""


@dataclass(frozen=True)
class FoundByLying:
    """The changes that so many ``liars`` make who name the class ``named``: of P(class) at most ``classes``; of every
    feature at least as many as were found, of a P(value | class), or of a class's mean or standard deviation as a share
    of the feature's range.
    """

    liars: int
    named: str
    classes: float
    features: Mapping[str, float]

    def to_json(self) -> dict[str, Any]:
        """As a model carries it; null where nothing is known."""
        return asdict(self) | {"classes": self.classes if math.isfinite(self.classes) else None}


def found_by_lying(
    pairs: Pairs, learned: Learned, again: Callable[[Pairs, Sequence[QuestionEstimate]], Learned]
) -> FoundByLying:
    """Learn ``again`` from what was counted had one device in a hundred lied, and return the changes.

    ``again`` takes tallies and the estimates that tell the classes.
    """
    model, liars = learned.model, math.ceil(SHARE * sum(_devices(*pair) for pair in pairs)) or 1
    rarest = min(range(len(model.classes)), key=lambda c: model.prior[c])
    lied = again([(campaign, _lied_to(campaign, tally, model, rarest, liars)) for campaign, tally in pairs],
                 learned.telling).model  # fmt: skip
    changes = {
        before.feature.name: _change(before, after)
        for before, after in zip(model.likelihoods, lied.likelihoods, strict=True)
    }
    # What is pooled is a mean of the campaigns' shares, so that no lie moves it further than the worst of them.
    worst = max(one.class_prior_per_liar for one in learned.estimates)
    return FoundByLying(liars, model.classes[rarest], min(1.0, liars * worst), changes)


def _devices(campaign: Campaign, tally: Tally) -> int:
    reports = [0] * (1 + max(question.group for question in campaign.questions))
    for question, n in zip(campaign.questions, tally.n.tolist(), strict=True):
        reports[question.group] += n
    return max(reports) if campaign.privacy.answers == "all" else sum(reports)


def _lied_to(campaign: Campaign, tally: Tally, model: Model, named: int, liars: int) -> Tally:
    """Return the tally as it would be if of the devices that were asked about each feature so many had lied."""
    of_feature = {one.feature.name: one for one in model.likelihoods}
    lied = Tally(campaign)
    for question, n, counts in zip(campaign.questions, tally.n.tolist(), tally.counts, strict=True):
        likelihood = of_feature.get(question.feature or "")
        if likelihood is None or n == 0:
            lied.add(question.index, n, counts)
            continue
        # Who lies about a number answers either its value or its square.
        lies = min(n, liars if question.kind == PAIR else -(-liars // 2))
        honest = np.rint(counts * ((n - lies) / n)).astype(np.int64)
        item = _named_item(question, likelihood, named, len(model.classes))
        lied.add(question.index, n, honest + lies * report_that_names(question, item))
    return lied


def _named_item(question: Question, likelihood: Likelihood, named: int, classes: int) -> int:
    if isinstance(likelihood, DiscreteLikelihood):
        value = min(range(len(likelihood.table)), key=lambda v: likelihood.table[v][named])
        return value * classes + named
    middle = (likelihood.feature.low + likelihood.feature.high) / 2
    high = question.kind == SQUARE or likelihood.mean[named] < middle
    places = signs_of(question, classes) if question.encoding == SIGN else 2
    return places * named + high


def _change(before: Likelihood, after: Likelihood) -> float:
    if isinstance(before, DiscreteLikelihood) and isinstance(after, DiscreteLikelihood):
        return float(np.abs(np.array(before.table) - np.array(after.table)).max())
    if isinstance(before, GaussianLikelihood) and isinstance(after, GaussianLikelihood):
        means = np.abs(np.array(before.mean) - np.array(after.mean))
        deviations = np.abs(np.sqrt(before.variance) - np.sqrt(after.variance))
        return float(max(means.max(), deviations.max()) / (before.feature.high - before.feature.low))
    raise AssertionError("a feature has one kind of likelihood")
