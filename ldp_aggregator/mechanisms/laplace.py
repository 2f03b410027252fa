"""The Laplace vector: a value at its class, with noise in every cell."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from ldp_aggregator.mechanisms.analysis import Array, Blanket, Integers, MomentBatch, Rows, bound_exponent
from ldp_aggregator.mechanisms.noisy_vector import NoisyVectorFacts
from ldp_aggregator.mechanisms.sampling import discrete_laplace
from protocols.exact import exp_bounds
from protocols.mechanisms import VALUE_BITS, LaplaceVector


class LaplaceFacts(NoisyVectorFacts[LaplaceVector]):
    """Sums of reports estimate P(class) E[value | class]."""

    name = "laplace"
    words = "Laplace noise on a number for every class"

    moments_hold_spread = False

    def blanket(self) -> Blanket:
        """With Q the law of noise alone and G = 2^grid steps, mu of (class c, s steps) is
        Q(y) exp((|y_c| - |y_c - s|) / t), which is least, Q(y) exp(-G / t), at s = -G where y_c >= 0 and at s = G
        elsewhere: in every cell, whatever y is. So g = 1 / h, h = exp(G / t), and e0 = h^2.

        That is all that is used, as for any randomiser with a blanket: a pair (a, b) goes to (e0, 1) and (1, e0) with
        (a - b)+ and (b - a)+ over e0 - 1, so that m10 is the total variation of mu_x and mu_x' over e0 - 1; and no two
        laws above one blanket are further apart than 1 - g. m10 = (1 - g) / (e0 - 1) = 1 / (h (h + 1)) and m11 = 0: the
        blanket of direct encoding on h + 1 cells. h is rounded up: a part of a blanket is one, and a larger square
        holds the pairs.
        """
        _, h = exp_bounds(bound_exponent((1 << self.mechanism.grid) / self.mechanism.scale))
        return Blanket(h * h, 1 / h, 1 / (h * (h + 1)), Fraction(0))

    def estimate_moments(self, n: int, counts: Integers) -> tuple[Array, Array]:
        """Means of the noisy cells, with the variance of their noise alone."""
        return counts / (n * self.unit), np.full(counts.size, self.support.noise / n)

    def moment_variance(self, mean: Array, second: Array) -> Array:
        return self.support.noise + second - mean**2

    def moment_reach(self, n: int, counts: Integers) -> Array:
        return np.full(counts.size, self.reach(1) / n if n else np.inf)

    def perturb(self, items: MomentBatch, rng: np.random.Generator) -> Rows:  # type: ignore[override]
        steps, rest = self._split(items)
        steps += rng.integers(0, 1 << VALUE_BITS - self.mechanism.grid, size=len(items)) < rest
        cells = discrete_laplace(self.mechanism.scale, (len(items), self.mechanism.domain_size), rng)
        cells[np.arange(len(items)), items.cells] += steps
        return self.with_noise(cells)

    def tally_moments(self, moments: MomentBatch, holders: Integers, rng: np.random.Generator) -> Integers:
        steps, rest = self._split(moments)
        sums = self.noise_sums(int(holders.sum()), rng)
        risen = rng.binomial(holders, rest / (1 << VALUE_BITS - self.mechanism.grid))
        np.add.at(sums, moments.cells, steps * holders + risen)
        return sums

    def _split(self, moments: MomentBatch) -> tuple[Integers, Integers]:
        """Whole steps of the grid, and the rest of each value."""
        cut = VALUE_BITS - self.mechanism.grid
        return moments.values >> cut, moments.values & ((1 << cut) - 1)
