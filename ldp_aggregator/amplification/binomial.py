"""Upper bounds of binomial probabilities and tails, from positive terms only, vectorised.

Everything here is at least the truth. Formulae bound from above in exact arithmetic: Stirling's series envelops ln n!,
and a binomial law is log-concave, so that it stays below the geometric progression through two neighbours. Rounding
is covered by a forward argument: no two numbers of like size are subtracted but for (x - mean) and one difference that
is told below, a logarithm of a probability has an absolute error below 1e-11 (arguments up to 2^40, logarithms that
matter above -700), and the sums are of positive terms. :data:`INFLATION`, by which results are multiplied at
the end, is thousands of times what doubles lose.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

INFLATION: Final = 1 + 1e-6

_NEAR: Final = 0.1
_TERMS: Final = 8
"""Of a series in squares below :data:`_NEAR` squared: what is left out is below 1e-17 of the first."""

_LEAST: Final = -700.0
"""Logarithms below are taken for this, whose exponential is a double above 0."""

_BLOCKS: Final = 64
_BLOCKS_PER_DEVIATION: Final = 8


def log_probability(successes: Array, trials: Array | float, p: float) -> Array:
    """An upper bound of ln P(Bin(trials, p) = successes), 0 <= successes <= trials, 0 < p < 1.

    C. Loader, "Fast and Accurate Computation of Binomial Probabilities" (2000): deviances from the mean, and Stirling's
    remainders, 1 / (12 n) - 1 / (360 n^3) < r(n) < 1 / (12 n).
    """
    n = np.asarray(trials, dtype=np.float64)
    rest: Array = n - successes
    j: Array = np.broadcast_to(successes, rest.shape)
    inner = (j > 0) & (rest > 0)
    safe_j, safe_rest = np.where(inner, j, 1.0), np.where(inner, rest, 1.0)
    total = safe_j + safe_rest
    deviance = _deviance(safe_j, total * p) + _deviance(safe_rest, total * (1 - p))
    spread = 0.5 * np.log(total / (2 * math.pi * safe_j * safe_rest))
    remainders = 1 / (12 * total) - _least_remainder(safe_j) - _least_remainder(safe_rest)
    ends = np.where(j > 0, n * math.log(p), n * math.log1p(-p))
    return np.maximum(np.where(inner, spread - deviance + remainders, ends), _LEAST)


def interval_probability(first: Array, width: float, trials: float, p: float) -> Array:
    """Upper bounds of P(first <= Bin(trials, p) < first + width)."""
    here = np.exp(log_probability(first, trials, p))
    with np.errstate(divide="ignore"):
        growth = np.log((trials - first) / (first + 1)) + math.log(p) - math.log1p(-p)
    growth = np.maximum(growth, _LEAST)
    flat = np.abs(growth) * width < 1e-9
    steps = np.where(flat, 1.0, growth)
    # Flat: at most width (1 + 1e-9) terms' worth, which the inflation covers.
    return here * np.where(flat, width, np.expm1(steps * width) / np.expm1(steps))


def fair_excess(trials: Array, threshold: Array) -> Array:
    """Upper bounds of E[(X - threshold)+], X ~ Bin(trials, 1/2), with threshold >= trials / 2.

    The sum from the first integer above the threshold on, in blocks of an eighth of a standard deviation; each stays
    below the geometric progression from its start, and the last one has no end.
    """
    if not len(trials):
        return np.zeros(0)
    block = np.maximum(1.0, np.floor(np.sqrt(trials) / (2 * _BLOCKS_PER_DEVIATION)))[:, None]
    k, level = trials[:, None], threshold[:, None]
    start: Array = np.floor(level) + 1 + block * np.arange(_BLOCKS, dtype=np.float64)
    possible = start <= k
    start = np.minimum(start, k)
    here = np.exp(log_probability(start, k, 0.5))
    fall = (2 * start + 1 - k) / (start + 1)  # 1 - ratio of neighbours, in (0, 1]
    with np.errstate(divide="ignore"):
        rate = np.minimum(-np.log1p(-fall), -_LEAST)
    rate[:, -1] = np.inf
    terms = -np.expm1(-rate * block) / fall
    # The sum of i r^i. The difference loses a factor of 1 / (rate * block) in precision, at most 1e7 of 1e16.
    weighted = np.maximum(((1 - fall) * terms - block * np.exp(-rate * block)) / fall, 0.0)
    found: Array = np.where(possible, here * ((start - level) * terms + weighted), 0.0).sum(axis=1)
    return found


def lower_end(trials: int, p: float, tail: float) -> int:
    """A k with P(Bin(trials, p) < k) <= tail, by Chernoff's bound; 0 where there is none above it."""
    return _beyond(trials, p, 1 - p, tail)


def upper_end(trials: int, p: float, tail: float) -> int:
    """A k with P(Bin(trials, p) >= k) <= tail, or trials + 1."""
    return trials + 1 - _beyond(trials, 1 - p, p, tail)


def _beyond(trials: int, p: float, q: float, tail: float) -> int:
    """One more than the largest k below the mean with P(Bin(trials, p) <= k) <= tail by Chernoff's bound; q = 1 - p."""
    wanted = -math.log(tail) * INFLATION
    low, high = -1, math.floor(trials * p) + 1
    while high - low > 1:
        middle = (low + high) // 2
        told = float(_deviance(np.array([float(middle)]), trials * p)[0]) if middle else trials * p
        told += float(_deviance(np.array([float(trials - middle)]), trials * q)[0]) if middle < trials else 0.0
        low, high = (middle, high) if middle <= trials * p and told >= wanted else (low, middle)
    return low + 1


def _deviance(x: Array, mean: Array | float) -> Array:
    """X ln(x / mean) + mean - x >= 0, for x > 0."""
    part = (x - mean) / (x + mean)
    square = np.minimum(part * part, _NEAR**2)
    series = np.zeros_like(square)
    for power in range(_TERMS, 0, -1):
        series = (series + 1 / (2 * power + 1)) * square
    near = (x - mean) * part + 2 * x * part * series
    far = x * np.log(x / mean) + mean - x
    return np.where(np.abs(part) < _NEAR, near, far)


def _least_remainder(n: Array) -> Array:
    return 1 / (12 * n) - 1 / (360 * n**3)
