"""Direct encoding: an index of 1, 2 or 4 bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction

import numpy as np

from ldp_aggregator.mechanisms.analysis import Blanket, Flags, Integers, Limit, Rows, count_positions, indices
from ldp_aggregator.mechanisms.pure import PureFacts
from ldp_aggregator.mechanisms.sampling import bernoulli, index_rows
from protocols.mechanisms import DirectEncoding


class DirectFacts(PureFacts[DirectEncoding]):
    """A report is one index, which it supports."""

    name = "de"
    words = "direct encoding: the true answer, or at random another one"

    @property
    def limits(self) -> tuple[int, ...]:
        return (self.mechanism.domain_size,)

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
        """Lo is q for each of the d outputs; of one of them the ratio under x is e0, of another that under x'."""
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
        kept = rng.binomial(holders, float(self.mechanism.p - self.mechanism.q))
        size = self.mechanism.domain_size
        spread: Integers = rng.multinomial(int(holders.sum() - kept.sum()), np.full(size, 1 / size))
        return kept + spread
