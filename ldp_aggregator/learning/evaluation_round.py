"""Evaluate a model by the answers of devices that took no part in training.

A device answers one of two questions about one model: whether it is right (one bit, by direct encoding on two cells:
with e = exp(epsilon), n Var = e / (e - 1)^2 + a (1 - a) for an accuracy a), or where its score lies, with the class.
The cells E of the second are the joint law of score and class, unbiased, with a known covariance V. Every share that
is a sum of cells is linear in them; what is divided by a share has Fieller's interval (1954), as P(value | class) has.

The accuracy is pooled from both, by the inverse of their predicted variances. Thresholds other than the model's own are
looked at too, and the one of the largest z-score is taken where that is above :data:`CLEARLY_BETTER`. What is then told
of its accuracy is told *given that it was taken* (Lee et al. 2016, theorem 5.2): the truncated normal law of a linear
function of E given linear inequalities of E. So the number is not too high because it was chosen.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit, logsumexp, softmax
from scipy.stats import truncnorm

from ldp_aggregator.counting.tally import Arrivals, Tally
from ldp_aggregator.estimation.cells import Array, Cells
from ldp_aggregator.estimation.estimates import estimate
from ldp_aggregator.estimation.estimators import QuestionEstimate, answers, covariance_of_sums
from ldp_aggregator.estimation.evidence import covariance_of_cells
from ldp_aggregator.estimation.ratios import ratio_of
from ldp_aggregator.estimation.simplex import norm_sub
from ldp_aggregator.learning.expected_accuracy import draw_scores
from ldp_aggregator.learning.naive_bayes import NaiveBayes
from ldp_aggregator.learning.published import (
    LOCAL_PUBLIC,
    Guarantee,
    PublishedGuarantee,
    counted_twice,
    local_guarantee,
    published_by,
    relayed,
    studies_of,
    sum_up,
)
from ldp_protocols import Campaign, Question
from ldp_protocols.document.authored import FOR_PEOPLE, MOST_BINS
from ldp_protocols.document.authored import SCORE as SCORES
from ldp_protocols.document.authored import Evaluation as Asked
from ldp_protocols.document.model import DiscreteLikelihood, GaussianLikelihood, Likelihood, Model
from ldp_protocols.document.questions import RIGHT, SCORE
from ldp_protocols.drafting import score_edges

Mask = NDArray[np.bool_]

CLEARLY_BETTER: Final = 2.0
"""Standard errors of the difference by which another threshold must be better than the model's own."""

_FEWEST: Final = 100
"""Answers to a question below which nothing is told of it."""

_LONGEST_TITLE: Final = 200

_FLAT: Final = 1e-12
"""A slope below which a bound does not depend on what is told."""

_SLOPES: Final[Array] = np.round(np.arange(0.1, 1.525, 0.05), 2)
"""Numbers by which log odds may be multiplied."""

_RECORDS: Final = 20_000
"""Drawn from a model's own tables, for what a round is expected to tell."""


@dataclass(frozen=True)
class Figure:
    """An estimate with its 95 % interval; None where the answers do not tell it."""

    value: float | None
    low: float | None
    high: float | None

    @classmethod
    def of(cls, cells: Cells, place: int = 0) -> Figure:
        if not math.isfinite(cells.variance[place]):
            return cls(None, None, None)
        value, low, high = (float(one[place]) for one in (cells.value, cells.low, cells.high))
        return cls(min(max(value, 0.0), 1.0), max(low, 0.0), min(high, 1.0))


_UNTOLD: Final = Figure(None, None, None)


@dataclass(frozen=True)
class Evaluated:
    """The figures that an evaluation round tells of its model; shares of all people where nothing else is said.

    ``accuracy`` is that of the model as it is published, with ``threshold`` of the log odds instead of 0 where that is
    clearly better; ``reason`` says which and why, ``as_trained`` what the model's own threshold reaches. Log odds are
    multiplied by ``slope``, which is not 1 where the model is clearly too sure, or too unsure. Of the model as it is
    published: ``confusion`` has the class said first, then the record's; ``recall`` and ``precision`` are by class.
    With two classes ``roc`` has, for every threshold of the model as it was trained, how often the second class is said
    of who is of the first and of the second, ``area`` the area under it, and ``calibration``, for every bin of the
    score, what it claims of the second class and how frequent that is.
    """

    campaign: str
    epsilon: float
    devices: int
    accuracy: Figure
    threshold: float
    slope: float
    reason: str
    as_trained: Figure
    classes: Mapping[str, Figure]
    confusion: Sequence[Sequence[Figure]]
    recall: Mapping[str, Figure]
    precision: Mapping[str, Figure]
    area: Figure | None
    roc: Sequence[Mapping[str, Any]]
    calibration: Sequence[Mapping[str, Any]]

    def to_json(self) -> dict[str, Any]:
        """As a model carries it under ``evaluated``."""
        return asdict(self)


def evaluate(campaign: Campaign, tally: Tally) -> Evaluated:
    """The figures of an evaluation round. Raises ValueError for any other campaign."""
    asked, names = _asked(campaign), campaign.label.classes
    told = {one.question.kind: one for one in estimate(campaign, tally).questions if one.n >= _FEWEST}
    table = _table_of(told[SCORE], asked) if SCORE in told else None
    accuracy = _Accuracy.of(asked, told.get(RIGHT), told.get(SCORE), table)
    as_trained = accuracy.as_trained() if told else _UNTOLD
    published, threshold, reason = as_trained, 0.0, f"fewer than {_FEWEST} answers tell nothing"
    if table is not None and asked.edges is None:
        reason = "with more than two classes no threshold is moved"
    elif table is not None:
        published, threshold, reason = accuracy.published(asked)
    about = campaign.id, campaign.privacy.epsilon, int(tally.n.sum())
    untold = dict.fromkeys(names, _UNTOLD)
    found = Evaluated(*about, published, threshold, 1.0, reason, as_trained, untold, [], untold, untold, None, (), ())
    if table is None:
        return found
    said, classes, slope = _saying(asked, threshold), _of_class(asked), accuracy.slope(asked, threshold)
    found = replace(found, slope=slope)
    if asked.edges is not None:
        roc, calibration = _roc(table, asked), _calibration(table, asked, threshold, slope)
        found = replace(found, area=Figure.of(table.area()), roc=roc, calibration=calibration)
    return replace(
        found,
        classes=_by_class(names, table.share(classes)),
        confusion=[list(_by_class(names, table.share(one & classes)).values()) for one in said],
        recall=_by_class(names, table.ratio(said & classes, classes)),
        precision=_by_class(names, table.ratio(said & classes, said)),
    )


@dataclass(frozen=True)
class Foreseen:
    """Expected standard errors, by the model's tables, of accuracy, recall by class and ROC area; None if not told."""

    devices: int
    accuracy: float
    recall: Mapping[str, float | None]
    area: float | None


def foresee(campaign: Campaign, devices: int) -> Foreseen:
    """The precision of an evaluation round's figures with so many devices."""
    asked = _asked(campaign)
    scores, of = draw_scores(asked.model, _RECORDS, np.random.default_rng(0))
    places = scores.argmax(axis=1)
    if asked.edges is not None:
        places = np.searchsorted(np.array(asked.edges), scores[:, 1] - scores[:, 0], side="left")
    classes = len(asked.model.classes)
    law = np.bincount(places * classes + of, minlength=asked.places * classes).astype(np.float64) / _RECORDS
    n = {one.kind: number for one, number in zip(campaign.questions, answers(campaign, devices), strict=True)}
    by_kind = {one.kind: one for one in campaign.questions}
    right = float(law[_right(asked).ravel()].sum())
    variances = []
    if RIGHT in by_kind:
        bit = covariance_of_cells(by_kind[RIGHT], np.array([1 - right, right]))[1, 1]
        variances.append(float(bit) / n[RIGHT])
    recall: dict[str, float | None] = dict.fromkeys(asked.model.classes)
    area = None
    if SCORE in by_kind:
        covariance = covariance_of_cells(by_kind[SCORE], law) / n[SCORE]
        table = _Table(law.reshape(asked.places, classes), covariance, by_kind[SCORE], n[SCORE])
        variances.append(float(table.share(_right(asked)).variance[0]))
        recalls = table.ratio(_saying(asked) & _of_class(asked), _of_class(asked)).variance
        recall = {name: _finite_root(one) for name, one in zip(asked.model.classes, recalls, strict=True)}
        area = _finite_root(table.area().variance[0]) if asked.edges is not None else None
    return Foreseen(devices, sum(1 / one for one in variances) ** -0.5, recall, area)


def evaluation_draft(campaigns: Sequence[Campaign], model: Model, *, bins: int = MOST_BINS) -> dict[str, Any]:
    """Draft of a round about a model of these campaigns, of their study and epsilon; with crowd, gateway and
    issuer of the first, whose people it asks. ValueError without a study.
    """
    first, studies = campaigns[0], {campaign.study for campaign in campaigns}
    if None in studies or len(studies) > 1:
        raise ValueError(
            "the campaigns must be of one study, so that no device answers training and evaluation; these are of "
            + ", ".join(sorted(str(study) for study in studies))
        )
    edges = list(score_edges(model, bins)) if len(model.classes) == 2 else None
    epsilon, crowd = max(campaign.privacy.epsilon for campaign in campaigns), first.privacy.crowd
    # With a crowd the largest local epsilon is found anew: other questions, another bound.
    privacy = {"epsilon": epsilon} if crowd is None else {"crowd": crowd.to_json(), "most_local": epsilon}
    parties = {"gateway": first.gateway, "issuer": first.issuer}
    return {
        "version": 1,
        "title": f"How good is the model? {first.title[: _LONGEST_TITLE - 24]}",
        "purpose": first.purpose,
        **{name: getattr(first, name) for name in FOR_PEOPLE},
        "label": first.label.to_json(),
        "features": [feature.to_json() for feature in first.features],
        "privacy": privacy,
        "asks": SCORES,
        "evaluation": {"model": json.loads(model.to_json()), "edges": edges},
        "study": first.study,
        **{name: one.to_json() for name, one in parties.items() if one is not None},
    }


def evaluated_model(campaign: Campaign, tally: Tally, arrivals: Arrivals | None = None) -> NaiveBayes:
    """The model of an evaluation round, with what it tells and what training and evaluation cost a device.

    Its threshold is moved where that is clearly better: in the model format that is another prior. A device answers one
    campaign of a study, so that where both rounds are of one study the worse of their losses holds; where they are not,
    a device may have answered both, and the losses add up. Of a model that does not say how it was trained, nothing but
    the evaluation's loss is known. ``arrivals`` are those of the round, where that is known: then its relays' words and
    what is in the sums twice stand beside those of training.
    """
    evaluated, model = evaluate(campaign, tally), _asked(campaign).model
    training = dict(model.training)
    studies, own = dict(training.get("studies", {})), studies_of([campaign])
    apart = not own.keys() <= studies.keys()
    spent = {key: max(epsilon, studies.get(key, 0.0)) for key, epsilon in own.items()}
    public: tuple[str, ...] = LOCAL_PUBLIC
    stated = training.get("guarantee")
    if stated is None:
        public = (*public, "the model, which does not say what it was learned from")
    guarantee = local_guarantee(studies | spent, public)
    if stated is not None and stated["epsilon"] is None:
        guarantee = Guarantee.from_json(stated)
    published = published_by([(campaign, tally)], () if arrivals is None else (arrivals,))
    if "published" in training:
        published = _both(PublishedGuarantee(**training["published"]), published, apart=apart or len(studies) > 1)
    if arrivals is not None:
        twice, before = counted_twice([arrivals]), training.get("counted_twice", {})
        training["relayed"] = [*training.get("relayed", ()), relayed(campaign, arrivals).to_json()]
        training["counted_twice"] = {key: number + before.get(key, 0) for key, number in twice.items()}
    training |= {
        "evaluated": evaluated.to_json(),
        "studies": studies | spent,
        "guarantee": guarantee.to_json(),
        "published": published.to_json(),
    }
    return NaiveBayes.from_model(
        replace(with_threshold(model, evaluated.threshold, evaluated.slope), training=training), guarantee
    )


def _both(first: PublishedGuarantee, second: PublishedGuarantee, *, apart: bool) -> PublishedGuarantee:
    """The guarantee of both publications: where they are of one study a device is in one of them."""
    conditions = tuple(dict.fromkeys((*first.conditions, *second.conditions)))
    if first.epsilon is None or second.epsilon is None:
        raise ValueError("the model says that nothing bounds what is published of its devices")
    join = sum_up if apart else max
    epsilon, delta = join((first.epsilon, second.epsilon)), join((first.delta, second.delta))
    return replace(first, epsilon=epsilon, delta=delta, conditions=conditions)


def with_threshold(model: Model, threshold: float, slope: float = 1.0) -> Model:
    """The model whose log odds between any two classes are those of ``model`` times the slope; of two classes
    those of the second less the threshold.

    In the model's own format: of each feature the log odds of a value are multiplied, and a variance is divided. What
    keeps tables from adding up to 1 is taken off the prior, and is nothing with two classes, so that records without a
    value are classified as before.
    """
    if threshold == 0 and slope == 1:
        return model
    prior = slope * np.log(model.prior)
    prior[-1] -= slope * threshold
    likelihoods: list[Likelihood] = []
    for one in model.likelihoods:
        if slope != 1 and isinstance(one, DiscreteLikelihood):
            table, left = _sloped(np.array(one.table), slope)
            prior += left
            one = replace(one, table=tuple(map(tuple, table.tolist())))
        elif slope != 1 and isinstance(one, GaussianLikelihood):
            # A normal law has its deviation in its factor, too: what that adds to the log odds is taken off the prior.
            prior += (1 - slope) * np.log(one.variance) / 2
            one = replace(one, variance=tuple(variance / slope for variance in one.variance))
        likelihoods.append(one)
    return replace(model, prior=tuple(softmax(prior).tolist()), likelihoods=tuple(likelihoods))


def _sloped(table: Array, slope: float) -> tuple[Array, Array]:
    """P(value | class), shape (values, k), whose log odds are those of ``table`` times the slope; and by class the
    logarithm that this leaves.

    Of p_c come x p_c^slope with one x for a value. With two classes, p and r p, x is proportional to r^theta
    p^(1 - slope), with the theta by which both add up to 1. With more no x need do that: it is the mean of p to the
    power 1 - slope, by which they do where classes are alike.
    """
    logs = np.log(table)
    if table.shape[1] > 2:
        found = np.exp(slope * logs + (1 - slope) * np.log(table.mean(axis=1))[:, None])
        return found / found.sum(axis=0), np.log(found.sum(axis=0))
    first, odds = logs[:, 0], logs[:, 1] - logs[:, 0]

    def apart(theta: float) -> float:
        return float(logsumexp(first + (theta + slope) * odds) - logsumexp(first + theta * odds))

    theta = brentq(apart, -slope, 1.0, xtol=1e-14) if np.abs(odds).max() > _FLAT else 0.0
    weights = softmax(first + theta * odds)
    found = np.stack([weights, weights * np.exp(slope * odds)], axis=1)
    return found / found.sum(axis=0), np.zeros(2)


@dataclass(frozen=True)
class _Table:
    """The joint law of places and classes, shape (places, k), as so many reports ``n`` tell it, with the covariance of
    its cells.
    """

    value: Array
    covariance: Array
    question: Question
    n: float

    def share(self, cells: Mask) -> Cells:
        """The share of all these cells together; of several sets, shape (sets, places, k), an entry each."""
        chosen = cells.reshape(-1, self.value.size).astype(np.float64)
        return Cells.normal(chosen @ self.value.ravel(), np.maximum(self._across(chosen, chosen), 0.0))

    def ratio(self, cells: Mask, whole: Mask) -> Cells:
        """The share of cells among those of ``whole``, which are in it."""
        first, second = (one.reshape(-1, self.value.size).astype(np.float64) for one in (cells, whole))
        first, second = np.broadcast_arrays(first, second)
        inside, others = first.sum(axis=1), (second - first).sum(axis=1)
        held = self.share(whole)

        def variance_at(ratio: float) -> Array:
            """Variance of (1 - R) J less R times the rest, whose shares are R pi and (1 - R) pi."""
            total = np.clip(held.value, 0.0, 1.0)
            covariance = covariance_of_sums(self.question, (inside, ratio * total), (others, (1 - ratio) * total))
            own, across, rest = (one / self.n for one in covariance)
            return np.asarray((1 - ratio) ** 2 * own - 2 * ratio * (1 - ratio) * across + ratio**2 * rest)

        return ratio_of(self.share(cells), held, variance_at, 0.5)

    def _across(self, first: Array, second: Array) -> Array:
        return np.asarray(((first @ self.covariance) * second).sum(axis=-1))

    def area(self) -> Cells:
        """The area under the ROC curve: how often a record of the second class has the higher score than one of
        the first, ties counting half. Numerator and denominator are quadratic in the cells.
        """
        places, cells = len(self.value), self.value.ravel()
        pairs = np.zeros((2, cells.size, cells.size))
        pairs[0, 1::2, ::2] = np.tri(places, k=-1) + np.eye(places) / 2
        pairs[1, 1::2, ::2] = 1.0
        pairs = (pairs + pairs.mT) / 2
        # The expectation of a product of estimates is that of the shares, and their covariance.
        values = (pairs @ cells) @ cells - (pairs * self.covariance).sum(axis=(1, 2))
        slopes = 2 * pairs @ cells
        spread = slopes @ self.covariance @ slopes.T
        above, all_pairs = (Cells.normal(values[[i]], np.maximum(spread[[i], [i]], 0.0)) for i in range(2))
        across = spread[0, [1]]
        return ratio_of(
            above, all_pairs, lambda ratio: above.variance - 2 * ratio * across + ratio**2 * all_pairs.variance, 0.5
        )


@dataclass(frozen=True)
class _Accuracy:
    """The accuracy as a linear function of what was answered: ``own`` at the model's own threshold. ``told`` are the
    cells of the table and the share of those for whom the model is right, with their ``covariance``.
    """

    told: Array
    covariance: Array
    own: Array

    @classmethod
    def of(
        cls, asked: Asked, bit: QuestionEstimate | None, score: QuestionEstimate | None, table: _Table | None
    ) -> _Accuracy:
        right, cells = _right(asked).ravel().astype(np.float64), asked.places * len(asked.model.classes)
        told, covariance, weights = np.zeros(cells + 1), np.zeros((cells + 1, cells + 1)), [0.0, 0.0]
        if score is not None and table is not None:
            told[:-1], covariance[:-1, :-1] = table.value.ravel(), table.covariance
            even = covariance_of_cells(score.question, np.full(cells, 1 / cells))
            weights[0] = score.n / float(right @ even @ right)
        if bit is not None:
            told[-1], covariance[-1, -1] = bit.cells.value[1], bit.cells.variance[1]
            weights[1] = bit.n / float(covariance_of_cells(bit.question, np.array([0.5, 0.5]))[1, 1])
        whole = sum(weights) or 1.0
        return cls(told, covariance, np.append(right * weights[0], weights[1]) / whole)

    def as_trained(self) -> Figure:
        return Figure.of(Cells.normal(np.array([self.own @ self.told]), np.array([self._variance(self.own)])))

    def published(self, asked: Asked) -> tuple[Figure, float, str]:
        """The accuracy at the threshold that is taken, the threshold, and the reason."""
        edges = [edge for edge in asked.edges or () if edge]
        own = _right(asked).ravel().astype(np.float64)
        if not edges:
            return self.as_trained(), 0.0, "the score has two bins, and no other threshold"
        gains = np.array([np.append(_right(asked, edge).ravel().astype(np.float64) - own, 0.0) for edge in edges])
        errors = np.sqrt([self._variance(gain) for gain in gains])
        scores = gains @ self.told / errors
        best = int(np.argmax(scores))
        if not scores[best] > CLEARLY_BETTER:
            why = f"no other threshold is better by {CLEARLY_BETTER:g} standard errors"
            return self.as_trained(), 0.0, why
        # It was taken because its score is above the others', and above what is clear: linear in what was told.
        scaled = gains / errors[:, None]
        bounds = np.concatenate([np.delete(scaled, best, axis=0) - scaled[best], -scaled[[best]]])
        limits = np.append(np.zeros(len(edges) - 1), -CLEARLY_BETTER)
        figure = self._given(self.own + gains[best], bounds, limits)
        gain, error = float(gains[best] @ self.told), float(errors[best])
        why = f"log odds above {edges[best]:g} instead of 0 are right more often by {gain:.4f} +- {error:.4f}"
        return figure, edges[best], why

    def slope(self, asked: Asked, threshold: float) -> float:
        """The number that log odds above the threshold are multiplied by: the one with which the model says on
        average how often it is right, where without any it is off by more than is clear. A place says what the model's
        own records in it say on average.
        """
        scores = draw_scores(asked.model, _RECORDS, np.random.default_rng(0))[0]
        classes = scores.shape[1]
        if asked.edges is None:
            places, sure = scores.argmax(axis=1), softmax(scores * _SLOPES[:, None, None], axis=2).max(axis=2)
        else:
            edges = np.array(asked.edges)
            middles = [edges[0] - 1, *(edges[1:] + edges[:-1]) / 2, edges[-1] + 1]
            odds = np.append(scores[:, 1] - scores[:, 0], middles)
            places, sure = np.searchsorted(edges, odds, side="left"), expit(np.abs(odds - threshold) * _SLOPES[:, None])
        drawn = np.bincount(places, minlength=asked.places)
        said = np.array([np.bincount(places, one, asked.places) for one in sure]).T
        # What the model never says of its own records it may say of others', as surely as it does on average.
        said = np.where(drawn[:, None] > 0, said / np.maximum(drawn, 1)[:, None], said.sum(axis=0) / len(places))
        right = self.own + np.append((_right(asked, threshold).astype(np.float64) - _right(asked)).ravel(), 0.0)
        too_sure = np.vstack([np.repeat(said, classes, axis=0), np.zeros(len(_SLOPES))]).T - right
        off, error = too_sure @ self.told, math.sqrt(self._variance(too_sure[_SLOPES == 1.0][0]))
        clear = abs(float(off[_SLOPES == 1.0][0])) > CLEARLY_BETTER * error
        return float(_SLOPES[np.abs(off).argmin()]) if clear else 1.0

    def _given(self, function: Array, bounds: Array, limits: Array) -> Figure:
        """Median-unbiased linear function given bounds @ told <= limits; its interval holds in 95 % of such rounds."""
        variance, value = self._variance(function), float(function @ self.told)
        slopes = bounds @ self.covariance @ function / variance
        rest = limits - bounds @ (self.told - self.covariance @ function / variance * value)
        with np.errstate(divide="ignore"):
            ends = rest / slopes
        low = float(max(ends[slopes < -_FLAT], default=-math.inf))
        high = float(min(ends[slopes > _FLAT], default=math.inf))
        found = (_mean_with(level, value, math.sqrt(variance), low, high) for level in (0.5, 0.975, 0.025))
        middle, least, most = (min(max(one, 0.0), 1.0) for one in found)
        return Figure(middle, least, most)

    def _variance(self, function: Array) -> float:
        return float(function @ self.covariance @ function)


def _mean_with(level: float, value: float, deviation: float, low: float, high: float) -> float:
    """The mean of the normal law, cut to [low, high], of which ``level`` lies below ``value``."""

    def below(mean: float) -> float:
        return float(truncnorm.cdf(value, (low - mean) / deviation, (high - mean) / deviation, mean, deviation)) - level

    reach = 40 * deviation
    if below(value - reach) < 0:
        return value - reach
    if below(value + reach) > 0:
        return value + reach
    return float(brentq(below, value - reach, value + reach, xtol=1e-10))


def _asked(campaign: Campaign) -> Asked:
    if campaign.evaluation is None:
        raise ValueError(f'campaign {campaign.id} has "asks": "{campaign.asks}"; an evaluation round has "{SCORES}"')
    return campaign.evaluation


def _table_of(score: QuestionEstimate, asked: Asked) -> _Table:
    covariance = covariance_of_cells(score.question, norm_sub(score.cells.value)) / score.n
    return _Table(score.cells.value.reshape(asked.places, -1), covariance, score.question, score.n)


def _of_class(asked: Asked) -> Mask:
    """The cells of every class, shape (k, places, k)."""
    classes = len(asked.model.classes)
    return np.broadcast_to(np.eye(classes, dtype=bool)[:, None, :], (classes, asked.places, classes))


def _saying(asked: Asked, threshold: float = 0.0) -> Mask:
    """The cells in which the model says every class, shape (k, places, k)."""
    classes = len(asked.model.classes)
    said = np.arange(classes)
    if asked.edges is not None:
        said = (np.arange(asked.places) > asked.edges.index(threshold)).astype(np.int64)
    return np.broadcast_to((said == np.arange(classes)[:, None])[:, :, None], (classes, asked.places, classes))


def _right(asked: Asked, threshold: float = 0.0) -> Mask:
    """The cells in which the model says the class of the record, shape (places, k)."""
    return np.asarray((_saying(asked, threshold) & _of_class(asked)).any(axis=0))


def _by_class(names: Sequence[str], cells: Cells) -> dict[str, Figure]:
    return {name: Figure.of(cells, place) for place, name in enumerate(names)}


def _roc(table: _Table, asked: Asked) -> list[dict[str, Any]]:
    found = []
    for edge in asked.edges or ():
        second = _saying(asked, edge)[1]
        rates = table.ratio(second[None] & _of_class(asked), _of_class(asked))
        found.append({"threshold": edge, "false_positive": Figure.of(rates, 0), "true_positive": Figure.of(rates, 1)})
    return found


def _calibration(table: _Table, asked: Asked, threshold: float, slope: float) -> list[dict[str, Any]]:
    edges = (-math.inf, *(slope * (edge - threshold) for edge in asked.edges or ()), math.inf)
    bins = np.broadcast_to(np.eye(asked.places, dtype=bool)[:, :, None], (asked.places, asked.places, 2))
    shares, measured = table.share(bins), table.ratio(bins & _of_class(asked)[1], bins)
    return [
        {
            "claims": [float(expit(low)), float(expit(high))],
            "share": Figure.of(shares, place),
            "measured": Figure.of(measured, place),
        }
        for place, (low, high) in enumerate(pairwise(edges))
    ]


def _finite_root(variance: float) -> float | None:
    return math.sqrt(variance) if math.isfinite(variance) else None
