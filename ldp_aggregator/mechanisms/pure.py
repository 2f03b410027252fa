"""Pure protocols: an index of 1, 2 or 4 bytes (DE), a bitmap of w of the d indices (SS), or one of independent bits."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import combinations, product
from typing import Final, TypeVar

import numpy as np

from ldp_aggregator.mechanisms.analysis import (
    Analysis,
    Blanket,
    Flags,
    Integers,
    Limit,
    Rows,
    Support,
    add_bits,
    bits_blanket,
    count_positions,
    has_padding,
    indices,
)
from ldp_aggregator.mechanisms.sampling import bernoulli, bernoulli_bits, index_rows
from ldp_protocols.mechanisms import DirectEncoding, PureMechanism, SubsetSelection, UnaryEncoding
from ldp_protocols.mechanisms.pure import pack_indices

P = TypeVar("P", bound=PureMechanism)


class PureFacts(Analysis[P]):
    """A pure protocol: reports support a set of indices, and add up to support counts."""

    @cached_property
    def support(self) -> Support:
        return Support(float(self.mechanism.p), float(self.mechanism.q), *map(float, self.mechanism.joint_support))

    @property
    def limits(self) -> tuple[int, ...]:
        return (self.mechanism.domain_size,)

    @classmethod
    def sums(cls, rows: Rows, starts: Integers, cells: Integers, limits: Sequence[Limit]) -> list[Integers]:
        return add_bits(rows, starts, cells)

    def reach(self, members: int) -> float:
        """The cells among ``members`` that one report may support and another not, over p - q: here any number."""
        return members / self.gain

    def impossible(self, n: int, counts: Integers) -> Iterator[str]:
        if not all((counts >= 0) & (counts <= n)):
            yield "a cell is counted more often than there are reports, or less than never"


class DirectFacts(PureFacts[DirectEncoding]):
    """A report is one index, which it supports."""

    name = "de"
    words = "direct encoding: the true answer, or at random another one"

    @classmethod
    def refusals(cls, rows: Rows, limits: Sequence[Limit]) -> Iterator[tuple[str, Flags]]:
        yield "index-out-of-range", np.asarray(indices(rows) >= limits[0])

    @classmethod
    def sums(cls, rows: Rows, starts: Integers, cells: Integers, limits: Sequence[Limit]) -> list[Integers]:
        return count_positions(indices(rows), starts, cells)

    def impossible(self, n: int, counts: Integers) -> Iterator[str]:
        if int(counts.sum()) != n:
            yield f"{n} reports, but the counts add up to {int(counts.sum())}"
        yield from super().impossible(n, counts)

    @property
    def law_size(self) -> int:
        return self.mechanism.domain_size**2

    def laws(self) -> Iterable[Sequence[Fraction]]:
        d, p, q = self.mechanism.domain_size, self.mechanism.p, self.mechanism.q
        return ([p if item == output else q for item in range(d)] for output in range(d))

    def blanket(self) -> Blanket:
        """`lo` is q for each of the d outputs; of one of them the ratio under x is e0, of another that under x'."""
        d, p, q = self.mechanism.domain_size, self.mechanism.p, self.mechanism.q
        return Blanket(p / q, d * q, q, Fraction(0))

    def reach(self, members: int) -> float:
        return 1 / self.gain

    def loudest(self, cells: Sequence[int], *, high: bool = True, against: Sequence[int] = ()) -> bytes:
        return cells[0].to_bytes(self.mechanism.width, "little")

    def perturb(self, items: Integers, rng: np.random.Generator) -> Rows:  # type: ignore[override]
        others = rng.integers(0, self.mechanism.domain_size - 1, size=len(items))
        others += others >= items
        sent = np.where(bernoulli(self.mechanism.keep, len(items), rng), items, others)
        return index_rows(sent, self.mechanism.width)

    def tally(self, holders: Integers, rng: np.random.Generator) -> Integers:
        """A report is the true index with probability p - q, and uniform over all d indices otherwise."""
        unchanged = rng.binomial(holders, float(self.mechanism.p - self.mechanism.q))
        size = self.mechanism.domain_size
        spread: Integers = rng.multinomial(int(holders.sum() - unchanged.sum()), np.full(size, 1 / size))
        return unchanged + spread


_MOST_AT_ONCE: Final = 400_000_000
"""numpy draws hypergeometric variables from populations below 1e9 only; larger ones are tallied in parts."""


class SubsetFacts(PureFacts[SubsetSelection]):
    """A report supports its w members."""

    name = "ss"
    words = "subset selection: some possible answers, more often with the true one among them"

    @property
    def limits(self) -> tuple[int, ...]:
        return self.mechanism.domain_size, self.mechanism.subset_size

    @classmethod
    def refusals(cls, rows: Rows, limits: Sequence[Limit]) -> Iterator[tuple[str, Flags]]:
        domain_size, subset_size = limits
        yield "wrong-subset-size", np.bitwise_count(rows).sum(axis=1, dtype=np.int64) != subset_size
        yield "padding-bits-set", has_padding(rows, domain_size)

    def impossible(self, n: int, counts: Integers) -> Iterator[str]:
        if int(counts.sum()) != n * self.mechanism.subset_size:
            yield f"{n} reports of {self.mechanism.subset_size} members, but {int(counts.sum())} are counted"
        yield from super().impossible(n, counts)

    @property
    def law_size(self) -> int:
        return self.mechanism.domain_size * math.comb(self.mechanism.domain_size, self.mechanism.subset_size)

    def laws(self) -> Iterable[Sequence[Fraction]]:
        d, w, p = self.mechanism.domain_size, self.mechanism.subset_size, self.mechanism.p
        inside, outside = p / math.comb(d - 1, w - 1), (1 - p) / math.comb(d - 1, w)
        for members in combinations(range(d), w):
            yield [inside if item in members else outside for item in range(d)]

    def blanket(self) -> Blanket:
        """`lo` is (1 - p) / C(d - 1, w) for each of the C(d, w) subsets, in all (1 - p) d / (d - w). Of all subsets
        w (d - w) / (d (d - 1)) hold x and not x', w (w - 1) / (d (d - 1)) both.
        """
        d, w, p = self.mechanism.domain_size, self.mechanism.subset_size, self.mechanism.p
        mass = (1 - p) * d / (d - w)
        pairs = d * (d - 1)
        ratio = p * (d - w) / ((1 - p) * w)
        return Blanket(ratio, mass, mass * Fraction(w * (d - w), pairs), mass * Fraction(w * (w - 1), pairs))

    def reach(self, members: int) -> float:
        size, others = self.mechanism.subset_size, self.mechanism.domain_size - members
        return (min(size, members) - max(0, size - others)) / self.gain

    def loudest(self, cells: Sequence[int], *, high: bool = True, against: Sequence[int] = ()) -> bytes:
        """As many of the cells as it has places, then others from the first on."""
        named = set(cells)
        others = [cell for cell in range(self.mechanism.domain_size) if cell not in named]
        return pack_indices([*cells, *others][: self.mechanism.subset_size], self.mechanism.domain_size)

    def perturb(self, items: Integers, rng: np.random.Generator) -> Rows:  # type: ignore[override]
        """Floyd's algorithm over the d - 1 other indices, one step for all rows at a time."""
        d, w = self.mechanism.domain_size, self.mechanism.subset_size
        flags = np.zeros((len(items), d), dtype=np.bool_)
        included = bernoulli(self.mechanism.include, len(items), rng)
        flags[included, items[included]] = True
        for rows, size in ((np.flatnonzero(included), w - 1), (np.flatnonzero(~included), w)):
            true = items[rows]
            for last in range(d - 1 - size, d - 1):
                candidates = rng.integers(0, last + 1, size=len(rows))
                candidates += candidates >= true
                taken = flags[rows, candidates]
                flags[rows, np.where(taken, last + (last >= true), candidates)] = True
        return np.packbits(flags, axis=1, bitorder="little")

    def tally(self, holders: Integers, rng: np.random.Generator) -> Integers:
        """A report either is forced to contain its true index (and w - 1 of the others), or is any subset of size w.

        Forced with probability a, where p = a + (1 - a) w / d, this is the law of the mechanism. The cells are visited
        in order; what the reports still need only depends on how many members they miss, so it is enough to count the
        reports by that number: those whose forced member still lies ahead, and all the others.
        """
        if holders.sum() > _MOST_AT_ONCE:
            half = holders // 2
            return self.tally(half, rng) + self.tally(holders - half, rng)
        d, w = self.mechanism.domain_size, self.mechanism.subset_size
        share = Fraction(w, d)
        forced = rng.binomial(holders, float((self.mechanism.p - share) / (1 - share)))
        ahead, others = np.zeros(w + 1, dtype=np.int64), np.zeros(w + 1, dtype=np.int64)
        ahead[w - 1] = forced.sum()
        others[w] = holders.sum() - forced.sum()
        counts: Integers = forced.astype(np.int64)
        for cell in range(d):
            own = rng.multivariate_hypergeometric(ahead, int(forced[cell]), method="marginals")
            ahead -= own
            # The cells from here on, without the forced member that still lies ahead.
            counts[cell] += _take(ahead, d - cell - 1, rng) + _take(others, d - cell, rng)
            others += own
        return counts


def _take(missing: Integers, cells_left: int, rng: np.random.Generator) -> int:
    """Reports (counted by how many members they miss) that take the next of ``cells_left`` cells; moves them down."""
    if not missing[1:].any():
        return 0
    chances = np.minimum(np.arange(len(missing)) / max(1, cells_left), 1.0)
    takers = rng.binomial(missing, chances)
    missing -= takers
    missing[:-1] += takers[1:]
    return int(takers.sum())


_MOST_BITS = 30
"""Beyond it the number of outputs has no end in practice."""


class UnaryFacts(PureFacts[UnaryEncoding]):
    """A report supports the indices whose bits are set."""

    @classmethod
    def refusals(cls, rows: Rows, limits: Sequence[Limit]) -> Iterator[tuple[str, Flags]]:
        yield "padding-bits-set", has_padding(rows, limits[0])

    @property
    def law_size(self) -> int:
        d = self.mechanism.domain_size
        return d << d if d <= _MOST_BITS else 0

    def laws(self) -> Iterable[Sequence[Fraction]]:
        d, p, q = self.mechanism.domain_size, self.mechanism.p, self.mechanism.q
        for bits in product((False, True), repeat=d):
            chances = [q if bit else 1 - q for bit in bits]
            yield [
                math.prod(chances[:item]) * (p if bits[item] else 1 - p) * math.prod(chances[item + 1 :])
                for item in range(d)
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
        return np.asarray(rng.binomial(holders, p) + rng.binomial(holders.sum() - holders, q))


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
