"""The one protocol by which everything else asks about a mechanism: counting, estimating, bounding, simulating.

A class of this folder is one mechanism, as in ``ldp_protocols.mechanisms`` on the device's side, and a line of
:mod:`ldp_aggregator.mechanisms` names it. Nothing outside the two asks which mechanism it has before it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import ClassVar, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ldp_protocols.mechanisms import AnyMechanism

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]
Integers = NDArray[np.int64]
Rows = NDArray[np.uint8]
Limit = int | Integers
"""A number of a question's mechanism, or of each row's."""

M = TypeVar("M", bound=AnyMechanism)


@dataclass(frozen=True)
class MomentBatch:
    """Many :class:`ldp_protocols.mechanisms.Moment`: cells, and values in units of 2**-52; 0 where ``missing``."""

    cells: Integers
    values: Integers
    missing: Flags

    def __len__(self) -> int:
        return len(self.cells)


class Support(NamedTuple):
    """The first two moments of what a report adds to the cells, in units of a whole answer.

    The cell of the true index gets ``p`` in the mean, any other ``q``. Two cells get a product of ``one_true`` in the
    mean where one of them is the true one, ``none_true`` where none is. ``noise`` is the variance of each cell's own
    noise beside what its mean says: 0 where a cell is supported or not.
    """

    p: float
    q: float
    one_true: float
    none_true: float
    noise: float = 0.0


@dataclass(frozen=True)
class Blanket:
    """Four numbers of a randomiser for the shuffle bound (:mod:`ldp_aggregator.amplification`): ``ratio`` is
    e0, above 1; ``mass`` is g; ``single`` is m10 = m01; ``both`` is m11.
    """

    ratio: Fraction
    mass: Fraction
    single: Fraction
    both: Fraction

    @property
    def neither(self) -> Fraction:
        """m00."""
        return self.mass - 2 * self.single - self.both

    def at_ratio(self, ratio: Fraction) -> Blanket:
        """The same randomiser with its pairs moved to the corners of a larger square, [1, ratio]^2."""
        share = (self.ratio - 1) / (ratio - 1)
        return Blanket(ratio, self.mass, self.single * share, self.both * share)


class Analysis(ABC, Generic[M]):
    """Answers to all that others ask about a mechanism with its numbers."""

    name: ClassVar[str]
    words: ClassVar[str]
    """The mechanism in a few words, for people."""

    def __init__(self, mechanism: M) -> None:
        self.mechanism = mechanism

    # Payloads on arrays.

    @property
    def cells(self) -> int:
        """Length of a question's tally vector."""
        return self.mechanism.domain_size

    @property
    @abstractmethod
    def limits(self) -> tuple[int, ...]:
        """The numbers that payloads are checked against; as many for each mechanism of a name."""

    @classmethod
    @abstractmethod
    def refusals(cls, rows: Rows, limits: Sequence[Limit]) -> Iterator[tuple[str, Flags]]:
        """Code (see ``ldp_protocols.errors.PAYLOAD_CODES``) and rows that no device can have sent; a later code of a
        row stands for an earlier one.

        Rows are payloads, or payloads and zeros behind them up to a multiple of eight bytes. ``limits`` hold for all
        rows, or are arrays with a number for each. The same rule as the mechanism's ``check``.
        """

    @classmethod
    @abstractmethod
    def sums(cls, rows: Rows, starts: Integers, cells: Integers, limits: Sequence[Limit]) -> list[Integers]:
        """The exact tally vector of each run of rows: ``starts`` of runs that answer one question each, and the length
        of its vector. Rows must be free of :meth:`refusals`.
        """

    def impossible(self, n: int, counts: Integers) -> Iterator[str]:
        """Reasons why ``n`` reports cannot have left such counts, as far as that is known."""
        return iter(())

    # Laws.

    @property
    def law_size(self) -> int:
        """Count the probabilities that :meth:`laws` gives; 0 where there is no end of them."""
        return 0

    def laws(self) -> Iterable[Sequence[Fraction]]:
        """Output by output, the probability that each item has of it, by the mechanism's definition alone."""
        raise TypeError(f"no definition of mechanism {self.name} to enumerate")

    @abstractmethod
    def blanket(self) -> Blanket:
        """The four numbers of the shuffle bound."""

    # Estimating. Frequencies are of an index; moments of a value at a class.

    unit: int = 1
    """The part of a count that is one whole answer."""

    @cached_property
    def support(self) -> Support:
        """Moments of what a report adds, as doubles. Raises TypeError for a mechanism that tells no frequencies."""
        raise TypeError(f"mechanism {self.name} tells no frequencies")

    @property
    def gain(self) -> float:
        """How much more a whole answer adds to its own cell than to another."""
        return self.support.p - self.support.q

    def estimate_moments(self, n: int, counts: Integers) -> tuple[Array, Array]:
        """Unbiased sums P(class) E[v | class] and their variances."""
        raise TypeError(f"mechanism {self.name} tells no moments")

    moments_hold_spread: bool = True
    """True where the variances of :meth:`estimate_moments` count the spread of the records."""

    def moment_variance(self, mean: Array, second: Array) -> Array:
        """`n` times the variance of each estimated sum, at these first and second moments."""
        raise TypeError(f"mechanism {self.name} tells no moments")

    cell_share: float = 1.0
    """The share of the reports that tell of a given cell."""

    # Liars.

    @abstractmethod
    def reach(self, members: int) -> float:
        """The range of what one report adds to the estimated share of so many cells together, times n."""

    def moment_reach(self, n: int, counts: Integers) -> Array:
        """The most that one made-up report moves each estimated sum."""
        raise TypeError(f"mechanism {self.name} tells no moments")

    @abstractmethod
    def loudest(self, cells: Sequence[int], *, high: bool = True, against: Sequence[int] = ()) -> bytes:
        """The payload that speaks for these cells, and if it can ``against`` others, as loudly as is accepted."""

    # Simulating, by the device's own integers.

    @abstractmethod
    def perturb(self, items: Integers | MomentBatch, rng: np.random.Generator) -> Rows:
        """The payloads of many devices, shape (n, width); the law is that of the mechanism's ``perturb``."""

    def tally(self, holders: Integers, rng: np.random.Generator) -> Integers:
        """The counts after ``holders[i]`` devices have reported item i, drawn as a whole from their exact law."""
        raise TypeError(f"mechanism {self.name} takes no index")

    def tally_moments(self, moments: MomentBatch, holders: Integers, rng: np.random.Generator) -> Integers:
        """The counts after ``holders[i]`` devices have reported moment i, drawn as a whole from their exact law."""
        raise TypeError(f"mechanism {self.name} takes no moments")


@lru_cache(maxsize=4096)
def noise_variance(mechanism: AnyMechanism, frequency: float) -> float:
    """:meth:`~ldp_protocols.mechanisms.Mechanism.noise_variance`, cached: features share it, and fractions are slow."""
    return mechanism.noise_variance(frequency)


@lru_cache(maxsize=4096)
def sum_variance(mechanism: AnyMechanism, members: int, frequency: float) -> float:
    """:meth:`~ldp_protocols.mechanisms.Mechanism.sum_variance`, once."""
    return mechanism.sum_variance(members, frequency)


FEW: int = 64
"""Rows a run, on average, up to which adding up many runs together is the cheaper way."""

_LANES = 255
"""Rows of bits that add up in a byte without overflow."""


def indices(rows: Rows) -> Integers:
    """Unsigned little-endian integers of 1, 2 or 4 bytes."""
    return rows.view(f"<u{min(rows.shape[1], 4)}")[:, 0].astype(np.int64)


def in_words(rows: Rows) -> Rows:
    """The rows with zeros behind them, up to a multiple of eight bytes."""
    short = -rows.shape[1] % 8
    return np.pad(rows, ((0, 0), (0, short))) if short else rows


def count_positions(positions: Integers, starts: Integers, cells: Integers) -> list[Integers]:
    """Count how often each cell is named, run by run."""
    ends = np.cumsum(cells)
    firsts = ends - cells
    if len(starts) > 1:
        positions = positions + np.repeat(firsts, np.diff(starts, append=len(positions)))
    flat = np.bincount(positions, minlength=int(ends[-1])).astype(np.int64)
    return [flat[first:end] for first, end in zip(firsts.tolist(), ends.tolist(), strict=True)]


def add_columns(values: NDArray[np.generic], starts: Integers, cells: Integers) -> list[Integers]:
    """Sums of the first columns, run by run."""
    ends = [*starts.tolist()[1:], len(values)]
    if len(values) > FEW * len(starts):
        runs = zip(starts.tolist(), ends, cells.tolist(), strict=True)
        return [values[first:end, :size].sum(axis=0, dtype=np.int64) for first, end, size in runs]
    totals = np.add.reduceat(values, starts, axis=0, dtype=np.int64)
    return [total[:size] for total, size in zip(totals, cells.tolist(), strict=True)]


def add_bits(rows: Rows, starts: Integers, cells: Integers) -> list[Integers]:
    """Sums of the columns of bits, run by run; of long runs a byte at a time for as long as a byte holds them."""
    if len(rows) <= FEW * len(starts):
        return add_columns(np.unpackbits(rows, axis=1, bitorder="little"), starts, cells)
    ends = [*starts.tolist()[1:], len(rows)]
    return [_add_lanes(rows[a:b], size) for a, b, size in zip(starts.tolist(), ends, cells.tolist(), strict=True)]


def _add_lanes(rows: Rows, size: int) -> Integers:
    total = np.zeros(size, dtype=np.int64)
    step = _LANES * max(1, (1 << 20) // (_LANES * size))
    for start in range(0, len(rows), step):
        bits = np.unpackbits(rows[start : start + step], axis=1, count=size, bitorder="little")
        full = len(bits) // _LANES * _LANES
        lanes = bits[:full].reshape(-1, _LANES, size).sum(axis=1, dtype=np.uint8)
        total += lanes.sum(axis=0, dtype=np.int64)
        total += bits[full:].sum(axis=0, dtype=np.int64)
    return total


def has_padding(rows: Rows, domain_size: Limit) -> Flags:
    """Flag the rows with a bit set behind the last index of a bitmap."""
    used = domain_size & 7
    places = np.minimum(domain_size >> 3, rows.shape[1] - 1)
    last = rows[:, places] if np.ndim(places) == 0 else rows[np.arange(len(rows)), places]
    return np.right_shift(last, used).astype(np.bool_) & (np.asarray(used) > 0)


def bound_exponent(exponent: Fraction) -> Fraction:
    """Refuse an exponent beyond which ``exp_bounds`` bounds from one side only."""
    if exponent > MOST_EXPONENT:
        raise ValueError(f"the blanket of a noisy vector needs an epsilon of at most {2 * MOST_EXPONENT}")
    return exponent


MOST_EXPONENT: int = 64


def bits_blanket(p: Fraction, q: Fraction) -> Blanket:
    """With every bit set with probability q the law is Q, and mu_x(y) = Q(y) p / q where bit x is set,
    Q(y) (1 - p) / (1 - q) where not. So lo = Q (1 - p) / (1 - q), and bits x and x' are independent under Q.
    """
    mass = (1 - p) / (1 - q)
    return Blanket(p * (1 - q) / (q * (1 - p)), mass, mass * q * (1 - q), mass * q * q)
