"""The privacy blanket of a shuffled crowd: an upper bound of delta at a given epsilon, and of epsilon at a given delta.

n devices with one blanket, E = exp(epsilon) < e0. For any two data sets that differ in one device (Balle et al. 2019,
Lemma 5.3, with the numbers of reports of each kind by :mod:`ldp_aggregator.amplification.blankets`):

    delta <= 1/n E[(N10 (e0 - E) - N01 (E e0 - 1) - (E - 1) (e0 N11 + N00))+],
    (N10, N01, N11, N00, rest) ~ Multinomial(n; m10, m10, m11, m00, 1 - g).

How it is evaluated, every step upward:

* K = N10 + N01 ~ Bin(n, 2 m10) in intervals [k0, k1] of an eighth of a standard deviation. Given K, the first two terms
  are K steps of a walk, of e0 - E or -(E e0 - 1) by a fair coin, whose mean (1 - E) (1 + e0) / 2 is negative. Without
  its drift the walk is a martingale, of which convex functions rise with K: so k1 steps, and the drift of k0.
* R = e0 N11 + N00 is replaced by a lower quantile given that K <= k1, from Chernoff's bound at one exponent.
* What lies outside (K below or above all intervals, R below its quantile) has probability at most ``tail`` each. There
  the positive part is at most N10 e0, of mean at most n, since e0 m10 is the probability of a report; each adds at
  most ``tail``.
* What is left is E[(Bin(k1, 1/2) - threshold)+] and P(K in the interval): :mod:`ldp_aggregator.amplification.binomial`.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.amplification.binomial import (
    INFLATION,
    fair_excess,
    interval_probability,
    lower_end,
    upper_end,
)
from ldp_aggregator.mechanisms.facts import Blanket

MOST_REPORTS: Final = 1 << 40
"""More are counted as so many: the numerical argument is made up to here, and more reports reveal less."""

_LARGEST_TAIL: Final = 1e-14
_TAIL_SHARE: Final = 1e-5
_TAILS: Final = 3
_INTERVALS_PER_DEVIATION: Final = 8
_ROUNDING: Final = 1e-14
_STEPS: Final = 60
_LINES: Final = 5
"""Every so many steps the interval is halved instead, so that no shape of the bound makes it crawl."""
_PRECISION: Final = 1e-4


def delta_bound(blanket: Blanket, reports: int, epsilon: float, tail: float = _LARGEST_TAIL) -> float:
    """An upper bound of delta at ``epsilon`` >= 0 for ``reports`` >= 1 shuffled reports; ``tail`` is added thrice."""
    return _Crowd(blanket, reports, tail).delta(math.expm1(epsilon))


def epsilon_bound(blanket: Blanket, reports: int, delta: float) -> float | None:
    """An epsilon at which the bound of delta is at most ``delta``, within 1e-4 of the least; None where it is not
    below the loss of one report, which then is what holds.
    """
    if reports < 1:
        return None
    crowd = _Crowd(blanket, reports, min(_LARGEST_TAIL, _TAIL_SHARE * delta))
    largest = float(blanket.ratio - 1)
    found = _least_excess(crowd, delta, largest)
    epsilon = math.log1p(found) * INFLATION
    return epsilon if epsilon < math.log1p(largest) else None


def _least_excess(crowd: _Crowd, delta: float, largest: float) -> float:
    """An excess of E over 1, at most ``largest``, whose bound is at most ``delta``; ``largest`` where none below is.

    The root of minus ln delta is nearly linear in the excess, so that lines find it in a few steps; what is returned
    was evaluated.
    """
    wanted = math.sqrt(-math.log(delta))
    low, of_low, high, of_high = 0.0, 0.0, largest, math.inf
    at = min(crowd.typical_excess * wanted, largest / 2)
    for step in range(_STEPS):
        told = crowd.delta(at)
        here = math.sqrt(max(0.0, -math.log(told)))
        if told <= delta:
            high, of_high = at, here
        else:
            low, of_low = at, here
        if high <= low * (1 + _PRECISION):
            break
        if math.isinf(of_high):
            at = low * max(wanted / of_low, 2.0) if of_low else (low + high) / 2
        elif step % _LINES == _LINES - 1:
            at = (low + high) / 2
        else:
            at = low + (high - low) * (wanted - of_low) / (of_high - of_low)
        at = min(max(at, low * (1 + _PRECISION / 2)), high * (1 - _PRECISION / 2))
    return high


class _Crowd:
    """What does not change with epsilon, in doubles. ``excess`` is E - 1, so that nothing cancels at small epsilons."""

    def __init__(self, blanket: Blanket, reports: int, tail: float) -> None:
        n = self._reports = min(reports, MOST_REPORTS)
        self._tail = tail
        self._rise = float(blanket.ratio - 1)
        told = min(float(2 * blanket.told), math.nextafter(1.0, 0.0))
        first, end = lower_end(n, told, tail), upper_end(n, told, tail)
        deviation = math.sqrt(n * told * (1 - told))
        width = max(1, math.floor(deviation / _INTERVALS_PER_DEVIATION))
        self._least = np.arange(first, min(end, n + 1), width, dtype=np.float64)
        self._most = np.minimum(self._least + (width - 1), n)
        self._probability = interval_probability(self._least, width, n, told)
        self._others = self._quantile(blanket, told)
        self.typical_excess = self._rise * math.sqrt(2 * n * told) / n
        """Where the drift of all reports is as large as sqrt 2 deviations of their walk."""

    def _quantile(self, blanket: Blanket, told: float) -> NDArray[np.float64]:
        """For every interval an r with P(R < r) <= tail: exp(s r) E[exp(-s R)] is at most that, for any s > 0."""
        rest = 1 - told
        both, neither = float(blanket.both) / rest, float(blanket.neither) / rest
        ratio = float(blanket.ratio)
        trials = self._reports - self._most
        second = both * ratio**2 + neither
        if second <= 0:
            return np.zeros_like(trials)
        variance = np.maximum(trials * (second - (both * ratio + neither) ** 2), second)
        wanted = -math.log(self._tail)
        s = np.sqrt(2 * wanted / variance)
        log_mean = trials * np.log1p(np.maximum(both * np.expm1(-s * ratio) + neither * np.expm1(-s), -1 + 1e-300))
        return np.maximum(0.0, (-log_mean * (1 - _ROUNDING) - wanted * INFLATION) / s)

    def delta(self, excess: float) -> float:
        """The bound at E = 1 + excess."""
        if excess >= self._rise:
            return 0.0
        step = self._rise * (2 + excess)
        drift = self._least * (excess * (2 + self._rise) / (2 * step))
        threshold = self._most / 2 + (drift + self._others * (excess / step)) * (1 - _ROUNDING)
        # Not below the middle, where the fall of the terms would have the wrong sign.
        threshold = np.maximum(threshold * (1 - _ROUNDING), self._most / 2)
        mean = step * float(self._probability @ fair_excess(self._most, threshold)) / self._reports
        return min(1.0, mean * INFLATION + _TAILS * self._tail)
