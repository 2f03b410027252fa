"""The Laplace vector: a value in [-1, 1] at its class and 0 elsewhere, plus discrete Laplace noise in every cell.

Yilmaz et al. 2019, section 4.2 (Approach 3; Approach 1 where every question is answered with a share of epsilon). The
noisy zeros hide the class. The value is rounded to one of its two neighbours on the grid, at random so that its
expectation is kept exactly, before any noise is added.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Final

from protocols.errors import DocumentError
from protocols.exact.coins import WORD_BITS, Coins
from protocols.mechanisms.base import VALUE_BITS, Moment, Parameters, read_integer, read_names
from protocols.mechanisms.noisy_vector import NoisyVector, least_scale, read_scale

if TYPE_CHECKING:
    from typing import Self

_FINEST_GRID: Final = 12
"""2**-12 of the half-width: rounding to it adds at most 1.5e-8 to a report's variance."""

_WIDEST_NOISE: Final = 1 << 25
"""Grid steps: the grid is coarser at tiny epsilons, so that the noise fits the wire's int32."""


@dataclass(frozen=True, slots=True)
class LaplaceVector(NoisyVector[Moment]):
    """A noisy one-cell vector; its sums estimate P(class) E[value | class]."""

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
