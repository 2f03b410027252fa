"""Integers of 64 bits as digits that Flower's SecAgg+ adds up without an error.

Its quantisation takes numbers in a range of 2^16, so that an integer becomes four balanced digits to the base 2^16,
each in [-2^15, 2^15). What comes out is the mean of each digit over the nodes, as a double: times the number of nodes
it is within 2^-20 of the integer that it is, as long as there are at most 2^15 nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.node_statistics import LARGEST

LIMB_BITS: Final = 16
LIMBS: Final = 4

_BASE: Final = 1 << LIMB_BITS
_FARTHEST_FROM_INTEGER: Final = 2.0**-10


def to_limbs(values: Sequence[int]) -> NDArray[np.float64]:
    """Shape (len(values) * LIMBS,), the lowest digit first. Raises ValueError beyond 2^62."""
    digits = np.empty((len(values), LIMBS))
    for row, value in enumerate(values):
        rest = int(value)
        if abs(rest) > LARGEST:
            raise ValueError(f"entry {row} must be of magnitude at most 2^62, not {rest}")
        for position in range(LIMBS):
            digit = (rest + _BASE // 2) % _BASE - _BASE // 2
            digits[row, position] = digit
            rest = (rest - digit) // _BASE
    return digits.reshape(-1)


def of_means(means: NDArray[np.float64], count: int) -> tuple[int, ...]:
    """The sums of the values whose digits have these means over ``count`` nodes. Raises ValueError for others."""
    sums = np.asarray(means, dtype=np.float64).reshape(-1) * count
    whole = np.rint(sums)
    if len(sums) % LIMBS or not (abs(sums - whole) <= _FARTHEST_FROM_INTEGER).all():
        raise ValueError(f"these are no means of digits of {count} nodes")
    digits = [int(digit) for digit in whole]
    return tuple(
        sum(digit << (LIMB_BITS * position) for position, digit in enumerate(digits[start : start + LIMBS]))
        for start in range(0, len(digits), LIMBS)
    )
