"""Unary encoding: one bit per index, each perturbed on its own. SUE, OUE and THE differ only in their p and q.

The true index's bit is set with probability p, every other bit with probability q (Wang et al. 2017, section 4.3).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from protocols.errors import DocumentError
from protocols.exact.coins import ONE, Coins
from protocols.mechanisms import bitmap
from protocols.mechanisms.base import Parameters, PureMechanism, WorstCase, read_names, read_probability

if TYPE_CHECKING:
    from typing import Self


@dataclass(frozen=True, slots=True)
class UnaryEncoding(PureMechanism):
    """``true_bit`` / 2**64 is p and ``other_bit`` / 2**64 is q."""

    domain_size: int
    true_bit: int
    other_bit: int

    @classmethod
    def from_parameters(cls, domain_size: int, parameters: Parameters) -> Self:
        read_names(parameters, "p", "q")
        p, q = read_probability(parameters, "p"), read_probability(parameters, "q")
        if p <= q:
            raise DocumentError("invalid-parameters", "p must be above q, or reports carry no signal")
        return cls(domain_size, p, q)

    def parameters(self) -> dict[str, int | str]:
        return {"p": str(self.true_bit), "q": str(self.other_bit)}

    def worst_case(self) -> WorstCase:
        """The bits are independent, and the laws of two items x and x' differ in bits x and x' only. All other factors
        cancel; the two that are left are largest, each on its own, at bit x set (p / q) and bit x' clear
        ((1 - q) / (1 - p)), which one output has together. p > q, so that both factors are above 1.
        """
        p, q = self.p, self.q
        return WorstCase(p / q * ((1 - q) / (1 - p)))

    @property
    def p(self) -> Fraction:
        return Fraction(self.true_bit, ONE)

    @property
    def q(self) -> Fraction:
        return Fraction(self.other_bit, ONE)

    @property
    def joint_support(self) -> tuple[Fraction, Fraction]:
        return self.p * self.q, self.q**2

    @property
    def width(self) -> int:
        return bitmap.width(self.domain_size)

    def perturb(self, item: int, coins: Coins) -> bytes:
        """One word per bit, in index order."""
        words = coins.words(self.domain_size)
        q = self.other_bit
        flags = [word < q for word in words]
        flags[item] = words[item] < self.true_bit
        return bitmap.pack_flags(flags, self.domain_size)

    def check(self, payload: bytes) -> None:
        bitmap.count_indices(payload, self.domain_size)

    def support(self, payload: bytes) -> Collection[int]:
        return tuple(bitmap.unpack_indices(payload, self.domain_size))
