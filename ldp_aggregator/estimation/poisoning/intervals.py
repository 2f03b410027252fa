"""Arrays of intervals: what a number can become when the numbers it is computed from are only known to lie somewhere.

Ordinary interval arithmetic (Moore 1966): the result of an operation holds every result of the operation on members.
Where a quantity stands twice in a formula the result is wider than it had to be, never narrower. Doubles are not
rounded outwards: the last digits do not matter here.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Interval:
    """The numbers from ``low`` to ``high``, element by element; arrays of one shape.

    An operation with numbers, an array or one of them, is with these exactly.
    """

    low: Array
    high: Array

    @classmethod
    def around(cls, value: Array | float, reach: Array | float) -> Interval:
        return cls(np.asarray(value - np.asarray(reach)), np.asarray(value + np.asarray(reach)))

    @classmethod
    def exactly(cls, value: Array | float) -> Interval:
        return cls.around(value, 0.0)

    def __add__(self, other: Interval | Array | float) -> Interval:
        added = _interval(other)
        return Interval(self.low + added.low, self.high + added.high)

    def __neg__(self) -> Interval:
        return Interval(-self.high, -self.low)

    def __sub__(self, other: Interval | Array | float) -> Interval:
        return self + -_interval(other)

    def __mul__(self, other: Interval | Array | float) -> Interval:
        factors = (other.low, other.high) if isinstance(other, Interval) else (other,)
        ends = [mine * its for mine in (self.low, self.high) for its in factors]
        return Interval(reduce(np.minimum, ends), reduce(np.maximum, ends))

    def __truediv__(self, other: Interval | Array | float) -> Interval:
        """Only by what is above zero."""
        divisor = _interval(other)
        if not (divisor.low > 0).all():
            raise ZeroDivisionError("the divisor may be zero")
        if not isinstance(other, Interval):
            return self * (1 / divisor.low)
        return self * Interval(1 / divisor.high, 1 / divisor.low)

    def square(self) -> Interval:
        """Narrower than the product with itself where zero lies inside."""
        ends = self.low**2, self.high**2
        inside = (self.low < 0) & (self.high > 0)
        return Interval(np.where(inside, 0.0, np.minimum(*ends)), np.maximum(*ends))

    def maximum(self, other: Interval | Array | float) -> Interval:
        least = _interval(other)
        return Interval(np.maximum(self.low, least.low), np.maximum(self.high, least.high))

    def minimum(self, other: Interval | Array | float) -> Interval:
        most = _interval(other)
        return Interval(np.minimum(self.low, most.low), np.minimum(self.high, most.high))

    def clip(self, least: Interval | Array | float, most: Interval | Array | float) -> Interval:
        return self.maximum(least).minimum(most)

    def sum(self) -> Interval:
        """Of all elements, as an array of one."""
        return Interval(self.low.sum(keepdims=True), self.high.sum(keepdims=True))

    def where(self, chosen: NDArray[np.bool_], other: Interval | Array | float) -> Interval:
        """Its own elements where ``chosen``, those of ``other`` elsewhere."""
        others = _interval(other)
        return Interval(np.where(chosen, self.low, others.low), np.where(chosen, self.high, others.high))

    def hull(self, other: Interval) -> Interval:
        """The least interval that holds both."""
        return Interval(np.minimum(self.low, other.low), np.maximum(self.high, other.high))

    def reach(self, value: Array) -> Array:
        """The largest distance from ``value``."""
        distance: Array = np.maximum(self.high - value, value - self.low)
        return np.maximum(distance, 0.0)


def _interval(value: Interval | Array | float) -> Interval:
    if isinstance(value, Interval):
        return value
    exact = np.asarray(value, dtype=np.float64)
    return Interval(exact, exact)
