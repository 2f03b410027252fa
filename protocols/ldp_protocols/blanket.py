"""Bound of a crowd: the most that mixed reports reveal of one device, recomputed by it from the document alone.

Each of ``n`` honest devices answers one question by lot with direct encoding; whoever sees the reports sees them mixed.
With the privacy blanket (Balle, Bell, Gascon, Nissim, CRYPTO 2019, Lemma 5.3), `E = exp(epsilon)` and `e0` the largest
likelihood ratio of one report,

    delta <= 1/n E[(N10 (e0 - E) - N01 (E e0 - 1) - (E - 1) N00)+],   (N10, N01, N00, rest) ~ Multinomial(n; m, m, m0).

`K = N10 + N01` is taken in intervals of an eighth of a deviation; given K the first two terms are a fair walk with a
drift, and N00 is replaced by a lower quantile, from Chernoff's bound. Every step goes upward, in doubles, and
:data:`INFLATION` is thousands of times what they lose: :mod:`ldp_aggregator.amplification` gives the argument, and
evaluates the same for every mechanism on arrays. This one takes the standard library, and some hundredths of a second.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Final, NamedTuple

from ldp_protocols.document.crowd import Crowd
from ldp_protocols.document.questions import Question
from ldp_protocols.exact import exact_epsilon
from ldp_protocols.mechanisms import DirectEncoding

INFLATION: Final = 1 + 1e-6
_MOST_REPORTS: Final = 1 << 40
_TAIL_SHARE: Final = 1e-5
_LARGEST_TAIL: Final = 1e-14
_TAILS: Final = 3
_ROUNDING: Final = 1e-14
_PARTS: Final = 8
_BLOCKS: Final = 64
_LEAST: Final = -700.0
_NEAR: Final = 0.1
_TERMS: Final = 8
_STEPS: Final = 10_000


class Blanket(NamedTuple):
    """Direct encoding by lot: ``ratio`` is e0; a report is the other record's with probability ``told``, m; and one
    that any record gives with ``neither``, m0.
    """

    ratio: Fraction
    told: Fraction
    neither: Fraction


def blanket_of(questions: Sequence[Question]) -> Blanket | None:
    """The blanket of a device that answers one of ``questions`` by lot; None where one is not by direct encoding."""
    questions_asked = [(one.mechanism, one.weight) for one in questions if isinstance(one.mechanism, DirectEncoding)]
    return lot_of(questions_asked) if len(questions_asked) == len(questions) else None


def lot_of(mechanisms: Iterable[tuple[DirectEncoding, int]]) -> Blanket:
    """The blanket of a device that answers one question by lot: their mechanisms, and their weights."""
    weights: dict[DirectEncoding, int] = {}
    for mechanism, weight in mechanisms:
        weights[mechanism] = weights.get(mechanism, 0) + weight
    parts = [(weight, one.p / one.q, one.q, one.domain_size) for one, weight in weights.items()]
    ratio = max(of_one for _, of_one, _, _ in parts)
    # A question of a smaller ratio reveals no more than one of the largest that is answered less often.
    information = sum((weight * q * (of_one - 1) / (ratio - 1) for weight, of_one, q, _ in parts), Fraction(0))
    mass = sum((weight * q * size for weight, _, q, size in parts), Fraction(0))
    total = sum(weights.values())
    return Blanket(ratio, information / total, (mass - 2 * information) / total)


def keeps(blanket: Blanket, crowd: Crowd) -> bool:
    """True if the bound for the honest reports of a batch is at most what the crowd promises."""
    tail = min(_LARGEST_TAIL, _TAIL_SHARE * crowd.delta)
    return delta_bound(blanket, crowd.reports, crowd.epsilon, tail) <= crowd.delta


def largest_local(sizes: Sequence[tuple[int, int]], crowd: Crowd, most: float) -> float:
    """The largest local epsilon up to ``most``, itself or a multiple of 1e-4, that keeps the crowd's promise; ``asked``
    are the domain sizes and weights of the questions. Below the crowd's own epsilon every one keeps it.
    """

    def holds(epsilon: Fraction) -> bool:
        return keeps(lot_of((DirectEncoding.make(size, epsilon), weight) for size, weight in sizes), crowd)

    if holds(exact_epsilon(most)):
        return most
    low, high = (math.floor(exact_epsilon(epsilon) * _STEPS) for epsilon in (min(crowd.epsilon, most), most))
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(Fraction(middle, _STEPS)) else (low, middle)
    return low / _STEPS


def delta_bound(blanket: Blanket, reports: int, epsilon: float, tail: float = _LARGEST_TAIL) -> float:
    """An upper bound of delta at ``epsilon`` > 0 for ``reports`` >= 1 mixed reports, at most 1."""
    n, rise, excess = min(reports, _MOST_REPORTS), float(blanket.ratio - 1), math.expm1(epsilon)
    if excess >= rise:
        return 0.0
    p = min(float(2 * blanket.told), math.nextafter(1.0, 0.0))
    step = rise * (2 + excess)
    width = max(1, math.floor(math.sqrt(n * p * (1 - p)) / _PARTS))
    mean = 0.0
    for least in range(_beyond(n, p, 1 - p, tail), min(n + 1 - _beyond(n, 1 - p, p, tail), n + 1), width):
        most = min(least + width - 1, n)
        others = _quantile(float(blanket.neither) / (1 - p), n - most, tail)
        drift = least * (excess * (2 + rise) / (2 * step)) + others * (excess / step)
        threshold = max((most / 2 + drift * (1 - _ROUNDING)) * (1 - _ROUNDING), most / 2)
        mean += _interval(least, width, n, p) * _fair_excess(most, threshold)
    return min(1.0, step * mean / n * INFLATION + _TAILS * tail)


def _quantile(p: float, trials: int, tail: float) -> float:
    """An r with `P(Bin(trials, p) < r) <= tail`: `exp(s r) E[exp(-s R)]` is at most that, for any s > 0."""
    if p <= 0 or not trials:
        return 0.0
    wanted = -math.log(tail)
    s = math.sqrt(2 * wanted / max(trials * (p - p * p), p))
    log_mean = trials * math.log1p(max(p * math.expm1(-s), -1 + 1e-300))
    return max(0.0, (-log_mean * (1 - _ROUNDING) - wanted * INFLATION) / s)


def _interval(first: int, width: int, trials: int, p: float) -> float:
    """An upper bound of `P(first <= Bin(trials, p) < first + width)`, by the geometric progression from its start."""
    here = math.exp(_log_probability(first, trials, p))
    odds = (trials - first) / (first + 1)
    growth = max(math.log(odds) + math.log(p) - math.log1p(-p), _LEAST) if odds else _LEAST
    return here * (width if abs(growth) * width < 1e-9 else math.expm1(growth * width) / math.expm1(growth))


def _fair_excess(trials: int, threshold: float) -> float:
    """An upper bound of `E[(X - threshold)+]`, X ~ Bin(trials, 1/2), threshold >= trials / 2, in blocks of an eighth of
    a deviation, each below the geometric progression from its start; the last one has no end.
    """
    block = max(1.0, math.floor(math.sqrt(trials) / (2 * _PARTS)))
    mean, start = 0.0, math.floor(threshold) + 1.0
    for number in range(_BLOCKS):
        if start > trials:
            break
        fall = (2 * start + 1 - trials) / (start + 1)  # 1 - the ratio of neighbours, in (0, 1]
        rate = min(-math.log1p(-fall), -_LEAST) if fall < 1 else -_LEAST
        rest = 0.0 if number == _BLOCKS - 1 else math.exp(-rate * block)
        terms = (1.0 if rest == 0.0 else -math.expm1(-rate * block)) / fall
        weighted = max(((1 - fall) * terms - block * rest) / fall, 0.0)
        mean += math.exp(_log_probability(start, trials, 0.5)) * ((start - threshold) * terms + weighted)
        start += block
    return mean


def _log_probability(successes: float, trials: float, p: float) -> float:
    """An upper bound of `ln P(Bin(trials, p) = successes)` (Loader 2000)."""
    rest = trials - successes
    if not successes or not rest:
        return max(trials * (math.log(p) if successes else math.log1p(-p)), _LEAST)
    deviance = _deviance(successes, trials * p) + _deviance(rest, trials * (1 - p))
    remainders = 1 / (12 * trials) - _least_remainder(successes) - _least_remainder(rest)
    return max(0.5 * math.log(trials / (2 * math.pi * successes * rest)) - deviance + remainders, _LEAST)


def _beyond(trials: int, p: float, q: float, tail: float) -> int:
    """One more than the largest k below the mean with `P(Bin(trials, p) <= k) <= tail` by Chernoff's bound."""
    wanted, mean = -math.log(tail) * INFLATION, trials * p
    low, high = -1, math.floor(mean) + 1
    while high - low > 1:
        middle = (low + high) // 2
        terms = (_deviance(middle, mean) if middle else mean) + (
            _deviance(trials - middle, trials * q) if middle < trials else 0.0
        )
        low, high = (middle, high) if middle <= mean and terms >= wanted else (low, middle)
    return low + 1


def _deviance(x: float, mean: float) -> float:
    """`x ln(x / mean) + mean - x >= 0`, x > 0."""
    part = (x - mean) / (x + mean)
    if abs(part) >= _NEAR:
        return x * math.log(x / mean) + mean - x
    series = 0.0
    for power in range(_TERMS, 0, -1):
        series = (series + 1 / (2 * power + 1)) * part * part
    return (x - mean) * part + 2 * x * part * series


def _least_remainder(n: float) -> float:
    return 1 / (12 * n) - 1 / (360 * n**3)
