"""Clopper-Pearson bounds: the privacy loss that counts of an event prove, whatever the true probabilities are.

Two of them. ``loss_bound`` compares an event's frequency under one input with that under the other; the other may be a
crowd in equal parts, because a sum of unequal coins is no wider than one of equal coins (Hoeffding 1956).
``guess_bound`` is about a guesser who sees uploads of k people, each sent by one of them who was drawn by lot, and says
for some of them whose they are: epsilon-LDP leaves no upload with a posterior above exp(epsilon) / (exp(epsilon) + k -
1), so that every guess, whatever rule it follows, is right with probability at most that (Kairouz, Oh, Viswanath 2015;
as an audit Steinke, Nasr, Jagielski 2023). It pays for one interval where the other pays for two, and sees all people
at once, but it only sees their average.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import beta


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


def share_bound(count: int, trials: int, alpha: float) -> float:
    """A lower bound of an event's probability, wrong with probability at most ``alpha``."""
    return float(beta.ppf(alpha, count, trials - count + 1)) if count else 0.0


def guess_bound(right: int, wrong: int, alpha: float, people: int = 2) -> float:
    """Lower bound of the loss from independent guesses among ``people``; wrong with probability at most ``alpha``."""
    if not right:
        return -math.inf
    least = share_bound(right, right + wrong, alpha)
    return math.log(least) - math.log1p(-least) + math.log(people - 1)
