"""From tallies to a Naive Bayes model: class prior, tables, rebuilt Gaussians, weights, and what to expect of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.counting.arrivals import Arrivals
from ldp_aggregator.counting.tally import Tally
from ldp_aggregator.estimation.estimates import Estimates, estimate
from ldp_aggregator.estimation.estimators import Cells, QuestionEstimate
from ldp_aggregator.estimation.joint import JointTable, pool_tables
from ldp_aggregator.estimation.moments import DEFAULT_VARIANCE_FLOOR, Moments, present_shares, rebuild_moments
from ldp_aggregator.estimation.pooling import pool, pool_classes, pool_covariance
from ldp_aggregator.estimation.posterior.tables import Posterior, posterior_of
from ldp_aggregator.estimation.shrinkage import shrink_moments
from ldp_aggregator.estimation.simplex import FLOOR, NORM_SUB, POSTERIOR, TRAINING_MODES, floor, norm_sub
from ldp_aggregator.learning.guarantee import LOCAL_RELATION, Guarantee
from ldp_aggregator.learning.model_poisoning import model_reach
from ldp_aggregator.learning.naive_bayes import NaiveBayes, discrete_likelihood
from ldp_aggregator.learning.posterior_poisoning import PosteriorLies
from ldp_aggregator.learning.prediction import predict_accuracy
from ldp_aggregator.learning.published import published_by
from ldp_aggregator.learning.redundancy import feature_weights
from ldp_aggregator.learning.relays import counted_twice, relayed
from protocols import Campaign
from protocols.document.campaign import MODEL
from protocols.document.projection import Projection
from protocols.document.questions import LABEL, SQUARE, VALUE, is_gaussian
from protocols.document.schema import ContinuousFeature, Feature
from protocols.model import GaussianLikelihood, Likelihood, Model

Array = NDArray[np.float64]

POOLED: Final = "pooled"
LABEL_ONLY: Final = "label"

TAKEN_AS_GIVEN: Final = (
    "how large the features' effects are",
    "how reliable the reports are taken to be",
    "the weights of the features",
)
"""What the bounds of a model trained with ``posterior`` take to be as it is, lies or not."""

_PUBLIC: Final = ("the campaign document", "which question a device answered")


def train(
    campaign: Campaign | Sequence[tuple[Campaign, Tally]],
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
        ``posterior`` (shrunk by the known noise, see :mod:`ldp_aggregator.estimation.posterior`, with weights for
        features that repeat each other, see :mod:`ldp_aggregator.learning.redundancy`), ``norm_sub`` (nearest
        probabilities) or ``floor`` (negative counts become 1, as Yilmaz et al. 2019). Gaussian features have their own
        ``shrinkage`` under all of them.
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
        :mod:`ldp_aggregator.estimation.shrinkage`); False takes them as estimated.
    arrivals
        How the reports of each campaign came, where that is known: the model then tells which guarantee holds behind
        their relays, and which reports are in the tallies twice.

    Raises
    ------
    ValueError
        For campaigns that do not share label and features, and for unknown modes.
    """
    pairs = [(campaign, _given(tally))] if isinstance(campaign, Campaign) else list(campaign)
    if not pairs:
        raise ValueError("train needs at least one (campaign, tally)")
    if post not in TRAINING_MODES:
        raise ValueError(f"post must be {', '.join(TRAINING_MODES[:-1])} or {FLOOR} for training, not {post!r}")
    if not 0 < variance_floor < 0.25:
        raise ValueError(f"variance_floor must be above 0 and below 0.25 (all of the range), not {variance_floor}")
    if prior not in (POOLED, LABEL_ONLY):
        raise ValueError(f"prior must be {POOLED} or {LABEL_ONLY}, not {prior!r}")
    if arrivals is not None and len(arrivals) != len(pairs):
        raise ValueError(f"arrivals are told of {len(arrivals)} campaigns, and there are {len(pairs)}")
    first = pairs[0][0]
    for one, _ in pairs:
        if one.asks != MODEL:
            raise ValueError(
                f'campaign {one.id} has "asks": "{one.asks}" and asks not for a model: a moments round fits a '
                "projection, an evaluation round chooses among models; neither is trained on"
            )
    for other, _ in pairs[1:]:
        _check_same_schema(first, other)
    estimates = [estimate(one, its_tally, post=FLOOR if post == FLOOR else NORM_SUB) for one, its_tally in pairs]
    telling = _prior_questions(estimates, prior)
    posterior = believe(estimates, telling)
    shared = any(one.campaign.privacy.answers == "all" for one in estimates)
    shares = pool_classes(telling, len(first.label.classes), shared_records=shared)
    gaussian: dict[str, Moments] = {}
    likelihoods: list[Likelihood] = []
    insufficient: dict[str, list[str]] = {}
    for feature in first.asked:
        if isinstance(feature, ContinuousFeature) and is_gaussian(feature):
            asked = [[one.asking(feature.name, kind) for one in estimates] for kind in (VALUE, SQUARE)]
            (value, square), together = map(pool, asked), pool_covariance(*asked)
            present = present_shares(shares, [one for of_kind in asked for one in of_kind])
            moments = rebuild_moments(feature, value, square, present, together, variance_floor=variance_floor)
            if shrinkage:
                moments = shrink_moments(moments, feature, value, square, present, variance_floor=variance_floor)
            gaussian[feature.name] = moments
            likelihoods.append(
                GaussianLikelihood(feature, tuple(moments.mean.tolist()), tuple(moments.variance.tolist()))
            )
            names = [name for name, flag in zip(first.label.classes, moments.insufficient, strict=True) if flag]
            if names:
                insufficient[feature.name] = names
        else:
            if post == POSTERIOR:
                table = posterior.features[feature.name].table
            else:
                tables = [one.table(feature.name) for one in estimates]
                table = _table(tables, len(first.label.classes), post, smoothing)
            # Where a value is missing the model looks at the others: it needs P(value | class, present).
            likelihoods.append(discrete_likelihood(feature, table[: feature.size]))
    reports = int(sum(its_tally.n.sum() for _, its_tally in pairs))
    class_prior = _usable_prior(shares, reports)
    if post == POSTERIOR:
        class_prior = tuple(posterior.classes.value.tolist())
        weights = feature_weights(likelihoods, posterior.classes.value, posterior.explained)
        likelihoods = [replace(one, weight=weight) for one, weight in zip(likelihoods, weights, strict=True)]
    lies = PosteriorLies(posterior, estimates, telling) if post == POSTERIOR else None
    guarantee = Guarantee(_total_epsilon([one for one, _ in pairs]), 0.0, LOCAL_RELATION, _PUBLIC)
    training: dict[str, Any] = {
        "campaigns": [one.id for one, _ in pairs],
        "reports": reports,
        "post": post,
        "prior": prior,
        "smoothing": smoothing,
        "variance_floor": variance_floor,
        "shrinkage": shrinkage,
        "insufficient": insufficient,
        "guarantee": guarantee.to_json(),
        "published": published_by(pairs, arrivals or ()).to_json(),
        "poisoning": [
            model_reach(
                estimates,
                telling,
                shares,
                gaussian,
                liars,
                post=post,
                smoothing=smoothing,
                variance_floor=variance_floor,
                shrinkage=shrinkage,
                believed=lies,
            ).to_json()
            for liars in (1, _hundredth(pairs))
        ],
        "poisoning_takes_as_given": list(TAKEN_AS_GIVEN) if post == POSTERIOR else [],
    }
    if arrivals is not None:
        training["relayed"] = [relayed(one, came).to_json() for (one, _), came in zip(pairs, arrivals, strict=True)]
        training["counted_twice"] = counted_twice(arrivals)
    model = Model(
        label=first.label.name,
        classes=first.label.classes,
        prior=class_prior,
        likelihoods=tuple(likelihoods),
        projection=first.projection,
        training=training,
    )
    predicted = predict_accuracy(model, posterior).to_json()
    return NaiveBayes.from_model(replace(model, training={**training, "predicted_accuracy": predicted}), guarantee)


def believe(estimates: Sequence[Estimates], telling: Sequence[QuestionEstimate]) -> Posterior:
    """What is believed given the reports to all campaigns; ``telling`` are the questions that tell the classes.

    ``squared_effect`` of a feature is what a second round asks about it in proportion to the root of.
    """
    first = estimates[0].campaign
    sizes = {one.name: one.size for one in first.asked if not _is_gaussian(one)}
    open_ones = {one.name for one in first.asked if one.name in sizes and one.missing}
    ordered = {one.name for one in first.asked if one.ordered}
    questions = [question for one in estimates for question in one.questions]
    shares: dict[str, float] = {}
    for name in [one.name for one in first.asked if one.name not in sizes and one.missing]:
        told = [one.missing[name].cells.value[0] for one in estimates if name in one.missing]
        if told:
            shares[name] = float(np.clip(told, 0.0, 1.0).mean())
    believed = posterior_of(questions, telling, len(first.label.classes), sizes, open_ones, ordered)
    return replace(believed, missing=shares)


def _is_gaussian(feature: Feature) -> bool:
    return isinstance(feature, ContinuousFeature) and is_gaussian(feature)


def _given(tally: Tally | None) -> Tally:
    if tally is None:
        raise TypeError("train(campaign, tally) needs the tally")
    return tally


def _total_epsilon(campaigns: Sequence[Campaign]) -> float:
    """The most one device can have lost: a device answers one campaign of a study, and any campaign without one.

    The private round that a projection was fitted on is one of them: what was learned there is in the model too.
    """
    worst: dict[str, float] = {}

    def lost(study: str | None, campaign_id: str, epsilon: float) -> None:
        key = f"study {study}" if study else campaign_id
        worst[key] = max(worst.get(key, 0.0), epsilon)

    for campaign in campaigns:
        lost(campaign.study, campaign.id, campaign.privacy.epsilon)
        projection = campaign.projection
        if projection is not None and projection.fitted_epsilon is not None:
            lost(projection.fitted_study, projection.fitted_on, projection.fitted_epsilon)
    return sum(worst.values())


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


def _prior_questions(estimates: Sequence[Estimates], prior: str) -> list[QuestionEstimate]:
    """The questions of all campaigns that P(class) is taken from."""
    questions = [question for one in estimates for question in one.questions]
    if prior == LABEL_ONLY:
        questions = [question for question in questions if question.question.kind == LABEL]
        if not questions:
            raise ValueError("prior 'label' needs a label question; these campaigns ask none (label weight 0)")
    return questions


def _hundredth(pairs: Sequence[tuple[Campaign, Tally]]) -> int:
    """One device in a hundred, at least one."""
    devices = 0
    for campaign, tally in pairs:
        reports = [0] * (1 + max(question.group for question in campaign.questions))
        for question, n in zip(campaign.questions, tally.n.tolist(), strict=True):
            reports[question.group] += n
        devices += max(reports) if campaign.privacy.answers == "all" else sum(reports)
    return max(1, -(-devices // 100))


def _table(tables: Sequence[JointTable], classes: int, post: str, smoothing: float) -> Array:
    """Non-negative weights of shape (values, k) from the joint table of a discrete feature."""
    reports = sum(table.n for table in tables)
    values = pool_tables(tables).value
    joint = floor(values, reports) if post == FLOOR else norm_sub(values) * reports + smoothing
    return joint.reshape(-1, classes)


def _usable_prior(shares: Cells, reports: int) -> tuple[float, ...]:
    """The nearest probabilities, with one pseudo-report a class so that no class is impossible."""
    counts = norm_sub(shares.value) * reports + 1
    return tuple((counts / counts.sum()).tolist())
