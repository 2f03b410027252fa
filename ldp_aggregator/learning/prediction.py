"""What to expect of a model, as far as its own reports can tell; only an evaluation round knows more.

Nothing in the reports says how features go together. Told are numbers with a meaning of their own:

* whether the model is better than always saying the most frequent class: the features tell something
  (:mod:`ldp_aggregator.learning.significance`), and enough of it to say another class now and then;
* what the best feature alone reaches, without the winner's curse: chosen by one half of what is known, told by the
  other. Halves are made of sums by adding and subtracting noise of the known covariance: E + W and E - W are
  independent (Leiner et al., Data fission, 2023);
* what the model would reach if its features were independent given the class, as Naive Bayes takes them to be: the
  mean over populations that the reports leave possible;
* how often the model says each class, by its own tables.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.estimation.estimators import Z_95
from ldp_aggregator.estimation.pooling import pool_classes
from ldp_aggregator.estimation.posterior.evidence import Statistics, gather
from ldp_aggregator.estimation.posterior.factors import contrasts, product
from ldp_aggregator.estimation.posterior.groups import rows
from ldp_aggregator.estimation.posterior.scale import SCALES, own_scales
from ldp_aggregator.estimation.posterior.shares import class_shares
from ldp_aggregator.estimation.posterior.tables import FeaturePosterior, Names, Posterior
from ldp_aggregator.estimation.simplex import norm_sub
from ldp_aggregator.learning.significance import FALSE_ALARMS, p_value
from protocols.model import GaussianLikelihood, Model

if TYPE_CHECKING:
    from ldp_aggregator.learning.training import Learned

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

_POPULATIONS: Final = 16
_RECORDS: Final = 500
"""Of every population: 8,000 in all, which tell a share to half a percent."""

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
    """The accuracy of saying, by the value of one feature, the class that is most frequent with it: unbiased, with a
    95 % interval. ``feature`` is the one that was chosen most often.
    """

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
    def above_majority(self) -> bool:
        """Whether the model is called better than always saying the most frequent class, as it is in at most 3 % of
        campaigns whose features tell nothing. One that is not is published only on demand.
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
            "above_majority": self.above_majority,
        }


def predict_accuracy(learned: Learned) -> PredictedAccuracy:
    """Return what to expect of a learned model; Gaussian features are taken to be as in the model."""
    model, posterior = learned.model, learned.posterior
    rng = np.random.default_rng(_SEED)
    shares, tables = _populations(model, posterior, rng)
    said = int(np.argmax(model.prior))
    classes = np.stack([_classes(one, _RECORDS, rng) for one in shares])
    right = _say(model, posterior, tables, classes, rng) == classes
    most = shares.max(axis=1)
    more = right.astype(float) - (classes == said)  # On the same records: their own spread cancels.
    gains = more.mean(axis=1) - (most - shares[:, said])
    spread = max(0.0, float(gains.var(ddof=1) - more.var(axis=1).mean() / _RECORDS))
    everybody = any(one.campaign.privacy.answers == "all" for one in learned.estimates)
    pooled = pool_classes(learned.telling, len(model.classes), shared_records=everybody)
    return PredictedAccuracy(
        float(most.mean()),
        float(right.mean()),
        float(gains.mean()),
        spread**0.5,
        p_value(learned.estimates, posterior, pooled),
        best_feature(learned, rng),
        _shares_said(model, rng),
    )


def _populations(model: Model, posterior: Posterior, rng: np.random.Generator) -> tuple[Array, list[Array]]:
    """Draw P(class), shape (populations, C), and P(value | class) of every feature of the model, shape (populations, K,
    C), that a value is missing after the values; an empty array for a Gaussian one.
    """
    told = posterior.classes
    # The symmetric root: others depend on the eigenvectors that a machine happens to find.
    values, vectors = np.linalg.eigh(told.covariance)
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    shares = norm_sub((told.raw + rng.standard_normal((_POPULATIONS, told.raw.size)) @ root).T).T
    names = [likelihood.feature.name for likelihood in model.likelihoods]
    drawn = {name: posterior.features[name].draw(_POPULATIONS, rng) for name in names if name in posterior.features}
    cells = posterior.cells_of(drawn)
    return shares, [cells.get(name, np.empty(0)) for name in names]


def _shares_said(model: Model, rng: np.random.Generator) -> dict[str, float]:
    """Return how often the model says each class of records that are as its own tables have them."""
    scores, _ = draw_scores(model, _POPULATIONS * _RECORDS, rng)
    counts = np.bincount(scores.argmax(axis=1), minlength=len(model.classes)) / len(scores)
    return dict(zip(model.classes, counts.tolist(), strict=True))


def _classes(shares: Array, records: int, rng: np.random.Generator) -> Integers:
    """Return as many records of every class as its share says, but for rounding."""
    points = (np.arange(records) + rng.random()) / records
    found: Integers = np.minimum(np.searchsorted(np.cumsum(shares), points), shares.size - 1)
    return found


def draw_scores(model: Model, records: int, rng: np.random.Generator) -> tuple[Array, Integers]:
    """Draw records from a model's own tables; return their joint log likelihoods, shape (records, k), and classes."""
    classes = _classes(np.array(model.prior), records, rng)[None]
    tables = [
        np.empty(0) if isinstance(one, GaussianLikelihood) else np.array(one.table)[None] for one in model.likelihoods
    ]
    return _scores(model, {}, tables, classes, rng)[:, 0].T, classes[0]


def _say(
    model: Model, posterior: Posterior, tables: Sequence[Array], classes: Integers, rng: np.random.Generator
) -> Integers:
    """Return the class that the model says of records of these classes, shape (populations, records), whose values are
    drawn from ``tables``.
    """
    said: Integers = _scores(model, posterior.missing, tables, classes, rng).argmax(axis=0)
    return said


def _scores(
    model: Model, absent: Mapping[str, float], tables: Sequence[Array], classes: Integers, rng: np.random.Generator
) -> Array:
    """Return joint log likelihoods, shape (k, populations, records); ``absent`` has the share of records without a
    value of each Gaussian feature.
    """
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
    """Draw a value for every record, from its class's column of its population's table; shape (populations, records).

    ``places`` are those of the records' columns among all, ``population * C + class``.
    """
    drawn, found = rng.random(places.shape), np.zeros(places.shape, dtype=np.int64)
    for limits in np.moveaxis(np.cumsum(tables, axis=1)[:, :-1], 1, 0):
        found += drawn > limits.take(places)
    return found


def _gaussian_terms(likelihood: GaussianLikelihood, classes: Integers, rng: np.random.Generator) -> Array:
    """Return log densities of drawn records under every class, up to a constant, (C, populations, records)."""
    mean, variance = np.array(likelihood.mean), np.array(likelihood.variance)
    drawn = mean[classes] + np.sqrt(variance)[classes] * rng.standard_normal(classes.shape)
    values = np.clip(drawn, likelihood.feature.low, likelihood.feature.high)
    mean, variance = mean[:, None, None], variance[:, None, None]
    terms: Array = -0.5 * np.log(variance) - (values - mean) ** 2 / (2 * variance)
    return terms


def best_feature(learned: Learned, rng: np.random.Generator) -> BestFeature | None:
    """Return what the best discrete feature alone reaches; None where nothing is told of any."""
    posterior = learned.posterior
    likely = {name: cells for names, group in posterior.groups.items() for name, cells in _likely(names, group)}
    held = {name: len(cells) // len(posterior.classes.value) for name, cells in likely.items()}
    questions = [question for one in learned.estimates for question in one.questions]
    told = gather(questions, (), len(posterior.classes.value), held, likely).features
    halves = [
        _halves(name, rows(group, place), told[name], _classes_without(learned, name), rng)
        for names, group in posterior.groups.items()
        for place, name in enumerate(names)
        if told[name].information.any()
    ]
    if not halves:
        return None
    chosen = [max(of_half, key=lambda half: half.promised) for of_half in zip(*halves, strict=True)]
    names = [half.feature for half in chosen]
    accuracy = float(np.mean([half.reached for half in chosen]))
    reach = Z_95 * math.sqrt(np.mean([half.variance for half in chosen]))
    low, high = max(0.0, accuracy - reach), min(1.0, accuracy + reach)
    return BestFeature(max(dict.fromkeys(names), key=names.count), accuracy, low, high)


@dataclass(frozen=True)
class _Half:
    """A rule of one feature that one half of what is known chose: the accuracy that this half promised, and the one
    that the other half tells, unbiased; ``variance`` is that of telling it from both halves.
    """

    feature: str
    promised: float
    reached: float
    variance: float


def _likely(names: Names, group: FeaturePosterior) -> list[tuple[str, Array]]:
    """Return the cells of features as they are believed to be, those of who holds no value last."""
    cells = (group.table * group.classes[:, None, :]).reshape(len(names), -1)
    if group.absence is not None:
        cells = np.concatenate([cells, group.absence.value], axis=-1)
    return list(zip(names, cells, strict=True))


def _classes_without(learned: Learned, feature: str) -> Array:
    """Return P(class) as believed from what was not told about a feature, whose noise is another then."""
    classes = len(learned.model.classes)
    others = [one for one in learned.telling if one.question.feature != feature]
    evidence = gather((), others, classes, {})
    return class_shares(evidence.classes, sum(one.n for one in others)).value


def _halves(
    name: str, one: FeaturePosterior, told: Statistics, classes: Array, rng: np.random.Generator
) -> list[_Half]:
    """Return the rules that the halves of what is told of a feature choose, with what the other halves say of them.

    A half believes what it is told as all of it is believed. Nothing else that was told of the feature has a voice in
    what is chosen, or the other half would.
    """
    cells, values = told.linear.size, one.table.shape[0]
    here = values * classes.size
    basis = contrasts(cells)
    root = basis @ np.linalg.cholesky(np.linalg.inv(basis.T @ told.information @ basis))
    covariance = root @ root.T
    estimate = 1 / cells + covariance @ (told.linear - told.information.sum(axis=-1) / cells)
    noise = rng.standard_normal((_HALVINGS, cells - 1)) @ root.T
    halves = estimate + np.concatenate([noise, -noise])
    others = np.roll(halves, _HALVINGS, axis=0)
    marginal = norm_sub(halves[:, :here].reshape(-1, values, classes.size).sum(axis=-1), axis=-1)
    present = np.clip(1 - halves[:, here:].sum(axis=-1), _LEAST_PRESENT, 1.0)
    independent = present[:, None] * product(marginal, classes)
    known = one.information / 2
    effects = (halves[:, :here] - independent) @ (one.here.information / 2) @ one.basis
    believed = effects * (own_scales(known, effects) @ (SCALES[:, None] / (1 + SCALES[:, None] * known)))
    joint = norm_sub((independent + believed @ one.basis.T) / present[:, None], axis=-1) * present[:, None]
    joint = joint.reshape(-1, values, classes.size)
    said, promised = joint.argmax(axis=-1), joint.max(axis=-1).sum(axis=-1)
    if one.absence is not None:  # Who holds no value is said to be of the most frequent class.
        said = np.concatenate([said, np.full((len(said), 1), classes.argmax())], axis=-1)
        promised = promised + (1 - present) * classes.max()
    right = (said[..., None] == np.arange(classes.size)).reshape(
        len(said), cells
    )  # The cells in which the rule is right.
    reached = (others * right).sum(axis=-1)
    variance = ((right @ covariance) * right).sum(axis=-1)
    return [_Half(name, *of) for of in zip(promised.tolist(), reached.tolist(), variance.tolist(), strict=True)]
