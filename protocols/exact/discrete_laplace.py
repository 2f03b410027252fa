"""Discrete Laplace noise on the integers, sampled exactly (Canonne, Kamath, Steinke 2020, Algorithms 1 and 2).

P(X = x) = tanh(1 / (2 t)) exp(-|x| / t) for integer x and a rational scale t > 0.
"""

from __future__ import annotations

import math
from fractions import Fraction

from protocols.exact.coins import Coins


def sample(scale: Fraction, coins: Coins) -> int:
    """One draw with scale ``scale``, in integers only (Algorithm 2)."""
    numerator, denominator = scale.numerator, scale.denominator
    while True:
        offset = coins.below(numerator)
        if not _bernoulli_exp(offset, numerator, coins):
            continue
        periods = 0
        while _bernoulli_exp(1, 1, coins):
            periods += 1
        magnitude = (offset + numerator * periods) // denominator
        negative = coins.below(2) == 1
        if not (negative and magnitude == 0):
            return -magnitude if negative else magnitude


def variance(scale: Fraction) -> float:
    """2 a / (1 - a)^2 with a = exp(-1 / scale): the second moment of the noise that is really drawn, not 2 t^2."""
    rate = 1 / float(scale)
    return 2 * math.exp(-rate) / math.expm1(-rate) ** 2


def _bernoulli_exp(numerator: int, denominator: int, coins: Coins) -> bool:
    """True with probability exp(-numerator / denominator), for 0 <= numerator <= denominator (Algorithm 1)."""
    trials = 1
    while coins.below(denominator * trials) < numerator:
        trials += 1
    return trials % 2 == 1
