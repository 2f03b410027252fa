"""Direct encoding, the generalised randomised response: send the true index with probability p, else any other one.

Yilmaz et al. 2019, section 3.2.1; Wang et al. 2017, section 4.1. p = e / (e + d - 1), q = 1 / (e + d - 1).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from protocols.errors import DocumentError, PayloadError
from protocols.exact.coins import ONE, Coins
from protocols.exact.rationals import exp_bounds, probability_down
from protocols.mechanisms.base import Parameters, PureMechanism, WorstCase, read_names, read_probability

if TYPE_CHECKING:
    from typing import Self


@dataclass(frozen=True, slots=True)
class DirectEncoding(PureMechanism):
    """``keep`` / 2**64 is the probability p of sending the true index."""

    name: ClassVar[str] = "de"
    domain_size: int
    keep: int

    @classmethod
    def make(cls, domain_size: int, epsilon: Fraction) -> Self:
        e, _ = exp_bounds(epsilon)
        return cls(domain_size, probability_down(e / (e + domain_size - 1)))

    @classmethod
    def from_parameters(cls, domain_size: int, parameters: Parameters) -> Self:
        read_names(parameters, "p")
        mechanism = cls(domain_size, read_probability(parameters, "p"))
        if mechanism.p <= mechanism.q:
            raise DocumentError("invalid-parameters", "p must be above 1 / domain_size, or reports carry no signal")
        return mechanism

    def parameters(self) -> dict[str, int | str]:
        return {"p": str(self.keep)}

    def worst_case(self) -> WorstCase:
        """For an output y, P(y | x) is p for x = y and (1 - p) / (d - 1) for every other x: two values, one ratio."""
        return WorstCase(max(self.p / self.q, self.q / self.p))

    @property
    def p(self) -> Fraction:
        return Fraction(self.keep, ONE)

    @property
    def q(self) -> Fraction:
        return Fraction(ONE - self.keep, ONE * (self.domain_size - 1))

    @property
    def joint_support(self) -> tuple[Fraction, Fraction]:
        return Fraction(0), Fraction(0)

    @property
    def width(self) -> int:
        return index_width(self.domain_size)

    def perturb(self, item: int, coins: Coins) -> bytes:
        index = item
        if not coins.bernoulli(self.keep):
            other = coins.below(self.domain_size - 1)
            index = other if other < index else other + 1
        return index.to_bytes(self.width, "little")

    def check(self, payload: bytes) -> None:
        if int.from_bytes(payload, "little") >= self.domain_size:
            raise PayloadError("index-out-of-range")

    def support(self, payload: bytes) -> Collection[int]:
        self.check(payload)
        return (int.from_bytes(payload, "little"),)


def index_width(domain_size: int) -> int:
    """Bytes of an index on the wire: the least of 1, 2 and 4 that holds ``domain_size - 1``."""
    return 1 if domain_size <= 1 << 8 else 2 if domain_size <= 1 << 16 else 4
