"""Bounds from above of what shuffled reports reveal of one device.

**Blankets** are what the bound has to know of a randomiser: four numbers.

Write mu_x for the law of a report of item x. lo(y) <= min_x mu_x(y) is the *blanket*: with probability g = sum_y lo(y)
a report is drawn from lo / g whatever the item is (Balle, Bell, Gascon, Nissim, CRYPTO 2019, arXiv 1903.02837). For two
items x and x' what counts of a report y is the pair a = mu_x(y) / lo(y), b = mu_x'(y) / lo(y), both in [1, e0]. The
bound is the expectation of a convex function of a sum of independent a - E b, so it only rises where a pair is replaced
by random pairs of the same mean. A :class:`~ldp_aggregator.mechanisms.analysis.Blanket` is what is left when all
pairs are moved to the corners of that square:

    m10 = m01 = P(blanket, (e0, 1)),   m11 = P(blanket, (e0, e0)),   m00 = P(blanket, (1, 1)) = g - 2 m10 - m11.

For direct encoding, subset selection and unary bits the pairs are corners already, and nothing is lost. The share of a
pair that goes to a = e0 is (a - 1) / (e0 - 1), of mean (1 / g - 1) / (e0 - 1) for every item, as mu_x adds up to 1:
that is why m10 = m01. Moving mass from (11 and 00) to (10 and 01) spreads further, so that a pair of items that are
further apart covers those that are nearer, and records that differ in every question cover all others.

An item that is random given the record (a stochastic bit, a missing value) needs no numbers of its own: the divergence
of two mixtures is at most the largest of their members'. All numbers are those of the integers in the document,
rational but for the two noisy vectors, whose exponentials are taken from the side that reveals more.

**The bound**: an upper bound of delta at a given epsilon, and of epsilon at a given delta.

n devices with one blanket, E = exp(epsilon) < e0. For any two data sets that differ in one device (Balle et al. 2019,
Lemma 5.3):

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
* What is left is E[(Bin(k1, 1/2) - threshold)+] and P(K in the interval): the binomial bounds at the end.

**Binomial probabilities** and tails are bounded from positive terms only, vectorised.

All of them are at least the truth. Formulae bound from above in exact arithmetic: Stirling's series envelops ln n!,
and a binomial law is log-concave, so that it stays below the geometric progression through two neighbours. Rounding
is covered by a forward argument: no two numbers of like size are subtracted but for (x - mean) and one difference that
is told below, a logarithm of a probability has an absolute error below 1e-11 (arguments up to 2^40, logarithms that
matter above -700), and the sums are of positive terms. :data:`INFLATION`, by which results are multiplied at
the end, is thousands of times what doubles lose.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Final

import numpy as np

from ldp_aggregator.mechanisms import analysis_of
from ldp_aggregator.mechanisms.analysis import Array, Blanket
from ldp_protocols import Campaign, Question
from ldp_protocols.mechanisms import AnyMechanism

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

INFLATION: Final = 1 + 1e-6

_NEAR: Final = 0.1
_TERMS: Final = 8
"""Terms of a series in squares below :data:`_NEAR` squared: what is left out is below 1e-17 of the first."""

_LEAST: Final = -700.0
"""Logarithms below are taken for this, whose exponential is a double above 0."""

_BLOCKS: Final = 64
_BLOCKS_PER_DEVIATION: Final = 8


def campaign_blankets(campaign: Campaign) -> tuple[Blanket, ...]:
    """The blanket of what a device answers with ``answers: "one"``; with ``"all"`` one for each group."""
    return tuple(drawn_blanket(pool) for pool in campaign.pools)


def drawn_blanket(questions: Sequence[Question]) -> Blanket:
    """The blanket of a device that draws one of ``questions`` by their weights and sends it along in clear."""
    weights: dict[AnyMechanism, int] = {}
    for question in questions:
        weights[question.mechanism] = weights.get(question.mechanism, 0) + question.weight
    total = sum(weights.values())
    return mixed((Fraction(weight, total), blanket_of(mechanism)) for mechanism, weight in weights.items())


def mixed(parts: Iterable[tuple[Fraction, Blanket]]) -> Blanket:
    """Blanket of one randomiser drawn by lot and named in the report; ``parts`` are probabilities and blankets."""
    drawn = list(parts)
    ratio = max(blanket.ratio for _, blanket in drawn)
    parts = [(share, blanket.at_ratio(ratio)) for share, blanket in drawn]
    mass = sum((share * blanket.mass for share, blanket in parts), Fraction(0))
    single = sum((share * blanket.single for share, blanket in parts), Fraction(0))
    both = sum((share * blanket.both for share, blanket in parts), Fraction(0))
    return Blanket(ratio, mass, single, both)


@lru_cache(maxsize=1024)
def blanket_of(mechanism: AnyMechanism) -> Blanket:
    """The blanket of a mechanism, once: many questions of a campaign have one mechanism between them."""
    return analysis_of(mechanism).blanket()


def delta_bound(blanket: Blanket, reports: int, epsilon: float, tail: float = _LARGEST_TAIL) -> float:
    """An upper bound of delta at ``epsilon`` >= 0 for ``reports`` >= 1 shuffled reports; ``tail`` is added thrice."""
    return _Crowd(blanket, reports, tail).delta(math.expm1(epsilon))


def delta_bounds(blanket: Blanket, reports: int, epsilons: Iterable[float], tail: float = _LARGEST_TAIL) -> Array:
    """:func:`delta_bound` at each of ``epsilons``."""
    crowd = _Crowd(blanket, reports, tail)
    return np.array([crowd.delta(math.expm1(epsilon)) for epsilon in epsilons])


@lru_cache(maxsize=2048)  # Estimates are requested more often than reports come in, and groups have equal blankets.
def epsilon_bound(blanket: Blanket, reports: int, delta: float) -> float | None:
    """The least epsilon, within 1e-4, whose bound of delta is at most ``delta``; None where one report loses less."""
    if reports < 1:
        return None
    crowd = _Crowd(blanket, reports, min(_LARGEST_TAIL, _TAIL_SHARE * delta))
    largest = float(blanket.ratio - 1)
    found = _least_excess(crowd, delta, largest)
    epsilon = math.log1p(found) * INFLATION
    return epsilon if epsilon < math.log1p(largest) else None


def _least_excess(crowd: _Crowd, delta: float, largest: float) -> float:
    """An excess of E over 1, at most ``largest``, with a bound of at most ``delta``; ``largest`` where none has one."""
    wanted = math.sqrt(-math.log(delta))
    low, of_low, high, of_high = 0.0, 0.0, largest, math.inf
    at = min(crowd.typical_excess * wanted, largest / 2)
    for step in range(_STEPS):
        found = crowd.delta(at)
        here = math.sqrt(max(0.0, -math.log(found)))
        if found <= delta:
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
    """Keeps all that does not change with epsilon, in doubles; ``excess`` is E - 1, so that nothing cancels."""

    def __init__(self, blanket: Blanket, reports: int, tail: float) -> None:
        n = self._reports = min(reports, MOST_REPORTS)
        self._tail = tail
        self._rise = float(blanket.ratio - 1)
        single = min(float(2 * blanket.single), math.nextafter(1.0, 0.0))
        first, end = lower_end(n, single, tail), upper_end(n, single, tail)
        deviation = math.sqrt(n * single * (1 - single))
        width = max(1, math.floor(deviation / _INTERVALS_PER_DEVIATION))
        self._least = np.arange(first, min(end, n + 1), width, dtype=np.float64)
        self._most = np.minimum(self._least + (width - 1), n)
        self._probability = interval_probability(self._least, width, n, single)
        self._others = self._quantile(blanket, single)
        self.typical_excess = self._rise * math.sqrt(2 * n * single) / n
        """The excess at which the drift of all reports is as large as sqrt 2 deviations of their walk."""

    def _quantile(self, blanket: Blanket, single: float) -> Array:
        """For every interval an r with P(R < r) <= tail: exp(s r) E[exp(-s R)] is at most that, for any s > 0."""
        rest = 1 - single
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
    return np.asarray(np.where(possible, here * ((start - level) * terms + weighted), 0.0).sum(axis=1))


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
        deviance = float(_deviance(np.array([float(middle)]), trials * p)[0]) if middle else trials * p
        deviance += float(_deviance(np.array([float(trials - middle)]), trials * q)[0]) if middle < trials else 0.0
        low, high = (middle, high) if middle <= trials * p and deviance >= wanted else (low, middle)
    return low + 1


def _deviance(x: Array, mean: Array | float) -> Array:
    """The deviance `x ln(x / mean) + mean - x >= 0`, for x > 0."""
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
