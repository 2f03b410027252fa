"""Unary encodings (SUE, OUE, THE): a bitmap of independent bits."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import product

import numpy as np

from ldp_aggregator.mechanisms.analysis import (
    Blanket,
    Flags,
    Integers,
    Limit,
    Rows,
    add_bits,
    bits_blanket,
    has_padding,
)
from ldp_aggregator.mechanisms.pure import PureFacts
from ldp_aggregator.mechanisms.sampling import bernoulli, bernoulli_bits
from protocols.mechanisms import UnaryEncoding
from protocols.mechanisms.pure import pack_indices

_MOST_BITS = 30
"""Beyond it the number of outputs has no end in practice."""


class UnaryFacts(PureFacts[UnaryEncoding]):
    """A report supports the indices whose bits are set."""

    @property
    def limits(self) -> tuple[int, ...]:
        return (self.mechanism.domain_size,)

    @classmethod
    def refusals(cls, rows: Rows, limits: Sequence[Limit]) -> Iterator[tuple[str, Flags]]:
        yield "padding-bits-set", has_padding(rows, limits[0])

    @classmethod
    def sums(cls, rows: Rows, starts: Integers, cells: Integers, limits: Sequence[Limit]) -> list[Integers]:
        return add_bits(rows, starts, cells)

    @property
    def law_size(self) -> int:
        d = self.mechanism.domain_size
        return d << d if d <= _MOST_BITS else 0

    def laws(self) -> Iterable[Sequence[Fraction]]:
        d, p, q = self.mechanism.domain_size, self.mechanism.p, self.mechanism.q
        for bits in product((False, True), repeat=d):
            told = [q if bit else 1 - q for bit in bits]
            yield [
                math.prod(told[:item]) * (p if bits[item] else 1 - p) * math.prod(told[item + 1 :]) for item in range(d)
            ]

    def blanket(self) -> Blanket:
        return bits_blanket(self.mechanism.p, self.mechanism.q)

    def loudest(self, cells: Sequence[int], *, high: bool = True, against: Sequence[int] = ()) -> bytes:
        return pack_indices(cells, self.mechanism.domain_size)

    def perturb(self, items: Integers, rng: np.random.Generator) -> Rows:  # type: ignore[override]
        width = self.mechanism.width
        rows = bernoulli_bits(self.mechanism.other_bit, len(items) * width, rng).reshape(-1, width)
        if self.mechanism.domain_size % 8:
            rows[:, -1] &= (1 << self.mechanism.domain_size % 8) - 1
        places = np.arange(len(items)), items >> 3
        shifts = (items & 7).astype(np.uint8)
        true_bits = bernoulli(self.mechanism.true_bit, len(items), rng).astype(np.uint8) << shifts
        rows[places] = (rows[places] & ~(np.uint8(1) << shifts)) | true_bits
        return rows

    def tally(self, holders: Integers, rng: np.random.Generator) -> Integers:
        """The bits of a report are independent, so the counts of the cells are."""
        p, q = float(self.mechanism.p), float(self.mechanism.q)
        counts: Integers = rng.binomial(holders, p) + rng.binomial(holders.sum() - holders, q)
        return counts


class SymmetricUnaryFacts(UnaryFacts):
    """Basic RAPPOR."""

    name = "sue"
    words = "symmetric unary encoding: one noisy bit for every possible answer"


class OptimalUnaryFacts(UnaryFacts):
    """Optimised unary encoding."""

    name = "oue"
    words = "optimised unary encoding: one noisy bit for every possible answer"


class ThresholdedFacts(UnaryFacts):
    """Histogram encoding with thresholding."""

    name = "the"
    words = "thresholded histogram: one noisy bit for every possible answer"
