"""Subset selection: a random subset of size w that contains the true index with probability p.

Ye, Barg 2018; Wang et al. 2016. p = w e / (w e + d - w); w = 1 is direct encoding. The subset travels as a bitmap, so
that no order of its elements can leak.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from protocols.errors import DocumentError, PayloadError
from protocols.exact.coins import ONE, Coins
from protocols.exact.rationals import exp_bounds, probability_down
from protocols.mechanisms import bitmap
from protocols.mechanisms.base import Parameters, PureMechanism, WorstCase, read_integer, read_names, read_probability

if TYPE_CHECKING:
    from typing import Self


@dataclass(frozen=True, slots=True)
class SubsetSelection(PureMechanism):
    """``subset_size`` is w; ``include`` / 2**64 is the probability p that the subset contains the true index."""

    name: ClassVar[str] = "ss"
    domain_size: int
    subset_size: int
    include: int

    @classmethod
    def make(cls, domain_size: int, epsilon: Fraction) -> Self:
        """W is the floor or the ceiling of d / (e + 1), at least 1, whichever has less variance at frequency 1/d."""
        e, _ = exp_bounds(epsilon)
        best = domain_size / (float(e) + 1)
        sizes = sorted({max(1, math.floor(best)), max(1, min(math.ceil(best), domain_size - 1))})
        candidates = [cls(domain_size, w, probability_down(w * e / (w * e + domain_size - w))) for w in sizes]
        return min(candidates, key=lambda candidate: candidate.noise_variance(1 / domain_size))

    @classmethod
    def from_parameters(cls, domain_size: int, parameters: Parameters) -> Self:
        read_names(parameters, "w", "p")
        w, include = read_integer(parameters, "w"), read_probability(parameters, "p")
        if w >= domain_size:
            raise DocumentError("invalid-parameters", f"w must be below the domain size {domain_size}, not {w}")
        mechanism = cls(domain_size, w, include)
        if mechanism.p <= mechanism.q:
            raise DocumentError("invalid-parameters", "p must be above w / domain_size, or reports carry no signal")
        return mechanism

    def parameters(self) -> dict[str, int | str]:
        return {"w": self.subset_size, "p": str(self.include)}

    def worst_case(self) -> WorstCase:
        """A subset S of size w has P(S | x) = p / C(d - 1, w - 1) if it contains x, the other members being uniform,
        and (1 - p) / C(d - 1, w) if it does not: two values. C(d - 1, w) / C(d - 1, w - 1) = (d - w) / w.
        """
        ratio = self.p / (1 - self.p) * Fraction(self.domain_size - self.subset_size, self.subset_size)
        return WorstCase(max(ratio, 1 / ratio))

    @property
    def p(self) -> Fraction:
        return Fraction(self.include, ONE)

    @property
    def q(self) -> Fraction:
        """The remaining w - 1 (true index in) or w (true index out) members are spread evenly over d - 1 others."""
        return (self.subset_size - self.p) / (self.domain_size - 1)

    @property
    def joint_support(self) -> tuple[Fraction, Fraction]:
        d, w, p = self.domain_size, self.subset_size, self.p
        one_true = p * (w - 1) / (d - 1)
        if d == 2:
            return one_true, Fraction(0)
        none_true = (w - 1) * (p * (w - 2) + (1 - p) * w) / ((d - 1) * (d - 2))
        return one_true, none_true

    @property
    def width(self) -> int:
        return bitmap.width(self.domain_size)

    def perturb(self, item: int, coins: Coins) -> bytes:
        """One word decides whether the true index is in; the others are a uniform subset of the rest."""
        included = coins.bernoulli(self.include)
        others = coins.subset(self.domain_size - 1, self.subset_size - included)
        members = [other if other < item else other + 1 for other in others]
        if included:
            members.append(item)
        return bitmap.pack_indices(members, self.domain_size)

    def check(self, payload: bytes) -> None:
        if bitmap.count_indices(payload, self.domain_size) != self.subset_size:
            raise PayloadError("wrong-subset-size")

    def support(self, payload: bytes) -> Collection[int]:
        self.check(payload)
        return tuple(bitmap.unpack_indices(payload, self.domain_size))
