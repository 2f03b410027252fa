"""The bins of a model's score that an evaluation round asks about, chosen from the model alone.

Records are drawn from the model's own tables, as many of each class, so that a rare one has bins too; their edges are
even quantiles of the log odds, the nearest to 0 moved there. Nothing of anybody's data is looked at.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random
from typing import Final

from protocols.document.evaluation import MOST_BINS
from protocols.model import DiscreteLikelihood, Likelihood, Model

_RECORDS: Final = 2000
"""Records drawn of each class."""

_FURTHEST: Final = 700.0
"""Log odds beyond which exp overflows."""


def score_edges(model: Model, bins: int = MOST_BINS) -> tuple[float, ...]:
    """Return the inner edges of at most ``bins`` bins of the log odds of a model of two classes; 0 is one of them."""
    if not 2 <= bins <= MOST_BINS:
        raise ValueError(f"bins must be from 2 to {MOST_BINS}, not {bins}")
    coins = Random(0)  # noqa: S311 - the same model has the same edges; nobody's data is near
    prior = _odds(model.prior[0], model.prior[1])
    drawn = [_drawing(likelihood) for likelihood in model.likelihoods]
    odds = sorted(
        max(-_FURTHEST, min(_FURTHEST, prior + math.fsum(draw(coins, of_class) for draw in drawn)))
        for of_class in (0, 1)
        for _ in range(_RECORDS)
    )
    # Rounded: edges that people can read, and the same ones on every machine's logarithm.
    edges = [round(odds[len(odds) * place // bins], 2) for place in range(1, bins)]
    nearest = min(range(len(edges)), key=lambda place: abs(edges[place]))
    edges[nearest] = 0.0
    return tuple(sorted(set(edges)))


def _drawing(likelihood: Likelihood) -> Callable[[Random, int], float]:
    """Return a function that draws a value of a class and gives its log odds of the second class."""
    if isinstance(likelihood, DiscreteLikelihood):
        odds = [_odds(*row) for row in likelihood.table]
        shares = list(zip(*likelihood.table, strict=True))
        return lambda coins, of_class: coins.choices(odds, weights=shares[of_class])[0]
    mean, variance, feature = likelihood.mean, likelihood.variance, likelihood.feature

    def draw(coins: Random, of_class: int) -> float:
        x = feature.clip(coins.gauss(mean[of_class], math.sqrt(variance[of_class])))
        first, second = (-0.5 * math.log(v) - (x - m) ** 2 / (2 * v) for m, v in zip(mean, variance, strict=True))
        return second - first

    return draw


def _odds(first: float, second: float) -> float:
    """Return the log odds of the second, as far as they count."""
    if first == second:
        return 0.0
    if not first or not second:
        return _FURTHEST if second else -_FURTHEST
    return math.log(second / first)
