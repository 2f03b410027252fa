"""Optimal unary encoding: the true bit is a fair coin, so that the many zero bits are told as truly as possible.

Yilmaz et al. 2019, section 3.2.2; Wang et al. 2017, section 4.3. p = 1/2, q = 1 / (e + 1).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from protocols.exact.coins import ONE
from protocols.exact.rationals import exp_bounds, probability_up
from protocols.mechanisms.unary import UnaryEncoding

if TYPE_CHECKING:
    from typing import Self


@dataclass(frozen=True, slots=True)
class OptimalUnaryEncoding(UnaryEncoding):
    """The unary encoding of least variance at small frequencies."""

    name: ClassVar[str] = "oue"

    @classmethod
    def make(cls, domain_size: int, epsilon: Fraction) -> Self:
        e, _ = exp_bounds(epsilon)
        return cls(domain_size, ONE // 2, probability_up(1 / (e + 1)))
