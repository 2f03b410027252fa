"""Analysis that SHE and the Laplace vector share: integers with discrete Laplace noise, added up."""

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
    Flags,
    Integers,
    Limit,
    Rows,
    Support,
    add_columns,
    noise_variance,
)
from protocols.mechanisms import NoisyVector

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

    def numbers(self, payload: bytes) -> str:
        return ", ".join(map(str, struct.unpack(f"<{self.mechanism.domain_size}i", payload)))

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
        told = dict.fromkeys(against, -bound) | dict.fromkeys(cells, bound)
        size = self.mechanism.domain_size
        return struct.pack(f"<{size}i", *(told.get(cell, 0) for cell in range(size)))

    def noise_sums(self, reports: int, rng: np.random.Generator) -> Integers:
        """Return the noise of so many reports in each cell."""
        return noise_sums(self.mechanism.scale, reports, self.mechanism.domain_size, rng)

    def with_noise(self, cells: Integers) -> Rows:
        """Return noisy cells as payloads, clamped as devices do."""
        bound = self.mechanism.bound
        return np.clip(cells, -bound, bound).astype("<i4").view(np.uint8)


def noise_sums(scale: Fraction, reports: int, size: int, rng: np.random.Generator) -> Integers:
    """``size`` sums of ``reports`` discrete Laplace variables each: differences of two negative binomial variables,
    because each variable is the difference of two geometric ones.

    Not reproduced is the clamping of noisy cells, which happens with probability below exp(-16) and moves no mean.
    """
    if reports == 0:
        return np.zeros(size, dtype=np.int64)
    success = -math.expm1(-1 / float(scale))
    above, below = rng.negative_binomial(reports, success, size=(2, size))
    sums: Integers = above - below
    return sums
