"""Eight bytes beside each id that tell a retry (same report) from a second answer (other bytes under the same id).

A mixing function on whole arrays, not a cryptographic hash: who forges a collision has made a duplicate, which is not
counted either way.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.mechanisms.analysis import Rows

DIGEST_BYTES: Final = 8

_STEP: Final = np.uint64(0x9E3779B97F4A7C15)
_FIRST: Final = np.uint64(0xBF58476D1CE4E5B9)
_SECOND: Final = np.uint64(0x94D049BB133111EB)


def digests(
    question: int | NDArray[np.int64], rows: Rows, words: NDArray[np.int64] | None = None
) -> NDArray[np.uint64]:
    """One number per payload of a question, or of a question for each; another question or another payload gives
    another number, but for a chance of 2**-64. Zeros that fill up the last eight bytes change nothing;
    zeros beyond do not where ``words`` says how many eight bytes each row has.
    """
    count, width = rows.shape
    columns = -(-width // 8)
    if width % 8:
        padded = np.zeros((count, 8 * columns), dtype=np.uint8)
        padded[:, :width] = rows
        rows = padded
    values = np.ascontiguousarray(rows).view("<u8").astype(np.uint64)
    places = np.arange(1, columns + 1, dtype=np.uint64) * _STEP
    mixed = _mix(values + places)
    if words is not None:
        mixed[np.arange(columns) >= words[:, None]] = 0
    total = mixed.sum(axis=1, dtype=np.uint64)
    return _mix(total + np.atleast_1d(np.asarray(question, dtype=np.uint64)) * _SECOND)


def _mix(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of splitmix64 (Steele, Lea, Flood 2014), a bijection of 64 bits."""
    values = (values ^ (values >> np.uint64(30))) * _FIRST
    values = (values ^ (values >> np.uint64(27))) * _SECOND
    return values ^ (values >> np.uint64(31))
