"""The first of every page of a sorted column, in memory: where a number is takes a look at one page of the file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.store.runs.keys import Words

PAGE: Final = 512
"""Numbers between two fences; eight bytes each."""


@dataclass(frozen=True)
class Fences:
    """``firsts`` of shape (fence_count(n),): entries 0, PAGE, 2 PAGE, ... of a column of n."""

    firsts: Words

    def places(self, column: Words, wanted: Words) -> NDArray[np.int64]:
        """What ``np.searchsorted(column, wanted)`` says."""
        # A page whose first is smaller than what is wanted, the last of them, has the place or ends before it.
        low = np.maximum(np.searchsorted(self.firsts, wanted) - 1, 0) * PAGE
        left = np.minimum(PAGE, len(column) - low)
        while left.any():
            half = left // 2
            middle = low + half
            right = (left > 0) & (column[np.minimum(middle, len(column) - 1)] < wanted)
            low = np.where(right, middle + 1, low)
            left = np.where(right, left - half - 1, half)
        return low


def fence_count(numbers: int) -> int:
    """How many fences so many numbers have."""
    return -(-numbers // PAGE)


def fences_of(part: Words, start: int) -> Words:
    """The fences in a part of a column that begins at ``start``; a copy, which does not hold the part in memory."""
    return part[-start % PAGE :: PAGE].copy()
