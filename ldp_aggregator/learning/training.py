"""Train Naive Bayes from tallies: estimates, posterior, tables, and the model's own figures.

``docs/accuracy.md`` explains each step, and :mod:`ldp_aggregator.learning.expected_accuracy` what to expect of a model.

What lying devices can have done to a model is found by training again on what they would have sent. An estimate has an
exact bound (:mod:`ldp_aggregator.estimation.poisoning`), and so have the shares of the classes. A table has none that
is worth telling: what is believed of one number depends on all others. So one device in a hundred is taken to lie, the
tally that these lies make is learned from by the same code, and the change told is the one that was *found*: liars may
know worse ways.

All liars name one cell of a feature: a class, with the value that is least like it. Each feature is lied about by all
of them in turn, the shares of the classes being those of the honest tally, and the rarest classes are named in turn.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.counting.tally import Arrivals, Tally, devices_counted
from ldp_aggregator.estimation.cells import Array, Cells
from ldp_aggregator.estimation.estimates import Estimates, estimate
from ldp_aggregator.estimation.estimators import QuestionEstimate, pool, pool_classes
from ldp_aggregator.estimation.moments import (
    DEFAULT_VARIANCE_FLOOR,
    Moments,
    present_shares,
    rebuild_moments,
    shrink_moments,
)
from ldp_aggregator.estimation.poisoning import report_that_names
from ldp_aggregator.estimation.posterior import posterior_of
from ldp_aggregator.estimation.simplex import FLOOR, NONE, POSTERIOR, TRAINING_MODES, floor, norm_sub
from ldp_aggregator.guarantees import counted_twice, local_guarantee, published_by, relayed, studies_of
from ldp_aggregator.learning.expected_accuracy import Learned, predict_accuracy
from ldp_aggregator.learning.naive_bayes import NaiveBayes, discrete_likelihood
from ldp_aggregator.learning.series import ALL_WINDOWS, NOW, present
from ldp_protocols import Campaign, Question
from ldp_protocols.document.authored import MODEL
from ldp_protocols.document.model import DiscreteLikelihood, GaussianLikelihood, Likelihood, Model
from ldp_protocols.document.questions import LABEL, PAIR, SIGN, SQUARE, VALUE, signs_of
from ldp_protocols.document.schema import Projection
from ldp_protocols.features import Feature, NumericFeature

Pairs = Sequence[tuple[Campaign, Tally]]

POOLED: Final = "pooled"
LABEL_ONLY: Final = "label"


def train(
    campaign: Campaign | Pairs,
    tally: Tally | None = None,
    *,
    post: str = POSTERIOR,
    prior: str = POOLED,
    smoothing: float = 1.0,
    variance_floor: float = DEFAULT_VARIANCE_FLOOR,
    shrinkage: bool = True,
    arrivals: Sequence[Arrivals] | None = None,
    window: str = ALL_WINDOWS,
) -> NaiveBayes:
    """Train Naive Bayes from one campaign's tally, or from several ``(campaign, tally)`` pairs over the same schema.

    Training is post-processing: it costs no privacy beyond what the reports already spent.

    Parameters
    ----------
    campaign, tally
        The campaign and its tally; or a sequence of such pairs and nothing else.
    post
        ``posterior`` (shrunk by the known noise, see :mod:`ldp_aggregator.estimation.posterior`), ``norm_sub``
        (nearest probabilities) or ``floor`` (negative counts become 1, as Yilmaz et al. 2019). Gaussian features have
        their own ``shrinkage`` under all of them.
    prior
        ``pooled`` takes the classes from every question that carries them, by inverse variance; ``label`` from the
        label question alone.
    smoothing
        Pseudo-count per cell under ``norm_sub``, so that no value is impossible; ``floor`` needs none.
    variance_floor
        Least variance of a Gaussian feature, relative to (high - low)^2; stated in the model because accuracy depends
        on it.
    shrinkage
        Draw the moments of a Gaussian feature towards those of all classes, by the known noise (see
        :mod:`ldp_aggregator.estimation.moments`); False takes them as estimated.
    arrivals
        How the reports of each campaign came, where that is known: the model then tells which guarantee holds behind
        their relays, and which reports are in the tallies twice.
    window
        Of campaigns with windows: ``all`` takes what devices answered in all windows alike, ``now`` as much of each as
        a filter over windows gives it in the present (see :mod:`ldp_aggregator.learning.series`).

    Raises
    ------
    ValueError
        For campaigns that do not share label and features, and for unknown modes.
    """
    if isinstance(campaign, Campaign):
        if tally is None:
            raise TypeError("train(campaign, tally) needs the tally")
        campaign = [(campaign, tally)]
    counted = list(campaign)
    if window not in (ALL_WINDOWS, NOW):
        raise ValueError(f"window must be {ALL_WINDOWS} or {NOW}, not {window!r}")
    pairs = [(one, present(one, its) if window == NOW else its.pooled()) for one, its in counted]
    how = Decoding(post, prior, float(smoothing), variance_floor, shrinkage)
    _check(pairs, how, arrivals)
    learned = learn(pairs, how)
    studies = studies_of(one for one, _ in pairs)
    guarantee = local_guarantee(studies)
    training: dict[str, Any] = {
        "campaigns": [one.id for one, _ in pairs],
        "reports": int(sum(its_tally.n.sum() for _, its_tally in counted)),
        **({"window": window} if window == NOW else {}),
        **asdict(how),
        "insufficient": learned.insufficient,
        "guarantee": guarantee.to_json(),
        "studies": studies,
        "published": published_by(counted, arrivals or ()).to_json(),
        "expected": predict_accuracy(learned).to_json(),
        "lies": found_by_lying(pairs, learned, lambda lied, telling: learn(lied, how, telling)).to_json(),
    }
    if arrivals is not None:
        training["relayed"] = [relayed(one, came).to_json() for (one, _), came in zip(pairs, arrivals, strict=True)]
        training["counted_twice"] = counted_twice(arrivals)
    return NaiveBayes.from_model(replace(learned.model, training=training), guarantee)


@dataclass(frozen=True)
class Decoding:
    """The options of :func:`train`, by which tables are made of reports."""

    post: str = POSTERIOR
    prior: str = POOLED
    smoothing: float = 1.0
    variance_floor: float = DEFAULT_VARIANCE_FLOOR
    shrinkage: bool = True


def learn(pairs: Pairs, how: Decoding, telling: Sequence[QuestionEstimate] | None = None) -> Learned:
    """Make a model of what was counted: estimates, what is believed given them, tables and moments, and the model.

    The classes are told by the questions that ``how.prior`` names, or by ``telling``.
    """
    first, classes = pairs[0][0], pairs[0][0].label.classes
    estimates = [estimate(one, tally, post=NONE) for one, tally in pairs]
    questions = [question for one in estimates for question in one.questions]
    if telling is None:
        telling = [one for one in questions if how.prior == POOLED or one.question.kind == LABEL]
    discrete = [feature for feature in first.asked if feature.moments is None]
    posterior = posterior_of(discrete, len(classes), questions, telling)
    shares = pool_classes(telling, len(classes), shared_records=any(one.privacy.answers == "all" for one, _ in pairs))
    tables, prior = posterior.tables, posterior.classes.value
    if how.post != POSTERIOR:
        tables = {feature.name: _table(estimates, feature, how) for feature in discrete}
        counts = norm_sub(shares.value) * sum(int(tally.n.sum()) for _, tally in pairs) + 1
        prior = counts / counts.sum()  # One pseudo-report a class, so that no class is impossible.
    likelihoods: list[Likelihood] = []
    insufficient: dict[str, list[str]] = {}
    for feature in first.asked:
        if feature.moments is not None:
            moments = _moments(estimates, feature.moments, shares, how)
            mean, variance = (tuple(numbers.tolist()) for numbers in (moments.mean, moments.variance))
            likelihoods.append(GaussianLikelihood(feature.moments, mean, variance))
            if moments.insufficient.any():
                insufficient[feature.name] = [classes[place] for place in np.flatnonzero(moments.insufficient)]
        else:  # Where a value is missing the model looks at the others: it needs P(value | class, present).
            likelihoods.append(discrete_likelihood(feature, tables[feature.name][: feature.size]))
    model = Model(first.label.name, classes, tuple(prior.tolist()), tuple(likelihoods), first.projection)
    return Learned(estimates, telling, shares, posterior, model, insufficient)


def _check(pairs: Pairs, how: Decoding, arrivals: Sequence[Arrivals] | None) -> None:
    if not pairs:
        raise ValueError("train needs at least one (campaign, tally)")
    if how.post not in TRAINING_MODES:
        raise ValueError(f"post must be {', '.join(TRAINING_MODES[:-1])} or {FLOOR} for training, not {how.post!r}")
    if not 0 < how.variance_floor < 0.25:
        raise ValueError(f"variance_floor must be above 0 and below 0.25 (all of the range), not {how.variance_floor}")
    if how.prior not in (POOLED, LABEL_ONLY):
        raise ValueError(f"prior must be {POOLED} or {LABEL_ONLY}, not {how.prior!r}")
    if how.prior == LABEL_ONLY and not any(one.kind == LABEL for campaign, _ in pairs for one in campaign.questions):
        raise ValueError("prior 'label' needs a label question; these campaigns ask none (label weight 0)")
    if arrivals is not None and len(arrivals) != len(pairs):
        raise ValueError(f"arrivals are told of {len(arrivals)} campaigns, and there are {len(pairs)}")
    for one, _ in pairs:
        if one.asks != MODEL:
            raise ValueError(
                f'campaign {one.id} has "asks": "{one.asks}" and asks not for a model: a moments round fits a '
                "projection, an evaluation round tells how good a model is, and without a label estimates are what is "
                "learned; none is trained on"
            )
    first = pairs[0][0]
    for other, _ in pairs[1:]:
        same_label = first.label.to_json() | {"weight": None} == other.label.to_json() | {"weight": None}
        mine, theirs = ([f.to_json() | {"weight": 1} for f in c.asked] for c in (first, other))
        if not same_label or mine != theirs or _unweighted(first.projection) != _unweighted(other.projection):
            raise ValueError(f"campaigns {first.id} and {other.id} do not have the same label and features")


def _unweighted(projection: Projection | None) -> Projection | None:
    """Rounds may ask an output more or less often."""
    if projection is None:
        return None
    return replace(projection, outputs=tuple(replace(output, weight=1) for output in projection.outputs))


def _moments(estimates: Sequence[Estimates], feature: NumericFeature, shares: Cells, how: Decoding) -> Moments:
    """Mean and variance of every class, pooled over the campaigns, shrunk where ``how`` says so."""
    questions = [[one.asking(feature.name, kind) for one in estimates] for kind in (VALUE, SQUARE)]
    value, square = map(pool, questions)
    present = present_shares(shares, [one for of_kind in questions for one in of_kind])
    moments = rebuild_moments(feature, value, square, present, variance_floor=how.variance_floor)
    if not how.shrinkage:
        return moments
    return shrink_moments(moments, feature, value, square, present, variance_floor=how.variance_floor)


def _table(estimates: Sequence[Estimates], feature: Feature, how: Decoding) -> Array:
    """Non-negative weights of shape (values, k) from the joint table of a discrete feature."""
    questions = [one.asking(feature.name, PAIR) for one in estimates]
    reports, values = sum(one.n for one in questions), pool(questions).value
    joint = floor(values, reports) if how.post == FLOOR else norm_sub(values) * reports + how.smoothing
    return joint.reshape(-1, len(estimates[0].campaign.label.classes))


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
    """Learn ``again`` from what was counted had one device in a hundred lied (with an issuer one person in a hundred,
    with all their answers), and return the changes.

    ``again`` takes tallies and the estimates that tell the classes.
    """
    model = learned.model
    answers = max(one.answers_of_a_person for one, _ in pairs)
    devices = sum(devices_counted(one, tally.n.tolist()) for one, tally in pairs)
    liars = math.ceil(SHARE * devices / answers) or 1
    lying = liars * answers
    furthest, worst = dict.fromkeys((one.feature.name for one in model.likelihoods), 0.0), (-1.0, "")
    for named in np.argsort(model.prior, kind="stable")[:_NAMED].tolist():
        lied = again([(one, _lied_to(one, tally, model, named, lying)) for one, tally in pairs], learned.telling)
        for before, after in zip(model.likelihoods, lied.model.likelihoods, strict=True):
            change = float(np.abs(_numbers(before) - _numbers(after)).max())
            furthest[before.feature.name] = max(furthest[before.feature.name], change)
            worst = max(worst, (change, model.classes[named]), key=lambda one: one[0])
    # What is pooled is a mean of the campaigns' shares, so that no lie moves it further than the worst of them.
    bound = min(1.0, liars * max(one.class_prior_per_liar for one in learned.estimates))
    return FoundByLying(liars, worst[1], bound, furthest)


def _lied_to(campaign: Campaign, tally: Tally, model: Model, named: int, lying: int) -> Tally:
    """The tally as it would be if of the devices that were asked about each feature so many had lied."""
    of_feature = {one.feature.name: one for one in model.likelihoods}
    lied = Tally(tally.campaign)
    lied.merge(tally)
    for question, n, counts in zip(campaign.questions, tally.n.tolist(), lied.counts, strict=True):
        likelihood = of_feature.get(question.feature or "")
        if likelihood is not None and n:
            # Who lies about a number answers either its value or its square.
            lies = min(n, lying if question.kind == PAIR else -(-lying // 2))
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
    """P(value | class), or means and standard deviations in ranges of the feature."""
    if isinstance(likelihood, DiscreteLikelihood):
        return np.array(likelihood.table)
    feature = likelihood.feature
    return np.array([likelihood.mean, np.sqrt(likelihood.variance)]) / (feature.high - feature.low)
