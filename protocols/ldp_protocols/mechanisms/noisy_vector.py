"""A vector of integers plus independent discrete Laplace noise in every cell: SHE and the Laplace vector.

Two items differ by at most 2 units in L1 (a unit is one count for SHE, the half-width of the value range for the
Laplace vector), so noise of scale 2 / epsilon units gives epsilon-local DP.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Final

from ldp_protocols import exact
from ldp_protocols.errors import DocumentError, payload_error
from ldp_protocols.exact import WORD_BITS, Coins
from ldp_protocols.mechanisms.base import VALUE_BITS, Item, Mechanism, Moment, WorstCase, read_integer, read_names

if TYPE_CHECKING:
    from typing import Self

    from ldp_protocols.mechanisms.base import Parameters

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

_FINEST_GRID: Final = 12
"""2**-12 of the half-width: rounding to it adds at most 1.5e-8 to a report's variance."""

_WIDEST_NOISE: Final = 1 << 25
"""Grid steps: the grid is coarser at tiny epsilons, so that the noise fits the wire's int32."""


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
            raise payload_error("value-out-of-range")

    def noise_variance(self, frequency: float) -> float:
        """Variance of one cell's noise, in units squared; the same at every frequency."""
        return exact.discrete_laplace_variance(self.scale) / float(4**self.grid)

    def _add_noise(self, cells: Sequence[int], coins: Coins) -> bytes:
        """The payload: little-endian int32 cells with noise, clamped to :attr:`bound`."""
        scale, bound = self.scale, self.bound
        noisy = (cell + exact.discrete_laplace(scale, coins) for cell in cells)
        return struct.pack(f"<{len(cells)}i", *(max(-bound, min(bound, cell)) for cell in noisy))


@dataclass(frozen=True, slots=True)
class SummingHistogramEncoding(NoisyVector[int]):
    """A one-hot vector with noise; its sums estimate counts.

    Yilmaz et al. 2019, section 3.2.3; Wang et al. 2017, section 4.2. The noise lives on the whole counts (grid 0): the
    one-hot vector does too, so a finer grid would round nothing better, and integer noise has *less* variance than
    continuous Laplace (7.84 against 8 at epsilon 1, 0.36 against 0.5 at epsilon 4).
    """

    name: ClassVar[str] = "she"

    @classmethod
    def make(cls, domain_size: int, epsilon: Fraction) -> Self:
        return cls(domain_size, 0, least_scale(epsilon, 0))

    @classmethod
    def from_parameters(cls, domain_size: int, parameters: Parameters) -> Self:
        read_names(parameters, "scale")
        return cls(domain_size, 0, read_scale(parameters, 0))

    def parameters(self) -> dict[str, int | str]:
        return {"scale": str(self.scaled)}

    def perturb(self, item: int, coins: Coins) -> bytes:
        cells = [0] * self.domain_size
        cells[item] = 1
        return self._add_noise(cells, coins)


@dataclass(frozen=True, slots=True)
class LaplaceVector(NoisyVector[Moment]):
    """A value in [-1, 1] at its class and 0 elsewhere, with noise; its sums estimate P(class) E[value | class].

    Yilmaz et al. 2019, section 4.2 (Approach 3; Approach 1 where every question is answered with a share of epsilon).
    The noisy zeros hide the class. The value is rounded to one of its two neighbours on the grid, at random so that its
    expectation is kept exactly, before any noise is added.
    """

    name: ClassVar[str] = "laplace"

    @classmethod
    def make(cls, domain_size: int, epsilon: Fraction) -> Self:
        grid = _FINEST_GRID
        while grid > 1 and (2 << grid) / epsilon > _WIDEST_NOISE:
            grid -= 1
        return cls(domain_size, grid, least_scale(epsilon, grid))

    @classmethod
    def from_parameters(cls, domain_size: int, parameters: Parameters) -> Self:
        read_names(parameters, "grid", "scale")
        grid = read_integer(parameters, "grid")
        if grid > _FINEST_GRID:
            raise DocumentError("invalid-parameters", f"grid must be at most {_FINEST_GRID}, not {grid}")
        return cls(domain_size, grid, read_scale(parameters, grid))

    def parameters(self) -> dict[str, int | str]:
        return {"grid": self.grid, "scale": str(self.scaled)}

    def perturb(self, item: Moment, coins: Coins) -> bytes:
        """One word rounds the value; then the noise of the cells in order."""
        cut = VALUE_BITS - self.grid
        steps, rest = item.value >> cut, item.value & ((1 << cut) - 1)
        cells = [0] * self.domain_size
        cells[item.cell] = steps + coins.bernoulli(rest << (WORD_BITS - cut))
        return self._add_noise(cells, coins)


def read_scale(parameters: Parameters, grid: int) -> int:
    """``scaled`` from a document; refused where the noise would not fit the wire's 32-bit cells."""
    scaled = read_integer(parameters, "scale")
    if (1 << grid) + math.ceil(_REACH * Fraction(scaled, 1 << SCALE_BITS)) > _INT32_MAX:
        raise DocumentError("invalid-parameters", f"scale {scaled} puts the noise beyond 32-bit integers")
    return scaled


def least_scale(epsilon: Fraction, grid: int) -> int:
    """The least ``scaled`` whose loss is at most ``epsilon``."""
    return math.ceil((_SENSITIVITY << (grid + SCALE_BITS)) / epsilon)
