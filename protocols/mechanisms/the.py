"""Histogram encoding with thresholding: one-hot plus Lap(2 / epsilon), and of each cell only whether it exceeds theta.

Yilmaz et al. 2019, section 3.2.3; Wang et al. 2017, section 4.2. The threshold is applied on the device: the noise of
the cells is independent, so the bits are drawn directly, with the probabilities that the noise would give them:
p = 1 - exp(epsilon (theta - 1) / 2) / 2 and q = exp(-epsilon theta / 2) / 2. The realised loss is below epsilon by
more than rounding, because a threshold forgets; OUE spends what THE leaves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar, Final

from protocols.exact.rationals import exp_bounds, probability_down, probability_up
from protocols.mechanisms.unary import UnaryEncoding

if TYPE_CHECKING:
    from typing import Self

_THETA_STEPS: Final = 1000


@dataclass(frozen=True, slots=True)
class ThresholdingHistogramEncoding(UnaryEncoding):
    """Bits of a thresholded noisy histogram."""

    name: ClassVar[str] = "the"
    waste: ClassVar[str] = "a threshold tells less than the noise behind it would allow; oue spends what it leaves"

    @classmethod
    def make(cls, domain_size: int, epsilon: Fraction, theta: Fraction | None = None) -> Self:
        """``theta`` in (0, 1]; None takes the one of least variance."""
        if theta is None:
            theta = best_theta(epsilon)
        _, true_tail = exp_bounds(epsilon * (theta - 1) / 2)
        _, other_tail = exp_bounds(-epsilon * theta / 2)
        return cls(domain_size, probability_down(1 - true_tail / 2), probability_up(other_tail / 2))


@lru_cache(maxsize=64)
def best_theta(epsilon: Fraction) -> Fraction:
    """The threshold of least variance at small frequencies, q (1 - q) / (p - q)^2, to three decimals."""
    rate = float(min(epsilon, Fraction(64))) / 2

    def variance(step: int) -> float:
        theta = step / _THETA_STEPS
        p, q = 1 - math.exp(rate * (theta - 1)) / 2, math.exp(-rate * theta) / 2
        return q * (1 - q) / (p - q) ** 2

    return Fraction(min(range(1, _THETA_STEPS + 1), key=variance), _THETA_STEPS)
