"""Clopper-Pearson bounds: what counts of an event prove about the privacy loss, whatever the true probabilities are."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import beta

CONFIDENCE = 0.99
"""Of the whole audit: the probability that no bound it states is wrong."""


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
