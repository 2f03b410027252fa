"""One bit of one cell: the device draws one of the k cells and reports a bit whose bias tells the value there.

Nguyen et al. 2016; Yilmaz et al. 2019, section 4.2 (Approach 2). P(1) = (v (e - 1) + e + 1) / (2 e + 2) for a value v
in [-1, 1]; v is 0 in every cell but the class. ``k (e + 1) / (e - 1) (2 bit - 1)`` is unbiased for the drawn cell.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from ldp_protocols.errors import DocumentError, payload_error
from ldp_protocols.exact import ONE, Coins, exp_bounds, probability_down
from ldp_protocols.mechanisms.base import (
    VALUE_BITS,
    Mechanism,
    Moment,
    Parameters,
    WorstCase,
    read_names,
    read_probability,
)
from ldp_protocols.mechanisms.pure import index_width

if TYPE_CHECKING:
    from typing import Self


@dataclass(frozen=True, slots=True)
class OneBit(Mechanism[Moment]):
    """``highest`` / 2**64 is the probability p of a 1 at value 1, e / (e + 1); it is 1 - p at value -1."""

    name: ClassVar[str] = "onebit"
    domain_size: int
    highest: int

    @classmethod
    def make(cls, domain_size: int, epsilon: Fraction) -> Self:
        e, _ = exp_bounds(epsilon)
        return cls(domain_size, probability_down(e / (e + 1)))

    @classmethod
    def from_parameters(cls, domain_size: int, parameters: Parameters) -> Self:
        read_names(parameters, "p")
        highest = read_probability(parameters, "p")
        if highest <= ONE // 2:
            raise DocumentError("invalid-parameters", "p must be above 1/2, or reports carry no signal")
        return cls(domain_size, highest)

    def parameters(self) -> dict[str, int | str]:
        return {"p": str(self.highest)}

    @property
    def p(self) -> Fraction:
        """The probability of a 1 at value 1."""
        return Fraction(self.highest, ONE)

    def worst_case(self) -> WorstCase:
        """The cell is drawn uniformly whatever the item is, and cancels. The bit is 1 when a word lies below a
        threshold that rises with the value from 2^64 - P at -1 to P at 1 (rounded down, which keeps the order), P >
        2^63. So P(bit | item, cell) lies between 1 - p and p for either bit, and reaches both ends at the items (cell,
        -1) and (cell, 1).
        """
        return WorstCase(self.p / (1 - self.p))

    @property
    def width(self) -> int:
        return index_width(self.domain_size) + 1

    def perturb(self, item: Moment, coins: Coins) -> bytes:
        """Draws the cell, then one word for the bit."""
        cell = coins.below(self.domain_size)
        value = item.value if cell == item.cell else 0
        bit = coins.bernoulli(self.threshold(value))
        return cell.to_bytes(self.width - 1, "little") + bytes((bit,))

    def threshold(self, value: int) -> int:
        """P(1 | value) in units of 2**-64, rounded down."""
        lowest = ONE - self.highest
        return lowest + ((self.highest - lowest) * (value + (1 << VALUE_BITS)) >> (VALUE_BITS + 1))

    def check(self, payload: bytes) -> None:
        if int.from_bytes(payload[:-1], "little") >= self.domain_size:
            raise payload_error("index-out-of-range")
        if payload[-1] > 1:
            raise payload_error("bit-out-of-range")

    def noise_variance(self, frequency: float) -> float:
        """`k / (2 p - 1)^2`: the second moment of the estimate of one cell's sum (its squared mean is neglected)."""
        return self.domain_size / (2 * float(self.p) - 1) ** 2
