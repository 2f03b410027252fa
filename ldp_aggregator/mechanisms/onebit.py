"""One bit of one cell: the cell's index, then the bit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import product
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.mechanisms.analysis import (
    Analysis,
    Array,
    Blanket,
    Flags,
    Integers,
    Limit,
    MomentBatch,
    Rows,
    count_positions,
    in_words,
)
from ldp_aggregator.mechanisms.sampling import bernoulli_each, index_rows
from ldp_protocols.exact import ONE
from ldp_protocols.mechanisms import VALUE_BITS, OneBit

_UNIT: Final = 1 << VALUE_BITS
_HALF: Final = 32
_LOW_HALF: Final = (1 << _HALF) - 1


class OneBitFacts(Analysis[OneBit]):
    """Counts of zeros and ones of each cell: ``counts[2 * cell + bit]``."""

    name = "onebit"
    words = "one noisy bit of the number, for a class drawn by lot"

    @property
    def cells(self) -> int:
        return 2 * self.mechanism.domain_size

    @property
    def limits(self) -> tuple[int, ...]:
        return self.mechanism.domain_size, 8 * (self.mechanism.width - 1)

    @classmethod
    def refusals(cls, rows: Rows, limits: Sequence[Limit]) -> Iterator[tuple[str, Flags]]:
        cells, bits = _cells_and_bits(rows, limits[1])
        yield "bit-out-of-range", np.asarray(bits > 1)
        yield "index-out-of-range", np.asarray(cells >= limits[0])

    @classmethod
    def sums(cls, rows: Rows, starts: Integers, cells: Integers, limits: Sequence[Limit]) -> list[Integers]:
        drawn, bits = _cells_and_bits(rows, limits[1])
        return count_positions(2 * drawn + bits, starts, cells)

    @property
    def law_size(self) -> int:
        return 6 * self.mechanism.domain_size**2

    def laws(self) -> Iterable[Sequence[Fraction]]:
        """Items (class, v) with v at its ends, and 0 as every other class has it; what lies between is a mixture."""
        k, highest = self.mechanism.domain_size, self.mechanism.highest
        lowest = ONE - highest
        middle = lowest + (highest - lowest) // 2
        for cell, bit in product(range(k), (True, False)):
            ones = [chance if item == cell else middle for item in range(k) for chance in (lowest, middle, highest)]
            yield [Fraction(one if bit else ONE - one, ONE * k) for one in ones]

    def blanket(self) -> Blanket:
        """One of k cells by lot, told; the bit's probability u there lies in [1 - p, p], 1/2 in every cell but the
        class. The law of any value is a mixture of those of -1 and 1, so only these are compared. lo is (1 - p) / k for
        each of the 2 k outputs, e0 = p / (1 - p), and 1/2 stands for the ratio m = (e0 + 1) / 2, in the middle between
        1 and e0.

        One class, values 1 and -1: (e0, 1) and (1, e0) in the cell, (m, m) in the k - 1 others. Two classes: (e0, m) or
        (1, m) in the cell of one, (m, e0) or (m, 1) in that of the other, (m, m) elsewhere. Each m halved between e0
        and 1, together in (m, m): both come to m10 = g / (2 k) and m11 = m00 = g (k - 1) / (2 k).
        """
        k, p = self.mechanism.domain_size, self.mechanism.p
        mass = 2 * (1 - p)
        return Blanket(p / (1 - p), mass, mass / (2 * k), mass * (k - 1) / (2 * k))

    @property
    def gain(self) -> float:
        """2 p - 1: what a bit of 1 or -1 tells of a value."""
        return 2 * float(self.mechanism.p) - 1

    def estimate_moments(self, n: int, counts: Integers) -> tuple[Array, Array]:
        """The mean of (2 bit - 1) / (2 p - 1) over the reports that drew the cell; unbiased, if any did."""
        pairs = counts.reshape(-1, 2)
        drawn = pairs.sum(axis=1)
        value = np.where(drawn > 0, (pairs[:, 1] - pairs[:, 0]) / np.maximum(drawn, 1) / self.gain, 0.0)
        variance = (1 / self.gain**2 - np.minimum(value**2, 1.0)) / np.maximum(drawn - 1, 1)
        return value, np.where(drawn > 0, variance, np.inf)

    def moment_variance(self, mean: Array, second: Array) -> Array:
        """Only one answer in k is about the cell, and its bit's variance is 1 - (value)^2 on the scale of the bit."""
        return self.mechanism.domain_size * (1 / self.gain**2 - mean**2)

    @property
    def cell_share(self) -> float:  # type: ignore[override]
        return 1 / self.mechanism.domain_size

    def reach(self, members: int) -> float:
        raise TypeError(f"mechanism {self.name} tells no frequencies")

    def moment_reach(self, n: int, counts: Integers) -> Array:
        """A mean over the D reports that drew the cell, each -1 or 1 over the gain. A liar turns one of them round,
        adds one or, drawing elsewhere, takes one away. The last moves a mean of S / D to (S + 1) / (D - 1), by
        (D + S) / (D (D - 1)); a report of -1 was there, so S <= D - 2, and that is at most 2 / D, as for the others.
        """
        drawn = counts.reshape(-1, 2).sum(axis=1)
        return np.where(drawn > 0, 2 / (self.gain * np.maximum(drawn, 1)), np.inf)

    def loudest(self, cells: Sequence[int], *, high: bool = True, against: Sequence[int] = ()) -> bytes:
        return cells[0].to_bytes(self.mechanism.width - 1, "little") + bytes([high])

    def perturb(self, items: MomentBatch, rng: np.random.Generator) -> Rows:  # type: ignore[override]
        drawn = rng.integers(0, self.mechanism.domain_size, size=len(items))
        values = np.where(drawn == items.cells, items.values, 0)
        lowest = ONE - self.mechanism.highest
        rises = multiply_shift(self.mechanism.highest - lowest, (values + _UNIT).astype(np.uint64))
        bits = bernoulli_each(np.uint64(lowest) + rises, rng)
        cells = index_rows(drawn, self.mechanism.width - 1)
        return np.concatenate([cells, bits[:, np.newaxis].astype(np.uint8)], axis=1)

    def tally_moments(self, moments: MomentBatch, holders: Integers, rng: np.random.Generator) -> Integers:
        """A device that draws its own cell tells its value there, and a fair bit about zero anywhere else."""
        k, highest = self.mechanism.domain_size, self.mechanism.highest
        low, high = (ONE - highest) / ONE, highest / ONE
        own = rng.binomial(holders, 1 / k)
        ones = rng.binomial(own, low + (high - low) * (moments.values + _UNIT) / (2 * _UNIT))
        elsewhere = np.zeros((k, k), dtype=np.int64)
        for cell in range(k):
            strangers = int((holders - own)[moments.cells == cell].sum())
            if k > 1:
                elsewhere[cell, np.arange(k) != cell] = rng.multinomial(strangers, np.full(k - 1, 1 / (k - 1)))
        fair = elsewhere.sum(axis=0)
        fair_ones = rng.binomial(fair, (low + high) / 2)
        counts = np.stack([fair - fair_ones, fair_ones], axis=1).ravel()
        np.add.at(counts, 2 * moments.cells, own - ones)
        np.add.at(counts, 2 * moments.cells + 1, ones)
        return counts


def _cells_and_bits(rows: Rows, shift: Limit) -> tuple[Integers, Integers]:
    """The bit is the last byte of a payload, ``shift`` bits from its beginning; the index is all before it."""
    words = in_words(rows).view("<u8")[:, 0]
    by = np.asarray(shift).astype(np.uint64)
    return (words & ((np.uint64(1) << by) - np.uint64(1))).astype(np.int64), (words >> by).astype(np.int64)


def multiply_shift(factor: int, values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """``factor * value >> 53`` exactly, for factors below 2**64 and values up to 2**53, in 32-bit halves."""
    high, low = np.uint64(factor >> _HALF), np.uint64(factor & _LOW_HALF)
    values_high, values_low = values >> np.uint64(_HALF), values & np.uint64(_LOW_HALF)
    lowest = low * values_low
    middle = high * values_low + (lowest >> np.uint64(_HALF))
    carried = low * values_high + (middle & np.uint64(_LOW_HALF))
    upper = high * values_high + (middle >> np.uint64(_HALF)) + (carried >> np.uint64(_HALF))
    lower = (carried << np.uint64(_HALF)) | (lowest & np.uint64(_LOW_HALF))
    return np.asarray((upper << np.uint64(63 - VALUE_BITS)) | (lower >> np.uint64(VALUE_BITS + 1)))
