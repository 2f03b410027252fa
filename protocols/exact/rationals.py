"""Rational arithmetic with directed rounding, so that a promised epsilon holds exactly.

No float decides anything here. ``decimal`` computes exp and ln correctly rounded to :data:`_DIGITS` digits; each
result is widened by a few units in the last place, and the widened interval is what is used.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from numbers import Rational
from typing import Final, SupportsFloat

from protocols.exact.coins import ONE

_DIGITS: Final = 60
_SLACK: Final = Fraction(1, 10 ** (_DIGITS - 3))
_LARGEST_EPSILON: Final = Fraction(64)
_QUOTIENT_DIGITS: Final = 12


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


def exp_bounds(exponent: Fraction) -> tuple[Fraction, Fraction]:
    """Rational lower and upper bounds of exp(exponent), relative width below 1e-56.

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
