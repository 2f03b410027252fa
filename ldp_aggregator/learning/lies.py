"""Find what lying devices can have done to a model, by training again on what they would have sent.

An estimate has an exact bound (:mod:`ldp_aggregator.estimation.poisoning`), and so have the shares of the classes. A
table has none that is worth telling: what is believed of one number depends on all others. So one device in a hundred
is taken to lie, the tally that these lies make is learned from by the same code, and the change told is the one that
was *found*: liars may know worse ways.

All liars name one cell of a feature: a class, with the value that is least like it. Each feature is lied about by all
of them in turn, the shares of the classes being those of the honest tally, and the rarest classes are named in turn.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.counting.tally import Tally, devices_counted
from ldp_aggregator.estimation.estimators import QuestionEstimate
from ldp_aggregator.estimation.poisoning.reports import report_that_names
from protocols import Campaign, Question
from protocols.document.questions import PAIR, SIGN, SQUARE, signs_of
from protocols.model import DiscreteLikelihood, Likelihood, Model

if TYPE_CHECKING:
    from ldp_aggregator.learning.training import Learned

Pairs = Sequence[tuple[Campaign, Tally]]

SHARE: Final = 0.01
"""The share of the devices that is taken to lie, one device at least."""

_NAMED: Final = 3
"""Classes, the rarest first: a lie moves their numbers the furthest."""


@dataclass(frozen=True)
class FoundByLying:
    """The largest changes found that so many ``liars`` make: of every feature at least as much, of a P(value | class),
    or of a class's mean or standard deviation as a share of the feature's range; of P(class) at most ``classes``, a
    bound. The class ``named`` is the one that made the largest of them.
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
    model = learned.model
    liars = math.ceil(SHARE * sum(devices_counted(one, tally.n.tolist()) for one, tally in pairs)) or 1
    furthest, worst = dict.fromkeys((one.feature.name for one in model.likelihoods), 0.0), (-1.0, "")
    for named in np.argsort(model.prior, kind="stable")[:_NAMED].tolist():
        lied = again([(one, _lied_to(one, tally, model, named, liars)) for one, tally in pairs], learned.telling)
        for before, after in zip(model.likelihoods, lied.model.likelihoods, strict=True):
            change = float(np.abs(_numbers(before) - _numbers(after)).max())
            furthest[before.feature.name] = max(furthest[before.feature.name], change)
            worst = max(worst, (change, model.classes[named]), key=lambda one: one[0])
    # What is pooled is a mean of the campaigns' shares, so that no lie moves it further than the worst of them.
    bound = min(1.0, liars * max(one.class_prior_per_liar for one in learned.estimates))
    return FoundByLying(liars, worst[1], bound, furthest)


def _lied_to(campaign: Campaign, tally: Tally, model: Model, named: int, liars: int) -> Tally:
    """Return the tally as it would be if of the devices that were asked about each feature so many had lied."""
    of_feature = {one.feature.name: one for one in model.likelihoods}
    lied = Tally(campaign)
    lied.merge(tally)
    for question, n, counts in zip(campaign.questions, tally.n.tolist(), lied.counts, strict=True):
        likelihood = of_feature.get(question.feature or "")
        if likelihood is not None and n:
            # Who lies about a number answers either its value or its square.
            lies = min(n, liars if question.kind == PAIR else -(-liars // 2))
            item = _named_item(question, likelihood, named, len(model.classes))
            counts[:] = np.rint(counts * ((n - lies) / n)) + lies * report_that_names(question, item)
    return lied


def _named_item(question: Question, likelihood: Likelihood, named: int, classes: int) -> int:
    if isinstance(likelihood, DiscreteLikelihood):
        value = min(range(len(likelihood.table)), key=lambda v: likelihood.table[v][named])
        return value * classes + named
    middle = (likelihood.feature.low + likelihood.feature.high) / 2
    high = question.kind == SQUARE or likelihood.mean[named] < middle
    places = signs_of(question, classes) if question.encoding == SIGN else 2
    return places * named + high


def _numbers(likelihood: Likelihood) -> NDArray[np.float64]:
    """Return P(value | class), or means and standard deviations in ranges of the feature."""
    if isinstance(likelihood, DiscreteLikelihood):
        return np.array(likelihood.table)
    feature = likelihood.feature
    return np.array([likelihood.mean, np.sqrt(likelihood.variance)]) / (feature.high - feature.low)
