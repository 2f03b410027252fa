"""From tallies to a Naive Bayes model, in steps: what was told, what is believed, the tables, and what is said of them.

``docs/accuracy.md`` explains each step; :mod:`ldp_aggregator.learning.prediction` says what to expect of the model,
:mod:`ldp_aggregator.learning.lies` what lying devices can have done to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.counting.arrivals import Arrivals
from ldp_aggregator.counting.tally import Tally
from ldp_aggregator.estimation.estimates import Estimates, estimate
from ldp_aggregator.estimation.estimators import Cells, QuestionEstimate
from ldp_aggregator.estimation.moments import (
    DEFAULT_VARIANCE_FLOOR,
    Moments,
    present_shares,
    rebuild_moments,
    shrink_moments,
)
from ldp_aggregator.estimation.pooling import pool, pool_classes
from ldp_aggregator.estimation.posterior.tables import Posterior, posterior_of
from ldp_aggregator.estimation.simplex import FLOOR, NONE, POSTERIOR, TRAINING_MODES, floor, norm_sub
from ldp_aggregator.learning.guarantee import LOCAL_PUBLIC, LOCAL_RELATION, Guarantee
from ldp_aggregator.learning.lies import found_by_lying
from ldp_aggregator.learning.naive_bayes import NaiveBayes, discrete_likelihood
from ldp_aggregator.learning.prediction import predict_accuracy
from ldp_aggregator.learning.published import counted_twice, epsilon_of_studies, published_by, relayed, studies_of
from protocols import Campaign
from protocols.document.authored import MODEL
from protocols.document.projection import Projection
from protocols.document.questions import LABEL, PAIR, SQUARE, VALUE
from protocols.document.schema import ContinuousFeature, Feature, is_gaussian
from protocols.model import GaussianLikelihood, Likelihood, Model

Array = NDArray[np.float64]
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

    Raises
    ------
    ValueError
        For campaigns that do not share label and features, and for unknown modes.
    """
    pairs = [(campaign, _given(tally))] if isinstance(campaign, Campaign) else list(campaign)
    how = Decoding(post, prior, float(smoothing), variance_floor, shrinkage)
    _check(pairs, how, arrivals)
    learned = learn(pairs, how)
    studies = studies_of(one for one, _ in pairs)
    guarantee = Guarantee(epsilon_of_studies(studies), 0.0, LOCAL_RELATION, LOCAL_PUBLIC)
    training: dict[str, Any] = {
        "campaigns": [one.id for one, _ in pairs],
        "reports": int(sum(its_tally.n.sum() for _, its_tally in pairs)),
        **asdict(how),
        "insufficient": learned.insufficient,
        "guarantee": guarantee.to_json(),
        "studies": studies,
        "published": published_by(pairs, arrivals or ()).to_json(),
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


@dataclass(frozen=True)
class Learned:
    """A model and what it was made of: the ``estimates`` of each campaign, the questions among theirs that tell the
    classes, P(class) as these say it, unbiased (``shares``), and what is believed given all of them. ``insufficient``
    has the classes of Gaussian features of which too little is known.
    """

    estimates: Sequence[Estimates]
    telling: Sequence[QuestionEstimate]
    shares: Cells
    posterior: Posterior
    model: Model
    insufficient: Mapping[str, Sequence[str]]


def learn(pairs: Pairs, how: Decoding, telling: Sequence[QuestionEstimate] | None = None) -> Learned:
    """Make a model of what was counted: estimates, what is believed given them, tables and moments, and the model.

    The classes are told by the questions that ``how.prior`` names, or by ``telling``.
    """
    first, classes = pairs[0][0], pairs[0][0].label.classes
    estimates = [estimate(one, tally, post=NONE) for one, tally in pairs]
    questions = [question for one in estimates for question in one.questions]
    if telling is None:
        telling = [one for one in questions if how.prior == POOLED or one.question.kind == LABEL]
    discrete = [feature for feature in first.asked if not is_gaussian(feature)]
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
        if is_gaussian(feature):
            moments = _moments(estimates, feature, shares, how)
            mean, variance = (tuple(numbers.tolist()) for numbers in (moments.mean, moments.variance))
            likelihoods.append(GaussianLikelihood(feature, mean, variance))
            if moments.insufficient.any():
                insufficient[feature.name] = [classes[place] for place in np.flatnonzero(moments.insufficient)]
        else:  # Where a value is missing the model looks at the others: it needs P(value | class, present).
            likelihoods.append(discrete_likelihood(feature, tables[feature.name][: feature.size]))
    model = Model(first.label.name, classes, tuple(prior.tolist()), tuple(likelihoods), first.projection)
    return Learned(estimates, telling, shares, posterior, model, insufficient)


def _given(tally: Tally | None) -> Tally:
    if tally is None:
        raise TypeError("train(campaign, tally) needs the tally")
    return tally


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
                "projection, an evaluation round tells how good a model is; neither is trained on"
            )
    for other, _ in pairs[1:]:
        _check_same_schema(pairs[0][0], other)


def _check_same_schema(first: Campaign, other: Campaign) -> None:
    same_label = first.label.to_json() | {"weight": None} == other.label.to_json() | {"weight": None}
    mine, theirs = ([f.to_json() | {"weight": 1} for f in c.asked] for c in (first, other))
    if not same_label or mine != theirs or _unweighted(first.projection) != _unweighted(other.projection):
        raise ValueError(f"campaigns {first.id} and {other.id} do not have the same label and features")


def _unweighted(projection: Projection | None) -> Projection | None:
    """Rounds may ask an output more or less often."""
    if projection is None:
        return None
    return replace(projection, outputs=tuple(replace(output, weight=1) for output in projection.outputs))


def _moments(estimates: Sequence[Estimates], feature: ContinuousFeature, shares: Cells, how: Decoding) -> Moments:
    """Return mean and variance of every class, pooled over the campaigns, shrunk where ``how`` says so."""
    asked = [[one.asking(feature.name, kind) for one in estimates] for kind in (VALUE, SQUARE)]
    value, square = map(pool, asked)
    present = present_shares(shares, [one for of_kind in asked for one in of_kind])
    moments = rebuild_moments(feature, value, square, present, variance_floor=how.variance_floor)
    if not how.shrinkage:
        return moments
    return shrink_moments(moments, feature, value, square, present, variance_floor=how.variance_floor)


def _table(estimates: Sequence[Estimates], feature: Feature, how: Decoding) -> Array:
    """Return non-negative weights of shape (values, k) from the joint table of a discrete feature."""
    asked = [one.asking(feature.name, PAIR) for one in estimates]
    reports, values = sum(one.n for one in asked), pool(asked).value
    joint = floor(values, reports) if how.post == FLOOR else norm_sub(values) * reports + how.smoothing
    return joint.reshape(-1, len(estimates[0].campaign.label.classes))
