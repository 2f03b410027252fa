"""Symmetric unary encoding (basic RAPPOR): p + q = 1. Yilmaz et al. 2019, section 3.2.2.

p = h / (h + 1), q = 1 / (h + 1), with h = exp(epsilon / 2).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from protocols.exact.rationals import exp_bounds, probability_down, probability_up
from protocols.mechanisms.unary import UnaryEncoding

if TYPE_CHECKING:
    from typing import Self


@dataclass(frozen=True, slots=True)
class SymmetricUnaryEncoding(UnaryEncoding):
    """Each bit is told truly with the same probability, whether it is set or not."""

    name: ClassVar[str] = "sue"

    @classmethod
    def make(cls, domain_size: int, epsilon: Fraction) -> Self:
        h, _ = exp_bounds(epsilon / 2)
        return cls(domain_size, probability_down(h / (h + 1)), probability_up(1 / (h + 1)))
