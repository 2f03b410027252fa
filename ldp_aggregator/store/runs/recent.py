"""Ids that no run has yet: in memory, in a few sorted arrays (Bentley, Saxe 1980: the logarithmic method)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.store.runs.keys import Keys, merged

_GROWTH = 4
"""An array is merged with the newer ones once they have a quarter of its length."""


class Recent:
    """A set of ids with their digests. What is added is not in it yet."""

    def __init__(self) -> None:
        self._arrays: list[Keys] = []

    def __len__(self) -> int:
        return sum(map(len, self._arrays))

    def add(self, keys: Keys) -> None:
        if not len(keys):
            return
        newer = [keys]
        while self._arrays and len(self._arrays[-1]) <= _GROWTH * sum(map(len, newer)):
            newer.append(self._arrays.pop())
        self._arrays.append(merged(newer))

    def find(self, wanted: Keys) -> list[tuple[NDArray[np.int64], NDArray[np.uint64]]]:
        """Positions in ``wanted`` of the ids that are here, and their digests; a pair for each array."""
        found = []
        for array in self._arrays:
            positions, places = array.find(wanted)
            if len(positions):
                found.append((positions, array.digest[places]))
        return found

    def all(self) -> Keys:
        """Everything, as one array; any thread may ask while nothing is added."""
        if not self._arrays:
            empty = np.zeros(0, dtype=np.uint64)
            return Keys(empty, empty, empty)
        return merged(self._arrays)
