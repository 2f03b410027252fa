"""Ids that are the outputs of a Mersenne Twister: whoever sees 156 of them in order knows its state, and every coin
that follows (Matsumoto, Nishimura 1998; the generator of Python's ``random``, of PHP, R and others).
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from ldp_aggregator.audit.asking.observations import Seen

_WORDS: Final = 624
_MIDDLE: Final = 397
_MATRIX: Final = 0x9908B0DF
_HIGH, _LOW = 0x80000000, 0x7FFFFFFF

_BY_CHANCE: Final = 2.0**-32
"""That a uniform word is what the recurrence makes of those before, whatever they are."""

Words = NDArray[Any]


def twisted_ids(seen: Seen, alpha: float) -> str | None:
    """Find what is wrong about the order of the first ids of uploads; None where nothing is. Wrong with probability at
    most ``alpha`` where ids are uniform.
    """
    ids = np.zeros((len(seen.person), 16), dtype=np.uint8)
    for table in seen.tables:
        if table.ids.shape[1] >= ids.shape[1]:
            ids[table.rows] = table.ids[:, :16]
    for process in (0, 1):
        of_process = ids[seen.process == process]
        for order in (of_process, of_process[:, ::-1]):
            words = np.ascontiguousarray(order).view("<u4").ravel()
            right = followed(words)
            if right and binom.sf(right - 1, len(words), _BY_CHANCE) <= alpha / 4:
                return f"{right} words of ids follow from those before as a Mersenne Twister's do, and so do its coins"
    return None


def followed(outputs: Words) -> int:
    """Count how many of the 32-bit words are what the recurrence makes of the 624 before."""
    if len(outputs) <= _WORDS:
        return 0
    state = untempered(outputs)
    end = len(state) - _WORDS
    joined = (state[:end] & _HIGH) | (state[1 : end + 1] & _LOW)
    odd = np.where(state[1 : end + 1] & 1, _MATRIX, 0)
    expected = state[_MIDDLE : _MIDDLE + end] ^ (joined >> 1) ^ odd
    # Words that are all zero come from uploads without ids.
    return int(((expected == state[_WORDS:]) & (outputs[_WORDS:] != 0)).sum())


def untempered(outputs: Words) -> Words:
    """The words of the state behind outputs."""
    y = outputs.astype(np.int64)
    y ^= y >> 18
    y ^= (y << 15) & 0xEFC60000
    return _undo_right(_undo_left(y, 7, 0x9D2C5680), 11)


def _undo_left(words: Words, shift: int, mask: int) -> Words:
    found = words.copy()
    for _ in range(5):
        found = words ^ ((found << shift) & mask)
    return found


def _undo_right(words: Words, shift: int) -> Words:
    found = words.copy()
    for _ in range(3):
        found = words ^ (found >> shift)
    return found
