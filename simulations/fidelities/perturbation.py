"""Every mechanism's ``perturb`` for many devices at once: items in, the payload bytes of the wire out.

One row of :data:`_PERTURBERS` per family of mechanisms; each function is the device's algorithm on arrays, with the
mechanism's own integers, and a test holds the two distributions together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from protocols import Question
from protocols.exact.coins import ONE
from protocols.mechanisms import (
    VALUE_BITS,
    AnyMechanism,
    DirectEncoding,
    LaplaceVector,
    OneBit,
    SubsetSelection,
    SummingHistogramEncoding,
    UnaryEncoding,
)
from simulations.fidelities.coins import Flags, bernoulli, bernoulli_bits, bernoulli_each, discrete_laplace
from simulations.fidelities.items import Integers, Items, Moments

Rows = NDArray[np.uint8]

_HALF: Final = 32
_LOW_HALF: Final = (1 << _HALF) - 1


def perturb_items(question: Question, items: Items, rng: np.random.Generator) -> Rows:
    """The payloads of devices that answer ``question`` with ``items``, shape (n, width)."""
    return perturb_with(question.mechanism, items, rng)


def perturb_with(mechanism: AnyMechanism, items: Items, rng: np.random.Generator) -> Rows:
    """The payloads of a mechanism, shape (n, width)."""
    for family, perturber in _PERTURBERS.items():
        if isinstance(mechanism, family):
            return perturber(mechanism, items, rng)
    raise TypeError(f"no vectorised perturbation for mechanism {mechanism.name}")


def _direct(mechanism: DirectEncoding, items: Integers, rng: np.random.Generator) -> Rows:
    others = rng.integers(0, mechanism.domain_size - 1, size=len(items))
    others += others >= items
    sent = np.where(bernoulli(mechanism.keep, len(items), rng), items, others)
    return _index_rows(sent, mechanism.width)


def _unary(mechanism: UnaryEncoding, items: Integers, rng: np.random.Generator) -> Rows:
    rows = bernoulli_bits(mechanism.other_bit, len(items) * mechanism.width, rng).reshape(-1, mechanism.width)
    if mechanism.domain_size % 8:
        rows[:, -1] &= (1 << mechanism.domain_size % 8) - 1
    places = np.arange(len(items)), items >> 3
    shifts = (items & 7).astype(np.uint8)
    true_bits = bernoulli(mechanism.true_bit, len(items), rng).astype(np.uint8) << shifts
    rows[places] = (rows[places] & ~(np.uint8(1) << shifts)) | true_bits
    return rows


def _subset(mechanism: SubsetSelection, items: Integers, rng: np.random.Generator) -> Rows:
    """Floyd's algorithm over the d - 1 other indices, one step for all rows at a time."""
    flags = np.zeros((len(items), mechanism.domain_size), dtype=np.bool_)
    included = bernoulli(mechanism.include, len(items), rng)
    flags[included, items[included]] = True
    for rows, size in (
        (np.flatnonzero(included), mechanism.subset_size - 1),
        (np.flatnonzero(~included), mechanism.subset_size),
    ):
        population, true = mechanism.domain_size - 1, items[rows]
        for last in range(population - size, population):
            candidates = rng.integers(0, last + 1, size=len(rows))
            candidates += candidates >= true
            taken = flags[rows, candidates]
            flags[rows, np.where(taken, last + (last >= true), candidates)] = True
    return _bitmap_rows(flags)


def _histogram(mechanism: SummingHistogramEncoding, items: Integers, rng: np.random.Generator) -> Rows:
    cells = discrete_laplace(mechanism.scale, (len(items), mechanism.domain_size), rng)
    cells[np.arange(len(items)), items] += 1
    return _vector_rows(cells, mechanism.bound)


def _laplace(mechanism: LaplaceVector, items: Moments, rng: np.random.Generator) -> Rows:
    cut = VALUE_BITS - mechanism.grid
    steps, rest = items.values >> cut, items.values & ((1 << cut) - 1)
    steps += rng.integers(0, 1 << cut, size=len(items)) < rest
    cells = discrete_laplace(mechanism.scale, (len(items), mechanism.domain_size), rng)
    cells[np.arange(len(items)), items.cells] += steps
    return _vector_rows(cells, mechanism.bound)


def _onebit(mechanism: OneBit, items: Moments, rng: np.random.Generator) -> Rows:
    drawn = rng.integers(0, mechanism.domain_size, size=len(items))
    values = np.where(drawn == items.cells, items.values, 0)
    lowest = ONE - mechanism.highest
    rises = multiply_shift(mechanism.highest - lowest, (values + (1 << VALUE_BITS)).astype(np.uint64))
    bits = bernoulli_each(np.uint64(lowest) + rises, rng)
    return np.concatenate([_index_rows(drawn, mechanism.width - 1), bits[:, np.newaxis].astype(np.uint8)], axis=1)


def multiply_shift(factor: int, values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """``factor * value >> 53`` without losing a bit, for factors below 2**64 and values up to 2**53: schoolbook
    multiplication in 32-bit halves.
    """
    high, low = np.uint64(factor >> _HALF), np.uint64(factor & _LOW_HALF)
    values_high, values_low = values >> np.uint64(_HALF), values & np.uint64(_LOW_HALF)
    lowest = low * values_low
    middle = high * values_low + (lowest >> np.uint64(_HALF))
    carried = low * values_high + (middle & np.uint64(_LOW_HALF))
    upper = high * values_high + (middle >> np.uint64(_HALF)) + (carried >> np.uint64(_HALF))
    lower = (carried << np.uint64(_HALF)) | (lowest & np.uint64(_LOW_HALF))
    shifted: NDArray[np.uint64] = (upper << np.uint64(63 - VALUE_BITS)) | (lower >> np.uint64(VALUE_BITS + 1))
    return shifted


def _index_rows(indices: Integers, width: int) -> Rows:
    return indices.astype(f"<u{width}").view(np.uint8).reshape(-1, width)


def _bitmap_rows(flags: Flags) -> Rows:
    return np.packbits(flags, axis=1, bitorder="little")


def _vector_rows(cells: Integers, bound: int) -> Rows:
    return np.clip(cells, -bound, bound).astype("<i4").view(np.uint8)


_PERTURBERS: Final[dict[Any, Callable[[Any, Any, np.random.Generator], Rows]]] = {
    DirectEncoding: _direct,
    UnaryEncoding: _unary,
    SubsetSelection: _subset,
    SummingHistogramEncoding: _histogram,
    LaplaceVector: _laplace,
    OneBit: _onebit,
}
