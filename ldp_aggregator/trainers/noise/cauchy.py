"""Cauchy noise for smooth sensitivity: how much is needed, and how to draw it without floating-point leaks.

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
from fractions import Fraction
from typing import Final

from protocols.exact.coins import WORD_BITS, Coins

SLACK: Final = 1e-9

_LARGEST_EPSILON: Final = 600.0


def largest_beta(epsilon: float) -> float:
    """The largest beta that leaves alpha at its largest: ln(2 cosh(epsilon) - 1). It does not depend on the data."""
    return math.log1p(4 * math.sinh(min(epsilon, _LARGEST_EPSILON) / 2) ** 2)


def calibrate(epsilon: float, beta: float) -> float:
    """Alpha, so that S / alpha times a standard Cauchy variable is epsilon-DP for every beta-smooth S.

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


def true_loss(alpha: float, beta: float) -> float:
    """What noise S / alpha really loses, for S beta-smooth: the inverse of :func:`calibrate`."""
    ratio = math.exp(beta)
    same = 1 + alpha**2 / 2
    apart = (alpha**2 + 1 + ratio**2) / (2 * ratio)
    return math.acosh(max(same, apart))


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
        first, last = (_nearest((place + scale * ratio) / step) for ratio in (Fraction(y, x + 1), Fraction(y + 1, x)))
        if first == last:
            return first


def _nearest(value: Fraction) -> int:
    return math.floor(value + Fraction(1, 2))
