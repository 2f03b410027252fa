"""Predict what to expect of a model, as far as its own reports can tell; only an evaluation round knows more.

No report says how features depend on each other. The model therefore carries these figures:

* whether the features tell anything of the class (:mod:`ldp_aggregator.estimation.independence`), and enough of it to
  say another class than the most frequent one now and then;
* what the best feature alone reaches, without the winner's curse: one half of the evidence chooses it, the other
  half measures it. Halves are made of sums by adding and subtracting noise of the known covariance: E + W and E - W are
  independent (Leiner et al., Data fission, 2023);
* what the model would reach if its features were independent given the class, as Naive Bayes takes them to be: the
  mean over populations that the reports leave possible;
* how often the model says each class, by its own tables.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from ldp_aggregator.estimation.cells import Z_95, Array, Cells
from ldp_aggregator.estimation.effects import USUAL, gains, scale_logarithms
from ldp_aggregator.estimation.estimates import Estimates
from ldp_aggregator.estimation.estimators import QuestionEstimate
from ldp_aggregator.estimation.evidence import Statistics, believed_classes, contrasts, product, times, told_of_classes
from ldp_aggregator.estimation.independence import p_value
from ldp_aggregator.estimation.posterior import FeaturePosterior, Posterior, rows
from ldp_aggregator.estimation.simplex import norm_sub
from ldp_protocols.document.model import GaussianLikelihood, Model


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


FALSE_ALARMS: Final = 0.015
"""The p-value below which features are said to tell something. Where they tell nothing they are said to in so many
campaigns, and in no more than 3 % of any 300 (binomial, 98 of 100 times).
"""


Integers = NDArray[np.int64]

_POPULATIONS: Final = 16
_RECORDS: Final = 500
"""For every population: 8,000 in all, which tell a share to half a percent."""

_HALVINGS: Final = 8
"""Each is told from both ways."""

_LEAST_PRESENT: Final = 0.02
"""Somebody is taken to hold a value."""

STANDARD_DEVIATIONS: Final = 2.0
"""Among the populations: those by which the gain has to be above 0."""

_SEED: Final = 0
"""The same reports give the same numbers; nothing here is anybody's privacy."""


@dataclass(frozen=True)
class BestFeature:
    """Accuracy of the most frequent class by the one ``feature`` most often chosen, unbiased, with a 95 % interval."""

    feature: str
    accuracy: float
    low: float
    high: float


@dataclass(frozen=True)
class PredictedAccuracy:
    """``majority`` is the accuracy of saying the most frequent class, had one known which it is; ``independent`` that
    of the model if features know different things, ``gain`` above ``majority``, with ``gain_error`` its standard
    deviation among the populations that the reports leave possible.

    ``p_value`` is that of features that tell nothing; ``says`` has the share in which the model says each class.
    """

    majority: float
    independent: float
    gain: float
    gain_error: float
    p_value: float
    best_feature: BestFeature | None
    says: Mapping[str, float]

    @property
    def tells_something(self) -> bool:
        """True if the features are said to tell something, and enough of it to say another class than the most frequent
        one; as in at most 2 % of campaigns with useless features.
        """
        return self.p_value <= FALSE_ALARMS and self.gain > STANDARD_DEVIATIONS * self.gain_error

    def to_json(self) -> dict[str, Any]:
        """As a model carries it under ``expected``."""
        rounded = {name: round(getattr(self, name), 4) for name in ("majority", "independent", "gain", "gain_error")}
        best = self.best_feature
        return {
            **rounded,
            "p_value": float(f"{self.p_value:.3g}"),
            "best_feature": None if best is None else asdict(best),
            "says": {name: round(share, 4) for name, share in self.says.items()},
            "tells_something": self.tells_something,
        }


def predict_accuracy(learned: Learned) -> PredictedAccuracy:
    """The accuracy to expect of a learned model; Gaussian features are taken to be as in the model."""
    model = learned.model
    rng = np.random.default_rng(_SEED)
    shares, tables = _populations(model, learned.posterior, rng)
    said = int(np.argmax(model.prior))
    classes = np.stack([_classes(one, _RECORDS, rng) for one in shares])
    right = _scores(model, _missing_numbers(learned), tables, classes, rng).argmax(axis=0) == classes
    most = shares.max(axis=1)
    more = right.astype(float) - (classes == said)  # On the same records: their own spread cancels.
    gained = more.mean(axis=1) - (most - shares[:, said])
    spread = max(0.0, float(gained.var(ddof=1) - more.var(axis=1).mean() / _RECORDS))
    gaussian = [one.feature.name for one in model.likelihoods if isinstance(one, GaussianLikelihood)]
    return PredictedAccuracy(
        float(most.mean()),
        float(right.mean()),
        float(gained.mean()),
        spread**0.5,
        p_value(learned.estimates, learned.posterior, gaussian, learned.shares, learned.telling),
        best_feature(learned, rng),
        _shares_said(model, rng),
    )


def _populations(model: Model, posterior: Posterior, rng: np.random.Generator) -> tuple[Array, list[Array]]:
    """Draw P(class), shape (populations, C), and P(value | class) of every feature of the model, shape (populations, K,
    C), that a value is missing after the values; an empty array for a Gaussian one.
    """
    believed = posterior.classes
    # The symmetric root: others depend on the eigenvectors that a machine happens to find.
    values, vectors = np.linalg.eigh(believed.covariance)
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    shares = norm_sub(believed.raw + rng.standard_normal((_POPULATIONS, believed.raw.size)) @ root, axis=1)
    names = [likelihood.feature.name for likelihood in model.likelihoods]
    drawn = {name: posterior.features[name].draw(_POPULATIONS, rng) for name in names if name in posterior.features}
    cells: dict[str, Array] = {}
    for group, its in posterior.groups:
        effects = np.stack([drawn[name] for name in group.names])
        cells |= zip(group.names, its.cells_of(effects), strict=True)
    return shares, [cells.get(name, np.empty(0)) for name in names]


def _missing_numbers(learned: Learned) -> dict[str, float]:
    """The share of records without a value of each Gaussian feature that may be missing."""
    found: dict[str, list[float]] = {}
    for one in learned.estimates:
        for name, part in one.missing.items():
            found.setdefault(name, []).append(float(np.clip(part.cells.value[0], 0.0, 1.0)))
    return {name: float(np.mean(shares)) for name, shares in found.items()}


def _shares_said(model: Model, rng: np.random.Generator) -> dict[str, float]:
    """The frequency with which the model says each class of records that are as its own tables have them."""
    scores, _ = draw_scores(model, _POPULATIONS * _RECORDS, rng)
    counts = np.bincount(scores.argmax(axis=1), minlength=len(model.classes)) / len(scores)
    return dict(zip(model.classes, counts.tolist(), strict=True))


def _classes(shares: Array, records: int, rng: np.random.Generator) -> Integers:
    """Numbers of records of every class, by its share, but for rounding."""
    points = (np.arange(records) + rng.random()) / records
    return np.minimum(np.searchsorted(np.cumsum(shares), points), shares.size - 1)


def draw_scores(model: Model, records: int, rng: np.random.Generator) -> tuple[Array, Integers]:
    """Draw records from a model's own tables; return their joint log likelihoods, shape (records, k), and classes."""
    classes = _classes(np.array(model.prior), records, rng)[None]
    tables = [
        np.empty(0) if isinstance(one, GaussianLikelihood) else np.array(one.table)[None] for one in model.likelihoods
    ]
    return _scores(model, {}, tables, classes, rng)[:, 0].T, classes[0]


def _scores(
    model: Model, absent: Mapping[str, float], tables: Sequence[Array], classes: Integers, rng: np.random.Generator
) -> Array:
    """Joint log likelihoods, (k, populations, records); ``absent``: share without a value of each Gaussian feature."""
    prior = np.array(model.prior)
    places = classes + prior.size * np.arange(len(classes))[:, None]
    with np.errstate(divide="ignore"):
        scores = np.tile(np.log(prior)[:, None, None], (1, *classes.shape))
        for likelihood, drawn in zip(model.likelihoods, tables, strict=True):
            if isinstance(likelihood, GaussianLikelihood):
                terms = _gaussian_terms(likelihood, classes, rng)
                missing = absent.get(likelihood.feature.name, 0.0)
                if missing:
                    terms *= rng.random(classes.shape) >= missing
                scores += terms
            else:
                values = _values(drawn, places, rng)
                logarithms = np.log(np.array(likelihood.table))
                # A value beyond those of the model is missing, and says nothing.
                columns = np.vstack([logarithms, np.zeros(logarithms.shape[1])]).T
                for score, column in zip(scores, columns, strict=True):
                    score += column.take(values)
    return scores


def _values(tables: Array, places: Integers, rng: np.random.Generator) -> Integers:
    """A value for every record, (populations, records), from its column ``population * C + class`` in ``places``."""
    drawn, found = rng.random(places.shape), np.zeros(places.shape, dtype=np.int64)
    for limits in np.moveaxis(np.cumsum(tables, axis=1)[:, :-1], 1, 0):
        found += drawn > limits.take(places)
    return found


def _gaussian_terms(likelihood: GaussianLikelihood, classes: Integers, rng: np.random.Generator) -> Array:
    """Log densities of drawn records under every class, up to a constant, (C, populations, records)."""
    mean, variance = np.array(likelihood.mean), np.array(likelihood.variance)
    drawn = mean[classes] + np.sqrt(variance)[classes] * rng.standard_normal(classes.shape)
    values = np.clip(drawn, likelihood.feature.low, likelihood.feature.high)
    mean, variance = mean[:, None, None], variance[:, None, None]
    return np.asarray(-0.5 * np.log(variance) - (values - mean) ** 2 / (2 * variance))


def best_feature(learned: Learned, rng: np.random.Generator) -> BestFeature | None:
    """Accuracy of the best discrete feature alone; None if no report is about any."""
    names, halves = [], []
    for group, its in learned.posterior.groups:
        evidence = group.evidence(its.and_missing((its.groups * its.joint[:, None, :]).reshape(len(group.names), -1)))
        answered = np.flatnonzero(evidence.information.any(axis=(1, 2))).tolist()
        if answered:
            of_group = [group.names[place] for place in answered]
            classes = _classes_without(learned, of_group)
            names += of_group
            halves.append(_halves(rows(its, answered), rows(evidence, answered), classes, rng))
    if not halves:
        return None
    promised, reached, variance = (np.concatenate(one) for one in zip(*halves, strict=True))
    best = promised.argmax(axis=0), np.arange(promised.shape[1])
    accuracy, reach = float(reached[best].mean()), Z_95 * math.sqrt(variance[best].mean())
    often = np.bincount(best[0], minlength=len(names))
    first = min(best[0].tolist(), key=lambda place: -often[place])
    return BestFeature(names[first], accuracy, max(0.0, accuracy - reach), min(1.0, accuracy + reach))


def _classes_without(learned: Learned, features: Sequence[str]) -> Array:
    """P(class) as believed from everything but each of these features; shape (features, k)."""
    telling = learned.telling
    evidence = told_of_classes(telling, len(learned.model.classes))
    others = np.array([[float(one.question.feature != name) for one in telling] for name in features])
    information = np.tensordot(others, evidence.information, 1)
    return believed_classes(information, others @ evidence.linear, others @ [one.n for one in telling]).value


def _halves(
    believed: FeaturePosterior, evidence: Statistics, classes: Array, rng: np.random.Generator
) -> tuple[Array, Array, Array]:
    """Accuracies of the rules that half of a feature's evidence chooses, each of shape (features, halves): the one that
    this half promises, the one that the other half tells, unbiased, and the variance of what both halves tell.

    A half is decoded as the whole evidence is. Nothing else that is known of the feature takes part in the choice, or
    the other half would. P(class) is ``classes``, shape (features, k).
    """
    features, cells = evidence.linear.shape
    k = classes.shape[-1]
    here = believed.statistics.linear.shape[-1]
    shape = (features, 2 * _HALVINGS, here // k, k)
    basis, of_class = contrasts(cells), classes[:, None, :]
    root = basis @ np.linalg.cholesky(np.linalg.inv(basis.T @ evidence.information @ basis))
    covariance = root @ root.mT
    estimate = 1 / cells + times(covariance, evidence.linear - evidence.information.sum(axis=-1) / cells)
    noise = rng.standard_normal((features, _HALVINGS, cells - 1)) @ root.mT
    halves = estimate[:, None, :] + np.concatenate([noise, -noise], axis=1)
    others = np.roll(halves, _HALVINGS, axis=1)
    marginal = norm_sub(halves[..., :here].reshape(shape).sum(axis=-1), axis=-1)
    present = np.clip(1 - halves[..., here:].sum(axis=-1, keepdims=True), _LEAST_PRESENT, 1.0)
    independent = present * product(marginal, of_class)
    information = believed.information / 2
    effects = (halves[..., :here] - independent) @ (believed.statistics.information / 2) @ believed.basis
    scales = softmax(scale_logarithms(information[:, None, :], effects) + np.log(USUAL), axis=-1)
    likely = independent + (effects * (scales @ gains(information))) @ believed.basis.mT
    joint = (norm_sub(likely / present, axis=-1) * present).reshape(shape)
    said, promised = joint.argmax(axis=-1), joint.max(axis=-1).sum(axis=-1)
    if believed.absence is not None:  # Who holds no value is said to be of the most frequent class.
        most = np.broadcast_to(of_class.argmax(axis=-1, keepdims=True), (*said.shape[:2], 1))
        said = np.concatenate([said, most], axis=-1)
        promised = promised + (1 - present[..., 0]) * of_class.max(axis=-1)
    right = (said[..., None] == np.arange(k)).reshape(others.shape)  # The cells in which the rule is right.
    return promised, (others * right).sum(axis=-1), ((right @ covariance) * right).sum(axis=-1)
