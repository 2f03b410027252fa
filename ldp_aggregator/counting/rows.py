"""Vectorised decoding and counting: many payloads of one question to one vector of exact integers.

One row of :data:`_COUNTERS` per family of mechanisms. What a row of payload bytes may be is the business of each
mechanism's ``check`` in ``protocols``; :func:`refusals` is the same rule on arrays, and a test holds the two together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from protocols import Question
from protocols.mechanisms import DirectEncoding, NoisyVector, OneBit, SubsetSelection, UnaryEncoding

Rows = NDArray[np.uint8]
Counts = NDArray[np.int64]

_LANES: Final = 255
"""Rows of bits that add up in a byte without overflow."""


def payload_rows(question: Question, payloads: bytes) -> Rows:
    """Concatenated payloads as an array of shape (n, width), without a copy."""
    return np.frombuffer(payloads, dtype=np.uint8).reshape(-1, question.mechanism.width)


def cells(question: Question) -> int:
    """Length of the question's tally vector: its domain size, or for ``onebit`` a zero and a one count per cell."""
    return question.domain_size * (2 if isinstance(question.mechanism, OneBit) else 1)


def count(question: Question, rows: Rows) -> Counts:
    """What the reports add to the tally: support counts, or sums of noisy cells; shape (cells(question),).

    Rows must be free of :func:`refusals`.
    """
    for family, counter in _COUNTERS.items():
        if isinstance(question.mechanism, family):
            return counter(question.mechanism, rows)
    raise TypeError(f"no counter for mechanism {question.mechanism.name}")


def refusals(question: Question, rows: Rows) -> dict[int, str]:
    """Row position to code (see ``protocols.errors.PAYLOAD_CODES``) of the rows that no device can have sent."""
    mechanism = question.mechanism
    if isinstance(mechanism, DirectEncoding):
        return coded("index-out-of-range", _indices(rows) >= mechanism.domain_size)
    if isinstance(mechanism, OneBit):
        return {
            **coded("bit-out-of-range", np.asarray(rows[:, -1] > 1)),
            **coded("index-out-of-range", _indices(rows[:, :-1]) >= mechanism.domain_size),
        }
    if isinstance(mechanism, NoisyVector):
        beyond = np.abs(_vectors(rows).astype(np.int64)) > mechanism.bound
        return coded("value-out-of-range", np.asarray(beyond.any(axis=1)))
    found: dict[int, str] = {}
    if isinstance(mechanism, SubsetSelection):
        sizes = np.bitwise_count(rows).sum(axis=1, dtype=np.int64)
        found = coded("wrong-subset-size", sizes != mechanism.subset_size)
    if mechanism.domain_size % 8:
        padding: NDArray[Any] = np.right_shift(rows[:, -1], mechanism.domain_size % 8)
        found |= coded("padding-bits-set", padding.astype(np.bool_))
    return found


def coded(code: str, flags: NDArray[np.bool_], places: NDArray[np.int64] | None = None) -> dict[int, str]:
    """The code for every row that is flagged; ``places`` are what rows are called, where not by their position."""
    if not flags.any():
        return {}
    flagged = np.flatnonzero(flags)
    return dict.fromkeys((flagged if places is None else places[flagged]).tolist(), code)


def _indices(rows: Rows) -> NDArray[np.uint32]:
    """Unsigned little-endian integers of 1, 2 or 4 bytes."""
    return np.ascontiguousarray(rows).view(f"<u{rows.shape[1]}")[:, 0].astype(np.uint32)


def _vectors(rows: Rows) -> NDArray[np.int32]:
    return np.ascontiguousarray(rows).view("<i4")


def _count_indices(mechanism: DirectEncoding, rows: Rows) -> Counts:
    return np.bincount(_indices(rows), minlength=mechanism.domain_size).astype(np.int64)


def _count_bits(mechanism: UnaryEncoding | SubsetSelection, rows: Rows) -> Counts:
    """Column sums of the unpacked bits, added up a byte at a time for as long as a byte holds them."""
    size = mechanism.domain_size
    total = np.zeros(size, dtype=np.int64)
    step = _LANES * max(1, (1 << 20) // (_LANES * size))
    for start in range(0, len(rows), step):
        bits = np.unpackbits(rows[start : start + step], axis=1, count=size, bitorder="little")
        full = len(bits) // _LANES * _LANES
        lanes = bits[:full].reshape(-1, _LANES, size).sum(axis=1, dtype=np.uint8)
        total += lanes.sum(axis=0, dtype=np.int64)
        total += bits[full:].sum(axis=0, dtype=np.int64)
    return total


def _sum_vectors(_mechanism: NoisyVector[Any], rows: Rows) -> Counts:
    total: Counts = _vectors(rows).sum(axis=0, dtype=np.int64)
    return total


def _count_onebit(mechanism: OneBit, rows: Rows) -> Counts:
    """``counts[2 * cell + bit]``."""
    positions = 2 * _indices(rows[:, :-1]) + rows[:, -1]
    return np.bincount(positions, minlength=2 * mechanism.domain_size).astype(np.int64)


_COUNTERS: Final[dict[Any, Callable[[Any, Rows], Counts]]] = {
    DirectEncoding: _count_indices,
    UnaryEncoding: _count_bits,
    SubsetSelection: _count_bits,
    NoisyVector: _sum_vectors,
    OneBit: _count_onebit,
}
