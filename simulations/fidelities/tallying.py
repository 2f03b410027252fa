"""How the reports of many devices add up, drawn as a whole: the exact law of each mechanism's counts.

One row of :data:`_CELL_TALLIES` or :data:`_MOMENT_TALLIES` per family of mechanisms. Probabilities are the mechanism's
integers, rounded to doubles once. Not reproduced: the clamping of noisy cells to ``bound``, which happens with a
probability far below 1e-20.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Final

import numpy as np

from protocols.exact.coins import ONE
from protocols.mechanisms import (
    VALUE_BITS,
    AnyMechanism,
    DirectEncoding,
    LaplaceVector,
    OneBit,
    SubsetSelection,
    SummingHistogramEncoding,
    UnaryEncoding,
)
from simulations.fidelities.items import UNIT, Integers, Moments

Counts = Integers

_MOST_AT_ONCE: Final = 400_000_000
"""numpy draws hypergeometric variables from populations below 1e9 only; larger ones are tallied in parts."""


def tally_cells(mechanism: AnyMechanism, cells: Integers, rng: np.random.Generator) -> Counts:
    """The counts after ``cells[i]`` devices have reported item i."""
    for family, tallier in _CELL_TALLIES.items():
        if isinstance(mechanism, family):
            return tallier(mechanism, cells, rng)
    raise TypeError(f"no tally to draw for mechanism {mechanism.name}")


def tally_moments(mechanism: AnyMechanism, moments: Moments, numbers: Integers, rng: np.random.Generator) -> Counts:
    """The counts after ``numbers[i]`` devices have reported moment i."""
    for family, tallier in _MOMENT_TALLIES.items():
        if isinstance(mechanism, family):
            return tallier(mechanism, moments, numbers, rng)
    raise TypeError(f"no tally to draw for mechanism {mechanism.name}")


def noise_sums(scale: Fraction, reports: int, size: int, rng: np.random.Generator) -> Integers:
    """``size`` sums of ``reports`` discrete Laplace variables each: differences of two negative binomial variables,
    because each variable is the difference of two geometric ones.
    """
    if reports == 0:
        return np.zeros(size, dtype=np.int64)
    success = -math.expm1(-1 / float(scale))
    above, below = rng.negative_binomial(reports, success, size=(2, size))
    sums: Integers = above - below
    return sums


def _direct(mechanism: DirectEncoding, cells: Integers, rng: np.random.Generator) -> Counts:
    """A report is the true index with probability p - q, and uniform over all d indices otherwise."""
    kept = rng.binomial(cells, float(mechanism.p - mechanism.q))
    size = mechanism.domain_size
    spread: Counts = rng.multinomial(int(cells.sum() - kept.sum()), np.full(size, 1 / size))
    return kept + spread


def _unary(mechanism: UnaryEncoding, cells: Integers, rng: np.random.Generator) -> Counts:
    """The bits of a report are independent, so the counts of the cells are."""
    counts: Counts = rng.binomial(cells, float(mechanism.p)) + rng.binomial(cells.sum() - cells, float(mechanism.q))
    return counts


def _subset(mechanism: SubsetSelection, cells: Integers, rng: np.random.Generator) -> Counts:
    if cells.sum() <= _MOST_AT_ONCE:
        return _subset_at_once(mechanism, cells, rng)
    half = cells // 2
    return _subset(mechanism, half, rng) + _subset(mechanism, cells - half, rng)


def _subset_at_once(mechanism: SubsetSelection, cells: Integers, rng: np.random.Generator) -> Counts:
    """A report either is forced to contain its true index (and w - 1 of the others), or is any subset of size w.

    Forced with probability a, where p = a + (1 - a) w / d, this is the law of the mechanism. The cells are visited in
    order; what the reports still need only depends on how many members they miss, so it is enough to count the reports
    by that number: those whose forced member still lies ahead, and all the others.
    """
    d, w = mechanism.domain_size, mechanism.subset_size
    share = Fraction(w, d)
    forced = rng.binomial(cells, float((mechanism.p - share) / (1 - share)))
    ahead, others = np.zeros(w + 1, dtype=np.int64), np.zeros(w + 1, dtype=np.int64)
    ahead[w - 1] = forced.sum()
    others[w] = cells.sum() - forced.sum()
    counts = forced.astype(np.int64)
    for cell in range(d):
        own = rng.multivariate_hypergeometric(ahead, int(forced[cell]), method="marginals")
        ahead -= own
        # The cells from here on, without the forced member that still lies ahead.
        counts[cell] += _take(ahead, d - cell - 1, rng) + _take(others, d - cell, rng)
        others += own
    return counts


def _take(missing: Integers, cells_left: int, rng: np.random.Generator) -> int:
    """Reports (counted by how many members they miss) that take the next of ``cells_left`` cells; moves them down."""
    if not missing[1:].any():
        return 0
    chances = np.minimum(np.arange(len(missing)) / max(1, cells_left), 1.0)
    takers = rng.binomial(missing, chances)
    missing -= takers
    missing[:-1] += takers[1:]
    return int(takers.sum())


def _histogram(mechanism: SummingHistogramEncoding, cells: Integers, rng: np.random.Generator) -> Counts:
    return cells + noise_sums(mechanism.scale, int(cells.sum()), mechanism.domain_size, rng)


def _laplace(mechanism: LaplaceVector, moments: Moments, numbers: Integers, rng: np.random.Generator) -> Counts:
    cut = VALUE_BITS - mechanism.grid
    steps, rest = moments.values >> cut, moments.values & ((1 << cut) - 1)
    sums = noise_sums(mechanism.scale, int(numbers.sum()), mechanism.domain_size, rng)
    np.add.at(sums, moments.cells, steps * numbers + rng.binomial(numbers, rest / (1 << cut)))
    return sums


def _onebit(mechanism: OneBit, moments: Moments, numbers: Integers, rng: np.random.Generator) -> Counts:
    """A device that draws its own cell tells its value there, and a fair bit about zero anywhere else."""
    k = mechanism.domain_size
    low, high = (ONE - mechanism.highest) / ONE, mechanism.highest / ONE
    own = rng.binomial(numbers, 1 / k)
    ones = rng.binomial(own, low + (high - low) * (moments.values + UNIT) / (2 * UNIT))
    elsewhere = np.zeros((k, k), dtype=np.int64)
    for cell in range(k):
        strangers = int((numbers - own)[moments.cells == cell].sum())
        if k > 1:
            elsewhere[cell, np.arange(k) != cell] = rng.multinomial(strangers, np.full(k - 1, 1 / (k - 1)))
    fair = elsewhere.sum(axis=0)
    fair_ones = rng.binomial(fair, (low + high) / 2)
    counts = np.stack([fair - fair_ones, fair_ones], axis=1).ravel()
    np.add.at(counts, 2 * moments.cells, own - ones)
    np.add.at(counts, 2 * moments.cells + 1, ones)
    return counts


_CELL_TALLIES: Final[dict[Any, Callable[[Any, Integers, np.random.Generator], Counts]]] = {
    DirectEncoding: _direct,
    UnaryEncoding: _unary,
    SubsetSelection: _subset,
    SummingHistogramEncoding: _histogram,
}

_MOMENT_TALLIES: Final[dict[Any, Callable[[Any, Moments, Integers, np.random.Generator], Counts]]] = {
    LaplaceVector: _laplace,
    OneBit: _onebit,
}
