"""Smooth sensitivity of mean, variance and standard deviation of values in [0, 1].

A beta-smooth S bounds the local sensitivity at every table and changes by at most exp(beta) between neighbours: the
maximum over k of exp(-beta k) times A_k, the largest local sensitivity within k changes (Nissim, Raskhodnikova, Smith
2007). Zafarani and Clifton (2020) use it for Naive Bayes; they maximise |f(V) - f(V')| where this definition asks for
A_k, and need O(n^2) for what is O(n log n) here.

The functions of the values are under ``replace`` (the number of values is public). Those of the number of values alone
are under ``add-remove``, where it is private; an empty class has mean 1/2 and variance 0.

Cauchy noise for smooth sensitivity: how much is needed, and how to draw it without floating-point leaks.

Calibration. Scale s and place m of a Cauchy law are a point of the hyperbolic half-plane, and the largest log ratio of
two such densities is the hyperbolic distance, arccosh(1 + ((m1 - m2)^2 + (s1 - s2)^2) / (2 s1 s2)). With s = S / alpha,
|m1 - m2| <= min(S1, S2) and |ln(S1 / S2)| <= beta this is at most epsilon exactly for the alpha of :func:`calibrate`.

Drawing. A Cauchy variable is y / x for a point uniform in the half disc. Its coordinates are read 64 bits at a time, as
many as are needed to know on which grid point (place + scale y / x) falls: the outcome has exactly the law of the ideal
variable rounded to the grid, in integers throughout, and rounding costs no privacy. What remains in floating point is S
itself, computed from exact sums: its relative error is below 1e-12, alpha is rounded down and S up by :data:`SLACK`,
and beta keeps that much in reserve, so that the S that is used is beta-smooth and an upper bound.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.trainers.randomness import Integers
from ldp_protocols.exact import WORD_BITS, Coins

Array = NDArray[np.float64]

SLACK: Final = 1e-9

_LARGEST_EPSILON: Final = 600.0


def largest_beta(epsilon: float) -> float:
    """The largest beta that leaves alpha at its largest: ln(2 cosh(epsilon) - 1). It does not depend on the data."""
    return math.log1p(4 * math.sinh(min(epsilon, _LARGEST_EPSILON) / 2) ** 2)


def calibrate(epsilon: float, beta: float) -> float:
    """`alpha`, so that S / alpha times a standard Cauchy variable is epsilon-DP for every beta-smooth S.

    min(2 sinh(epsilon / 2), sqrt(2 exp(beta) (cosh(epsilon) - cosh(beta)))); ValueError unless beta < epsilon.
    """
    epsilon = min(epsilon, _LARGEST_EPSILON)
    most = 2 * math.sinh(epsilon / 2)
    if 0 <= beta <= largest_beta(epsilon):
        return most
    if not 0 <= beta < epsilon:
        raise ValueError(f"beta must be at least 0 and below epsilon {epsilon:g}, not {beta:g}")
    gap = 4 * math.sinh((epsilon + beta) / 2) * math.sinh((epsilon - beta) / 2)  # 2 (cosh epsilon - cosh beta)
    return min(most, math.sqrt(math.exp(beta) * gap))


def release(value: Fraction, smooth: float, alpha: float, step: Fraction, coins: Coins) -> Fraction:
    """``value`` plus Cauchy noise of scale ``smooth`` / ``alpha``, as a multiple of ``step``."""
    scale = Fraction(smooth * (1 + SLACK)) / Fraction(alpha * (1 - SLACK))
    return rounded_draw(value, scale, step, coins) * step


def rounded_draw(place: Fraction, scale: Fraction, step: Fraction, coins: Coins) -> int:
    """The nearest integer to (place + scale C) / step for a standard Cauchy variable C, exactly in law."""
    sign = 1 if coins.below(2) else -1
    while True:
        nearest = _draw_in_square(place, sign * scale, step, coins)
        if nearest is not None:
            return nearest


def _draw_in_square(place: Fraction, scale: Fraction, step: Fraction, coins: Coins) -> int | None:
    """One uniform point of the unit square, None where it lies outside of the disc."""
    x = y = bits = 0
    while True:
        next_x, next_y = coins.words(2)
        x, y, bits = x << WORD_BITS | next_x, y << WORD_BITS | next_y, bits + WORD_BITS
        if x * x + y * y >= 1 << (2 * bits):
            return None
        if (x + 1) ** 2 + (y + 1) ** 2 > 1 << (2 * bits) or x == 0:
            continue
        ends = ((place + scale * ratio) / step for ratio in (Fraction(y, x + 1), Fraction(y + 1, x)))
        first, last = (math.floor(end + Fraction(1, 2)) for end in ends)
        if first == last:
            return first


def smooth_mean(ascending: Array, beta: float) -> float:
    """Smooth sensitivity of the mean, exact. A_0 = max(1 - least, largest) / m, and A_k = 1 / m from k = 1 on."""
    m = len(ascending)
    if m == 0:
        return 0.0
    return max(1 - float(ascending[0]), float(ascending[-1]), math.exp(-beta)) / m


def smooth_variance(ascending: Array, beta: float) -> float:
    """Smooth sensitivity of the population variance, exact, in O(m) after sorting and O(log m) for each k that matters.

    Replacing p by q changes the variance by (m - 1)/m^2 |q - p| |q + p - 2 mu|, mu the mean of the others: so that the
    k values replaced before all go to one end, and leave the smallest (or, reflected, the largest) m - k.
    """
    m = len(ascending)
    if m < 2:
        return 0.0
    unit = (m - 1) / m**2
    sides = [_Side(ascending), _Side(1 - ascending[::-1])]
    best = raw = 0.0
    for ks in _blocks(m):
        largest = np.maximum(sides[0].changes(ks), sides[1].changes(ks))
        largest[0] = max(raw, largest[0])
        np.maximum.accumulate(largest, out=largest)
        raw = float(largest[-1])
        best = max(best, unit * float((np.exp(-beta * ks) * largest).max()))
        if math.exp(-beta * (ks[-1] + 1)) * unit <= best:
            break
    return best


def smooth_mean_of_size(rows: int, beta: float) -> float:
    """Smooth sensitivity of the mean under ``add-remove``, whatever the values: 1/2 up to two rows, 1/rows beyond."""
    if rows <= 2:
        return 0.5
    return max(1 / rows, math.exp(-beta * (rows - 2)) / 2)


def smooth_variance_of_size(rows: int, beta: float) -> float:
    """Smooth sensitivity of the population variance under ``add-remove``, whatever the values: b(1) = b(2) = 1/4,
    b(j) = (j - 1)/j^2.
    exp(beta j) b(j) has its maximum at an end of [4, rows] or at 2 or 3.
    """
    if rows == 0:
        return math.exp(-beta) / 4
    sizes = {rows, 1, *(j for j in (2, 3, 4) if j <= rows)}
    return max(math.exp(-beta * (rows - j)) * max((j - 1) / j**2, 0.25 * (j == 1)) for j in sizes)


def _blocks(m: int) -> Iterator[Integers]:
    """The numbers 0 to m in pieces that double: few k matter for most tables, very many at a tiny beta."""
    start, size = 0, 64
    while start <= m:
        yield np.arange(start, min(start + size, m + 1))
        start, size = start + size, 2 * size


class _Side:
    """The values from one end: ``sums[j]`` is the sum of the j smallest."""

    def __init__(self, ascending: Array) -> None:
        self.values = ascending
        self.sums = np.concatenate([[0.0], np.cumsum(ascending)])

    def changes(self, ks: Integers) -> Array:
        """For each k the largest |q - p| |q + p - 2 mu| of a pair (p, q), k values having gone to 0."""
        m = len(self.values)
        left = self.sums[m - ks]
        # A value that is left goes to 1: the best is on either side of the parabola's peak.
        above = np.minimum(np.searchsorted(self.values, (1 + left) / (m + 1)), m - ks)
        largest: Array = np.zeros(len(ks))
        for position in (above - 1, above):
            there = (position >= 0) & (position < m - ks)
            t = self.values[position[there]]
            change = (1 - t) * (1 + t - 2 * (left[there] - t) / (m - 1))
            largest[there] = np.maximum(largest[there], change)
        # The largest value, or one of the k that went to 1 instead, moves to the mean of the others.
        rest = ks <= m - 1
        to_mean = (self.values[-1] - self.sums[m - 1 - ks[rest]] / (m - 1)) ** 2
        largest[rest] = np.maximum(largest[rest], to_mean)
        gone = ks >= 1
        largest[gone] = np.maximum(largest[gone], (1 - left[gone] / (m - 1)) ** 2)
        return largest
