"""Clopper-Pearson bounds: what counts of an event prove about the privacy loss, whatever the true probabilities are.

Two of them. ``loss_bound`` compares an event's frequency under one input with that under the other. ``guess_bound`` is
about a guesser who sees uploads of two people, each sent for the one or the other by a fair coin, and says for some of
them whose they are: epsilon-LDP leaves no upload with posterior odds above exp(epsilon), so that every guess, whatever
rule it follows, is right with probability at most exp(epsilon) / (1 + exp(epsilon)) (Kairouz, Oh, Viswanath 2015; as
an audit Steinke, Nasr, Jagielski 2023). It pays for one interval where the other pays for two, and sees both directions
of a pair at once, but it only sees their average.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import beta

CONFIDENCE = 0.99
"""Of the whole audit: the probability that no bound it states is wrong."""

_RESERVE = 4.0
"""Standard deviations of the number of heads that are set aside."""


def loss_bound(ones: ArrayLike, one_trials: int, others: ArrayLike, other_trials: int, alpha: float) -> NDArray[Any]:
    """Lower bounds of ln(P(event | one) / P(event | other)), each wrong with probability at most ``alpha``.

    ``ones`` and ``others`` count the event among independent trials under either input; half of ``alpha`` goes to
    the lower bound of the first probability, half to the upper bound of the second.
    """
    ones, others = np.asarray(ones), np.asarray(others)
    with np.errstate(divide="ignore", invalid="ignore"):
        low = np.where(ones > 0, beta.ppf(alpha / 2, ones, one_trials - ones + 1), 0.0)
        high = np.where(others < other_trials, beta.ppf(1 - alpha / 2, others + 1, other_trials - others), 1.0)
        bound: NDArray[Any] = np.log(low) - np.log(high)
    return bound


def guess_bound(right: int, wrong: int, alpha: float) -> float:
    """A lower bound of the loss from guesses in independent rounds, wrong with probability at most ``alpha``."""
    if not right:
        return -math.inf
    least = float(beta.ppf(alpha, right, wrong + 1))
    return math.log(least) - math.log1p(-least)


def fair_rounds(trials: int, rng: np.random.Generator) -> tuple[int, int] | None:
    """How many uploads of either person take part in a guesser's rounds, as independent fair coins would have it.

    ``trials`` uploads of either are there. Some are set aside, so that coins seldom ask for more than that (with
    probability 6e-5); where they do there are no rounds, which makes no bound wrong.
    """
    rounds = 2 * (trials - math.ceil(_RESERVE * math.sqrt(trials / 2)))
    if rounds <= 0:
        return None
    ones = int(rng.binomial(rounds, 0.5))
    return (ones, rounds - ones) if max(ones, rounds - ones) <= trials else None
