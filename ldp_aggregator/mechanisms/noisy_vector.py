"""Integers with discrete Laplace noise added up: SHE's one-hot vector, and the Laplace vector, a value at its class."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from ldp_aggregator.mechanisms.analysis import (
    Analysis,
    Array,
    Blanket,
    Flags,
    Integers,
    Limit,
    MomentBatch,
    Rows,
    Support,
    add_columns,
    bits_blanket,
    bound_exponent,
    noise_variance,
)
from ldp_aggregator.mechanisms.sampling import discrete_laplace
from ldp_protocols.exact import exp_bounds
from ldp_protocols.mechanisms import VALUE_BITS, LaplaceVector, NoisyVector, SummingHistogramEncoding

N = TypeVar("N", bound=NoisyVector[Any])


class NoisyVectorFacts(Analysis[N]):
    """A report adds a little-endian int32 to each cell."""

    @property
    def limits(self) -> tuple[int, ...]:
        return (self.mechanism.bound,)

    @classmethod
    def refusals(cls, rows: Rows, limits: Sequence[Limit]) -> Iterator[tuple[str, Flags]]:
        bound = np.asarray(limits[0])
        beyond = np.abs(rows.view("<i4").astype(np.int64)) > (bound[:, None] if bound.ndim else bound)
        yield "value-out-of-range", np.asarray(beyond.any(axis=1))

    @classmethod
    def sums(cls, rows: Rows, starts: Integers, cells: Integers, limits: Sequence[Limit]) -> list[Integers]:
        return add_columns(rows.view("<i4"), starts, cells)

    @property
    def unit(self) -> int:  # type: ignore[override]
        return 1 << self.mechanism.grid

    @cached_property
    def support(self) -> Support:
        """A cell's mean is what it holds, and cells are independent."""
        return Support(1.0, 0.0, 0.0, 0.0, noise_variance(self.mechanism, 0.0))

    def reach(self, members: int) -> float:
        return 2 * members * self.mechanism.bound / self.unit

    def loudest(self, cells: Sequence[int], *, high: bool = True, against: Sequence[int] = ()) -> bytes:
        """These cells at one end of what the mechanism allows, those it is against at the other end."""
        bound = self.mechanism.bound if high else -self.mechanism.bound
        ends = dict.fromkeys(against, -bound) | dict.fromkeys(cells, bound)
        size = self.mechanism.domain_size
        return struct.pack(f"<{size}i", *(ends.get(cell, 0) for cell in range(size)))

    def with_noise(self, cells: Integers) -> Rows:
        """Noisy cells as payloads, clamped as devices do."""
        bound = self.mechanism.bound
        return np.clip(cells, -bound, bound).astype("<i4").view(np.uint8)


def noise_sums(scale: Fraction, reports: int, size: int, rng: np.random.Generator) -> Integers:
    """``size`` sums of ``reports`` discrete Laplace variables, unclamped: that is rarer than exp(-16), and unbiased."""
    if reports == 0:
        return np.zeros(size, dtype=np.int64)
    above, below = rng.negative_binomial(reports, -math.expm1(-1 / float(scale)), size=(2, size))
    return np.asarray(above - below)


class SummingHistogramFacts(NoisyVectorFacts[SummingHistogramEncoding]):
    """Sums of reports are counts with noise."""

    name = "she"
    words = "histogram with Laplace noise: a noisy number for every possible answer"

    def blanket(self) -> Blanket:
        """The noise P(z) ~ a^|z|, a = exp(-1 / t), lives on whole counts, so P(z - 1) / P(z) is 1 / a from z = 1 on and
        a below: all that a cell z tells is whether it is 1 or more. Those bits are symmetric unary encoding with
        q = P(Z >= 1) = a / (1 + a) and p = P(Z >= 0) = 1 / (1 + a). A smaller a gives bits of which those of a are
        noisier copies, so a is rounded down. Clamping looks at the noisy cell alone.
        """
        a, _ = exp_bounds(-bound_exponent(1 / self.mechanism.scale))
        return bits_blanket(1 / (1 + a), a / (1 + a))

    def perturb(self, items: Integers, rng: np.random.Generator) -> Rows:  # type: ignore[override]
        cells = discrete_laplace(self.mechanism.scale, (len(items), self.mechanism.domain_size), rng)
        cells[np.arange(len(items)), items] += 1
        return self.with_noise(cells)

    def tally(self, holders: Integers, rng: np.random.Generator) -> Integers:
        return holders + noise_sums(self.mechanism.scale, int(holders.sum()), self.mechanism.domain_size, rng)


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
        sums = noise_sums(self.mechanism.scale, int(holders.sum()), self.mechanism.domain_size, rng)
        risen = rng.binomial(holders, rest / (1 << VALUE_BITS - self.mechanism.grid))
        np.add.at(sums, moments.cells, steps * holders + risen)
        return sums

    def _split(self, moments: MomentBatch) -> tuple[Integers, Integers]:
        """Whole steps of the grid, and the rest of each value."""
        cut = VALUE_BITS - self.mechanism.grid
        return moments.values >> cut, moments.values & ((1 << cut) - 1)
