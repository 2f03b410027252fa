"""The first of every page of a sorted column, in memory: where a number is takes a look at one page of the file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.store.runs.keys import Words

PAGE: Final = 512
"""Numbers between two fences; eight bytes each."""
_STEPS: Final = (64, 8, 1)
"""A place in a page is found by three looks at up to eight numbers, so far from each other: nine at one are slower."""


@dataclass(frozen=True)
class Fences:
    """``firsts`` of shape (fence_count(n),): entries 0, PAGE, 2 PAGE, ... of a column of n."""

    firsts: Words

    def places(self, column: Words, wanted: Words) -> NDArray[np.int64]:
        """What ``np.searchsorted(column, wanted)`` says, of a column that is not empty."""
        # A page whose first is smaller than what is wanted, the last of them, has the place or ends before it.
        low: NDArray[np.int64] = np.maximum(np.searchsorted(self.firsts, wanted) - 1, 0) * PAGE
        for step in _STEPS:
            looked = np.minimum(low[:, None] + np.arange(0 if step == 1 else step, 8 * step, step), len(column) - 1)
            low += step * np.count_nonzero(column[looked] < wanted[:, None], axis=1)
        low[low > len(column)] = len(column)
        return low


def fence_count(numbers: int) -> int:
    """How many fences so many numbers have."""
    return -(-numbers // PAGE)


def fences_of(part: Words, start: int) -> Words:
    """The fences in a part of a column that begins at ``start``; a copy, which does not hold the part in memory."""
    return part[-start % PAGE :: PAGE].copy()
