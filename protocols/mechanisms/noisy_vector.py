"""A vector of integers plus independent discrete Laplace noise in every cell: what SHE and the Laplace vector share.

Two items differ by at most 2 units in L1 (a unit is one count for SHE, the half-width of the value range for the
Laplace vector), so noise of scale 2 / epsilon units gives epsilon-local DP.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from protocols.errors import DocumentError, PayloadError
from protocols.exact import discrete_laplace
from protocols.exact.coins import Coins
from protocols.mechanisms.base import Item, Mechanism, Parameters, WorstCase, read_integer

SCALE_BITS: Final = 40
"""A noise scale is an integer S and means S / 2**40 grid steps."""

_SENSITIVITY: Final = 2
_REACH: Final = 16
"""Scales of noise a cell may carry: what a liar can add to a sum, traded against what honest devices lose.

An honest draw lies beyond with probability below exp(-16), 1.1e-7, and is cut there, on the device: no privacy is lost
by looking at the noisy cell alone. Zeros stay unbiased by symmetry; a cell at the end of the range is drawn towards 0
by at most t exp(-16) / 2. With 10^9 reports to one question that is below 1/790 of the standard error of their mean,
of which the noise alone makes t sqrt(2 / n). Twice the reach would double what a liar can do, for nothing measurable.
"""

_INT32_MAX: Final = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class NoisyVector(Mechanism[Item]):
    """``grid`` halves the unit that often: a grid step is 2**-grid units. ``scaled`` / 2**40 is the scale in steps."""

    domain_size: int
    grid: int
    scaled: int

    @property
    def scale(self) -> Fraction:
        """The scale t of the discrete Laplace noise, in grid steps."""
        return Fraction(self.scaled, 1 << SCALE_BITS)

    @property
    def bound(self) -> int:
        """The largest magnitude of a cell; devices clamp to it, so that one lying device moves a sum no further."""
        return (1 << self.grid) + math.ceil(_REACH * self.scale)

    def worst_case(self) -> WorstCase:
        """A report is clamp(x + Z), Z of independent cells with P(z) proportional to exp(-|z| / t). For a vector y
        before clamping, P(y | x) / P(y | x') = exp(sum over cells of (|y - x'| - |y - x|) / t) <= exp(||x - x'||_1 /
        t), with equality where y is beyond both in every cell. A vector has one cell that is not 0, of at most 2^grid
        steps, and rounding to the grid does not leave that range: ||x - x'||_1 <= 2 * 2^grid, reached by two classes or
        by the two ends. Clamping looks at y alone: the probability of a clamped report is a sum of probabilities of
        vectors y, and a ratio of sums never exceeds the largest ratio of their terms; a report inside the bound keeps
        its own ratio, so that the worst case is attained.
        """
        return WorstCase(Fraction(1), Fraction(_SENSITIVITY << self.grid) / self.scale)

    @property
    def width(self) -> int:
        return 4 * self.domain_size

    def check(self, payload: bytes) -> None:
        bound = self.bound
        if any(abs(cell) > bound for cell in struct.unpack(f"<{self.domain_size}i", payload)):
            raise PayloadError("value-out-of-range")

    def noise_variance(self, frequency: float) -> float:
        """Variance of one cell's noise, in units squared; the same at every frequency."""
        return discrete_laplace.variance(self.scale) / float(4**self.grid)

    def _add_noise(self, cells: Sequence[int], coins: Coins) -> bytes:
        """The payload: little-endian int32 cells with noise, clamped to :attr:`bound`."""
        scale, bound = self.scale, self.bound
        noisy = (cell + discrete_laplace.sample(scale, coins) for cell in cells)
        return struct.pack(f"<{len(cells)}i", *(max(-bound, min(bound, cell)) for cell in noisy))


def read_scale(parameters: Parameters, grid: int) -> int:
    """``scaled`` from a document; refused where the noise would not fit the wire's 32-bit cells."""
    scaled = read_integer(parameters, "scale")
    if (1 << grid) + math.ceil(_REACH * Fraction(scaled, 1 << SCALE_BITS)) > _INT32_MAX:
        raise DocumentError("invalid-parameters", f"scale {scaled} puts the noise beyond 32-bit integers")
    return scaled


def least_scale(epsilon: Fraction, grid: int) -> int:
    """The least ``scaled`` whose loss is at most ``epsilon``."""
    return math.ceil((_SENSITIVITY << (grid + SCALE_BITS)) / epsilon)
