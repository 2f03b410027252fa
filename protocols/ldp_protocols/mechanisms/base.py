"""The offer of every mechanism, and the pure-protocol estimator's two numbers p and q.

Wang, Blocki, Li, Jha (USENIX Security 2017): a pure protocol reports a set of supported indices; the true index is
supported with probability p, any other with probability q, and ``(count - n q) / (p - q)`` estimates a count without
bias. p and q here are the rational numbers that the device's integer coins realise, so the estimator stays unbiased.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Final, Generic, NamedTuple, TypeVar

from ldp_protocols.errors import DocumentError
from ldp_protocols.exact import ONE, Coins, exp_bounds, float_up, log_upper
from ldp_protocols.fields import describe, integral

if TYPE_CHECKING:
    from typing import Self

Parameters = Mapping[str, int | str]
"""A mechanism's numbers in a document; integers of 64 bits or more are decimal strings, as RFC 7493 (I-JSON) asks."""


VALUE_BITS: Final = 52
"""A value in [-1, 1] is an integer V and means V / 2**52: every double in that range, cut to a multiple of 2**-52."""


class Moment(NamedTuple):
    """A value that belongs to one cell (the class): the vector that is ``value`` there and 0 elsewhere."""

    cell: int
    value: int
    """In units of 2**-52, from -2**52 to 2**52."""


Item = TypeVar("Item", int, Moment)

_LARGEST_EXPONENT: Final = 64
"""Up to here ``exp_bounds`` bounds exp from both sides; beyond, logarithms are compared."""


@dataclass(frozen=True, slots=True)
class WorstCase:
    """The largest likelihood ratio of two items over all reports, ``ratio * exp(exponent)``, one factor trivial."""

    ratio: Fraction
    exponent: Fraction = Fraction(0)

    @property
    def loss(self) -> Fraction:
        """An upper bound of its logarithm, at most 1e-50 above it."""
        return self.exponent + log_upper(self.ratio)

    def stays_within(self, epsilon: Fraction) -> bool:
        """True where the ratio is certainly at most exp(epsilon)."""
        rest = epsilon - self.exponent
        if abs(rest) > _LARGEST_EXPONENT:
            return log_upper(self.ratio) <= rest
        return self.ratio <= (exp_bounds(rest)[0] if rest else 1)


class Mechanism(ABC, Generic[Item]):
    """A local randomiser of items (an index, or a :class:`Moment`) over ``domain_size`` cells, its parameters fixed."""

    name: ClassVar[str]
    domain_size: int

    waste: ClassVar[str] = (
        "the integers of the document allow no loss nearer to epsilon, or its author chose smaller ones"
    )
    """Why the loss may stay clearly below epsilon."""

    @classmethod
    @abstractmethod
    def make(cls, domain_size: int, epsilon: Fraction) -> Self:
        """The mechanism of least variance whose realised loss is at most ``epsilon``."""

    @classmethod
    @abstractmethod
    def from_parameters(cls, domain_size: int, parameters: Parameters) -> Self:
        """The mechanism a document names. Raises DocumentError for numbers that define none."""

    @abstractmethod
    def parameters(self) -> dict[str, int | str]:
        """The numbers a document carries, the inverse of :meth:`from_parameters`."""

    @abstractmethod
    def worst_case(self) -> WorstCase:
        """The largest likelihood ratio over all inputs and outputs, with its proof."""

    def loss(self) -> Fraction:
        """A rational upper bound (within 1e-50) of the logarithm of :meth:`worst_case`."""
        return self.worst_case().loss

    @property
    def realised_epsilon(self) -> float:
        """:meth:`loss`, rounded up to a double."""
        return float_up(self.loss())

    @property
    @abstractmethod
    def width(self) -> int:
        """Bytes of every payload; depends on the domain only."""

    @abstractmethod
    def perturb(self, item: Item, coins: Coins) -> bytes:
        """Randomise ``item`` (its cell in range(domain_size)) into a payload."""

    @abstractmethod
    def check(self, payload: bytes) -> None:
        """Raise DocumentError unless a device can have sent this payload (of the right width)."""

    @abstractmethod
    def noise_variance(self, frequency: float) -> float:
        """`n` times the variance that the mechanism adds to the estimate of a cell of this true ``frequency``."""

    def sum_variance(self, cells: int, frequency: float) -> float:
        """`n` times the noise variance of the sum of ``cells`` cells of ``frequency`` in all, here independent."""
        return cells * self.noise_variance(frequency / cells)

    def signs_variance(self, cells: int, frequency: float) -> float:
        """`n` times the noise variance of a sum of ``cells`` estimates that hold ``frequency``, half negated."""
        return self.sum_variance(cells, frequency)

    def contrast_variance(self, first: float, second: float) -> float:
        """`n` times the noise variance of (estimate of one cell - estimate of another), at their true frequencies."""
        return self.signs_variance(2, first + second)


class PureMechanism(Mechanism[int]):
    """A mechanism whose reports support a set of indices."""

    @property
    @abstractmethod
    def p(self) -> Fraction:
        """Probability that the true index is supported."""

    @property
    @abstractmethod
    def q(self) -> Fraction:
        """Probability that a given other index is supported."""

    @property
    @abstractmethod
    def joint_support(self) -> tuple[Fraction, Fraction]:
        """Probability that two given indices are both supported: where one of them is true, and where neither is."""

    @abstractmethod
    def support(self, payload: bytes) -> Collection[int]:
        """The indices a payload supports, ascending."""

    def noise_variance(self, frequency: float) -> float:
        """The variance `q (1 - q) / (p - q)^2 + f (1 - p - q) / (p - q)` (Wang et al. 2017, Equation 3)."""
        p, q = float(self.p), float(self.q)
        if p <= q:
            return math.inf
        return q * (1 - q) / (p - q) ** 2 + frequency * (1 - p - q) / (p - q)

    def signs_variance(self, cells: int, frequency: float) -> float:
        one_true, none_true = self._covariances
        alone = (cells - 1) * self.noise_variance(0.0) + self.noise_variance(frequency)
        return alone - cells * none_true - 2 * frequency * (one_true - none_true)

    def sum_variance(self, cells: int, frequency: float) -> float:
        one_true, none_true = self._covariances
        pairs, pairs_with_true = cells * (cells - 1), 2 * (cells - 1) * frequency
        alone = (cells - 1) * self.noise_variance(0.0) + self.noise_variance(frequency)
        return alone + pairs_with_true * one_true + (pairs - pairs_with_true) * none_true

    @property
    def _covariances(self) -> tuple[float, float]:
        """Covariance of two cells' contributions to their estimates: where one of them is true, and where neither."""
        p, q = self.p, self.q
        one_true, none_true = self.joint_support
        scale = (p - q) ** 2
        return float((one_true - p * q) / scale), float((none_true - q * q) / scale)


def read_probability(parameters: Parameters, name: str) -> int:
    """A probability from a document: an integer P with 0 < P < 2**64, written as a decimal string."""
    value = read_integer(parameters, name)
    if value >= ONE:
        raise DocumentError("invalid-parameters", f"probability {name} must be below 2**64, not {value}")
    return value


def read_integer(parameters: Parameters, name: str) -> int:
    """A positive integer from a document: a JSON number below 2**53, or canonical decimal digits."""
    value = parameters.get(name)
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 40:
        number = int(value)
        canonical = str(number) == value
    else:
        number = integral(value) or 0
        canonical = True
    if number < 1 or not canonical:
        raise DocumentError("invalid-parameters", f"parameter {name} must be a positive integer, not {describe(value)}")
    return number


def read_names(parameters: Parameters, *names: str) -> None:
    """Refuse parameters other than ``names``."""
    if set(parameters) != set(names):
        wanted = ", ".join(sorted(names))
        raise DocumentError("invalid-parameters", f"parameters must be exactly {wanted}; got {describe(parameters)}")
