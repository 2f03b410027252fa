"""Textbook queries: a count and a mean, with the sensitivities every introduction gives."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Final

import numpy as np

from ldp_aggregator.trainers import sensitivities
from ldp_aggregator.trainers.accountant import Accountant
from ldp_aggregator.trainers.randomness import RandomState, coins_of, discrete_laplace, release
from ldp_aggregator.trainers.sensitivities import REPLACE
from ldp_aggregator.trainers.statistics import GRID
from ldp_protocols.values import number_of

_COUNT_SENSITIVITY: Final = Fraction(1)


def private_count(flags: Iterable[object], *, epsilon: float, random_state: RandomState = None) -> int:
    """Count how many of ``flags`` are true, epsilon-DP when one person is added, removed or replaced: sensitivity 1.

    True is what :mod:`ldp_protocols.values` reads as a number other than 0; anything else is not.
    """
    spent = Accountant(epsilon).spend("count", Accountant(epsilon).total)
    exact = sum(1 for flag in flags if number_of(flag) not in (None, 0.0))
    return exact + int(discrete_laplace(_COUNT_SENSITIVITY / spent, 1, coins_of(random_state))[0])


def private_mean(
    values: Iterable[object],
    *,
    low: float,
    high: float,
    epsilon: float,
    relation: str = REPLACE,
    random_state: RandomState = None,
) -> float:
    """The mean of values clipped to public bounds, epsilon-DP; what is no number stands in the middle of the bounds.

    ``replace``: the number n is public and the sensitivity is (high - low) / n. ``add-remove``: half of epsilon goes to
    the count and half to the sum of distances from the midpoint, at most (high - low) / 2 each.
    """
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ValueError(f"low must be below high, both finite; got low {low} and high {high}")
    found = [number_of(value) for value in values]
    accountant = Accountant(epsilon)
    coins = coins_of(random_state)
    span, middle = Fraction(high) - Fraction(low), (Fraction(low) + Fraction(high)) / 2
    numbers = np.array([float(middle) if number is None else number for number in found], dtype=np.float64)
    centred = (np.clip(numbers, low, high) - float(middle)) / (float(span) / 2)
    steps = np.clip(np.rint(centred * GRID), -GRID, GRID).astype(np.int64)
    total = int(steps.sum()) * span / (2 * GRID)
    if sensitivities.checked_relation(relation) == REPLACE:
        if not len(numbers):
            raise ValueError("the mean of no values is not defined; relation 'add-remove' hides how many there are")
        spent = accountant.spend("mean", accountant.total)
        sensitivity = sensitivities.mean_replacing(len(numbers), span)
        mean = middle + release(total / len(numbers), sensitivity, spent, coins)
    else:
        half = accountant.total / 2
        noise = discrete_laplace(_COUNT_SENSITIVITY / accountant.spend("count", half), 1, coins)
        count = max(len(numbers) + int(noise[0]), 1)
        mean = middle + release(total, span / 2, accountant.spend("sum", half), coins) / count
    return min(max(float(mean), low), high)
