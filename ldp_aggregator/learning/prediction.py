"""How good a model will be, as far as its own reports can tell.

Nothing in the reports says how features go together, so that no exact number can be known from them; an evaluation
round measures one. What can be told are two ends. ``low``: what the best feature alone reaches, however much the others
repeat it. ``high``: what all reach if they know different things of the class (if they are independent given the class,
as Naive Bayes takes them to be). Both are averaged over populations drawn from the posterior, and widened by two
standard deviations among these populations; then three quarters of their distance are added on either side, because
features that go together can be worth more than independent ones (Car), or less. The model is the published one
throughout.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.estimation.posterior.tables import Posterior
from ldp_aggregator.estimation.simplex import norm_sub
from protocols.model import DiscreteLikelihood, GaussianLikelihood, Model

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

_POPULATIONS: Final = 16
_RECORDS: Final = 500
"""Of every population: 8,000 in all, which tell a share to half a percent."""

STANDARD_DEVIATIONS: Final = 2.0
"""Among the populations: those by which the ends are widened, and by which a gain has to be above 0 to be believed."""

_SLACK: Final = 0.75
"""Of the distance of the two ends, on either side. Chosen on chess, mushroom, car and connect4."""

_SEED: Final = 0
"""The same reports give the same numbers; nothing here is anybody's privacy."""


@dataclass(frozen=True)
class PredictedAccuracy:
    """``alone`` and ``together`` are the two ends; ``prior`` is the accuracy of saying the most frequent class, had one
    known which it is.

    ``gain`` is how far the model is above ``prior``, on average over what the population may be and with features that
    know different things, and ``gain_error`` its standard deviation among these populations.
    """

    alone: float
    together: float
    prior: float
    gain: float
    gain_error: float

    @property
    def low(self) -> float:
        return widened(self.alone, self.together)[0]

    @property
    def high(self) -> float:
        return widened(self.alone, self.together)[1]

    @property
    def above_prior(self) -> bool:
        """Whether the gain is above 0 by two standard deviations: a model that is not is published only on demand."""
        return self.gain > STANDARD_DEVIATIONS * self.gain_error

    def to_json(self) -> dict[str, Any]:
        rounded = {name: round(getattr(self, name), 4) for name in ("low", "high", "prior", "gain", "gain_error")}
        return {**rounded, "above_prior": self.above_prior}


def widened(alone: float, together: float) -> tuple[float, float]:
    """What is told for the two ends: features that go together can be worth more, or less, than independent ones."""
    slack = _SLACK * (together - alone)
    return max(0.0, alone - slack), min(1.0, together + slack)


def predict_accuracy(model: Model, posterior: Posterior) -> PredictedAccuracy:
    """Of ``model`` among the populations that ``posterior`` leaves possible; Gaussian features are as in the model."""
    rng = np.random.default_rng(_SEED)
    shares, tables = _draw(model, posterior, rng)
    prior = np.array(model.prior)
    said = int(prior.argmax())
    classes = np.stack([_classes(one, rng) for one in shares])
    places = classes + prior.size * np.arange(_POPULATIONS)[:, None]
    with np.errstate(divide="ignore"):
        scores = np.tile(np.log(prior)[:, None, None], (1, *classes.shape))
        for position, likelihood in enumerate(model.likelihoods):
            if isinstance(likelihood, GaussianLikelihood):
                terms = _gaussian_terms(likelihood, classes, rng)
                missing = posterior.missing.get(likelihood.feature.name, 0.0)
                if missing:
                    terms *= rng.random(classes.shape) >= missing
                scores += likelihood.weight * terms
            else:
                values = _values(tables[position], places, rng)
                rows = likelihood.weight * np.log(np.array(likelihood.table))
                # A value beyond those of the model is missing, and says nothing.
                columns = np.vstack([rows, np.zeros(rows.shape[1])]).T
                for score, column in zip(scores, columns, strict=True):
                    score += column.take(values)
    right = scores.argmax(axis=0) == classes
    most = shares.max(axis=1)
    more = right.astype(float) - (classes == said)  # On the same records: their own spread cancels.
    gains = more.mean(axis=1) - (most - shares[:, said])
    gain_spread = max(0.0, float(gains.var(ddof=1) - more.var(axis=1).mean() / _RECORDS))
    each = right.mean(axis=1)
    spread = max(0.0, float(each.var(ddof=1) - (each * (1 - each)).mean() / _RECORDS))
    alone = _best_feature(model, shares, tables)
    high = float(each.mean()) + STANDARD_DEVIATIONS * spread**0.5
    low = float(alone.mean() - STANDARD_DEVIATIONS * alone.std(ddof=1))
    low = min(low, float(each.mean()) - STANDARD_DEVIATIONS * spread**0.5)
    return PredictedAccuracy(max(0.0, low), min(1.0, high), float(most.mean()), float(gains.mean()), gain_spread**0.5)


def _draw(model: Model, posterior: Posterior, rng: np.random.Generator) -> tuple[Array, list[Array]]:
    """P(class), shape (populations, C), and P(value | class) of every feature of the model, shape (populations, K, C),
    that a value is missing after the values; an empty array for a Gaussian one.
    """
    told = posterior.classes
    noise = rng.multivariate_normal(np.zeros(told.raw.size), told.covariance, size=_POPULATIONS, method="eigh")
    shares = norm_sub((told.raw + noise).T).T
    names = [likelihood.feature.name for likelihood in model.likelihoods]
    drawn = {name: posterior.features[name].draw(_POPULATIONS, rng) for name in names if name in posterior.features}
    cells = posterior.cells_of(drawn)
    return shares, [cells.get(name, np.empty(0)) for name in names]


def _classes(shares: Array, rng: np.random.Generator) -> Integers:
    """As many records of every class as its share says, but for rounding."""
    points = (np.arange(_RECORDS) + rng.random()) / _RECORDS
    found: Integers = np.minimum(np.searchsorted(np.cumsum(shares), points), shares.size - 1)
    return found


def _values(tables: Array, places: Integers, rng: np.random.Generator) -> Integers:
    """A value for every record, from its class's column of its population's table; shape (populations, records).

    ``places`` are those of the records' columns among all, ``population * C + class``.
    """
    drawn, found = rng.random(places.shape), np.zeros(places.shape, dtype=np.int64)
    for limits in np.moveaxis(np.cumsum(tables, axis=1)[:, :-1], 1, 0):
        found += drawn > limits.take(places)
    return found


def _gaussian_terms(likelihood: GaussianLikelihood, classes: Integers, rng: np.random.Generator) -> Array:
    """The log densities of drawn records under every class, up to a constant; shape (C, populations, records)."""
    mean, variance = np.array(likelihood.mean), np.array(likelihood.variance)
    drawn = mean[classes] + np.sqrt(variance)[classes] * rng.standard_normal(classes.shape)
    values = np.clip(drawn, likelihood.feature.low, likelihood.feature.high)
    mean, variance = mean[:, None, None], variance[:, None, None]
    terms: Array = -0.5 * np.log(variance) - (values - mean) ** 2 / (2 * variance)
    return terms


def _best_feature(model: Model, shares: Array, tables: Sequence[Array]) -> Array:
    """The accuracy, in every population, of the best discrete feature alone; of the prior where there is none."""
    prior = np.array(model.prior)
    best = shares[:, prior.argmax()]
    for likelihood, drawn in zip(model.likelihoods, tables, strict=True):
        if isinstance(likelihood, DiscreteLikelihood):
            said = (np.array(likelihood.table) * prior).argmax(axis=1)
            said = np.append(said, np.full(drawn.shape[1] - said.size, prior.argmax()))
            found = (drawn[:, np.arange(said.size), said] * shares[:, said]).sum(axis=1)
            best = found if found.mean() > best.mean() else best
    return best
