"""Exact arithmetic and exact randomness: no floating-point number decides anything about privacy.

Every random decision on the device is derived from 64-bit words of the operating system's CSPRNG, in the order written
here, so that a port to another language can be proven equal by scripting the words (see :class:`ScriptedCoins`).

Rational arithmetic has directed rounding, so that a promised epsilon holds exactly. ``decimal`` computes exp and ln
correctly rounded to :data:`_DIGITS` digits; each result is widened by a few units in the last place, and the widened
interval is what is used.
"""

from __future__ import annotations

import math
import os
import struct
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from numbers import Rational
from typing import Final, SupportsFloat

WORD_BITS: Final = 64
ONE: Final = 1 << WORD_BITS
"""Probability one: a probability is an integer P and means P / 2**64."""

_DIGITS: Final = 60
_SLACK: Final = Fraction(1, 10 ** (_DIGITS - 3))
_LARGEST_EPSILON: Final = Fraction(64)
_QUOTIENT_DIGITS: Final = 12


class Coins(ABC):
    """A source of independent, uniformly random 64-bit words and what is drawn from them."""

    @abstractmethod
    def words(self, count: int) -> Sequence[int]:
        """``count`` words, each uniform on [0, 2**64)."""

    def bernoulli(self, probability: int) -> bool:
        """True with probability exactly ``probability / 2**64``; takes one word."""
        return self.words(1)[0] < probability

    def below(self, bound: int) -> int:
        """A uniform integer in [0, bound), by rejection.

        Takes ceil(b / 64) words, b the bit length of ``bound - 1``, least significant word first; keeps the low b bits;
        starts again while the result is not below ``bound``. A bound of 1 takes no word. Raises ValueError for less.
        """
        if bound < 1:
            raise ValueError(f"bound must be at least 1, not {bound}")
        bits = (bound - 1).bit_length()
        if not bits:
            return 0
        mask = (1 << bits) - 1
        count = -(-bits // WORD_BITS)
        while count == 1:  # nearly always, and quicker
            value = self.words(1)[0] & mask
            if value < bound:
                return value
        while True:
            value = 0
            for position, word in enumerate(self.words(count)):
                value |= word << (WORD_BITS * position)
            value &= mask
            if value < bound:
                return value

    def subset(self, population: int, size: int) -> set[int]:
        """A uniformly random ``size``-element subset of range(population) (Floyd's algorithm, exact)."""
        chosen: set[int] = set()
        for last in range(population - size, population):
            candidate = self.below(last + 1)
            chosen.add(last if candidate in chosen else candidate)
        return chosen


class SystemCoins(Coins):
    """The operating system's CSPRNG. Safety: unbuffered, so that no fork or restored image replays coins."""

    def words(self, count: int) -> Sequence[int]:
        return struct.unpack(f"<{count}Q", os.urandom(8 * count))


class ScriptedCoins(Coins):
    """Words from a list, for tests and test vectors."""

    def __init__(self, script: Iterable[int]) -> None:
        self._script = list(script)
        self.taken = 0

    def words(self, count: int) -> Sequence[int]:
        """The next words. Raises LookupError when there are not so many."""
        taken = self._script[self.taken : self.taken + count]
        if len(taken) < count:
            raise LookupError(f"the script holds {len(self._script)} words and more were asked for")
        self.taken += count
        return taken


SYSTEM_COINS: Final = SystemCoins()


def discrete_laplace(scale: Fraction, coins: Coins) -> int:
    """One draw of discrete Laplace noise, P(X = x) = tanh(1 / (2 t)) exp(-|x| / t) for integer x and a rational scale
    t > 0, exactly, in integers only (Canonne, Kamath, Steinke 2020, Algorithms 1 and 2).
    """
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


def discrete_laplace_variance(scale: Fraction) -> float:
    """2 a / (1 - a)^2 with a = exp(-1 / scale): the second moment of the noise that is really drawn, not 2 t^2."""
    rate = 1 / float(scale)
    return 2 * math.exp(-rate) / math.expm1(-rate) ** 2


def _bernoulli_exp(numerator: int, denominator: int, coins: Coins) -> bool:
    """True with probability exp(-numerator / denominator), for 0 <= numerator <= denominator (Algorithm 1)."""
    trials = 1
    while coins.below(denominator * trials) < numerator:
        trials += 1
    return trials % 2 == 1


def exact_epsilon(epsilon: SupportsFloat) -> Fraction:
    """The rational number a written epsilon promises.

    The lesser of the decimal text and the nearest double, so that the promise holds for a reader of either. Any real
    number is one (an int, a numpy scalar, a Fraction); one that is exact itself is never exceeded either.

    Raises ValueError or OverflowError where it is not finite, TypeError or ValueError where it is no number.
    """
    double = float(epsilon)
    exact = [Fraction(epsilon)] if isinstance(epsilon, (Rational, Decimal)) else []
    return min(Fraction(double), Fraction(repr(double)), *exact)


def divide_down(epsilon: float, parts: int) -> float:
    """The largest 12-digit decimal of which ``parts`` pieces together stay at or below ``epsilon``."""
    if parts == 1:
        return epsilon
    share = exact_epsilon(epsilon) / parts
    context = Context(prec=_QUOTIENT_DIGITS, rounding=ROUND_FLOOR)
    return float(context.divide(Decimal(share.numerator), Decimal(share.denominator)))


@lru_cache(maxsize=256)
def exp_bounds(exponent: Fraction) -> tuple[Fraction, Fraction]:
    """Rational lower and upper bounds of exp(exponent), relative width below 1e-56; exponents are public, and the
    mechanisms of a campaign share a few.

    Exponents beyond +-64 are taken as +-64 on the safe side of the privacy loss: nothing is protected there anyway,
    and a probability is a multiple of 2**-64.
    """
    exponent = max(-_LARGEST_EPSILON, min(_LARGEST_EPSILON, exponent))
    low, high = _decimal_bounds(exponent)
    context = Context(prec=_DIGITS)
    return Fraction(context.exp(low)) * (1 - _SLACK), Fraction(context.exp(high)) * (1 + _SLACK)


def log_upper(ratio: Fraction) -> Fraction:
    """A rational upper bound of ln(ratio), at most about 1e-55 above it; ratio >= 1."""
    if ratio < 1:
        raise ValueError("a worst-case likelihood ratio is at least 1")
    _, high = _decimal_bounds(ratio)
    logarithm = Fraction(Context(prec=_DIGITS).ln(high))
    return logarithm * (1 + _SLACK) + _SLACK / 10**6 if ratio > 1 else Fraction(0)


def probability_down(probability: Fraction) -> int:
    """The largest P with P / 2**64 <= probability and P < 2**64."""
    return min(math.floor(probability * ONE), ONE - 1)


def probability_up(probability: Fraction) -> int:
    """The least P >= 1 with P / 2**64 >= probability."""
    return max(math.ceil(probability * ONE), 1)


def float_up(value: Fraction) -> float:
    """The least double that is not below ``value``."""
    nearest = float(value)
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def _decimal_bounds(value: Fraction) -> tuple[Decimal, Decimal]:
    numerator, denominator = Decimal(value.numerator), Decimal(value.denominator)
    floor = Context(prec=_DIGITS + 10, rounding=ROUND_FLOOR)
    ceiling = Context(prec=_DIGITS + 10, rounding=ROUND_CEILING)
    return floor.divide(numerator, denominator), ceiling.divide(numerator, denominator)
