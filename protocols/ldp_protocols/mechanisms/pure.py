"""The mechanisms whose reports support a set of indices: sent as an index, or as a bitmap of fixed width, least
significant bit first, padding bits zero.

Yilmaz et al. 2019, section 3.2; Wang et al. 2017, section 4.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar, Final

from ldp_protocols.errors import DocumentError, payload_error
from ldp_protocols.exact import ONE, Coins, exp_bounds, probability_down, probability_up
from ldp_protocols.mechanisms.base import (
    Parameters,
    PureMechanism,
    WorstCase,
    read_integer,
    read_names,
    read_probability,
)

if TYPE_CHECKING:
    from typing import Self

_THETA_STEPS: Final = 1000


@dataclass(frozen=True, slots=True)
class DirectEncoding(PureMechanism):
    """The generalised randomised response: send the true index with probability p, else any other one. p = e /
    (e + d - 1), q = 1 / (e + d - 1); ``keep`` / 2**64 is p.
    """

    name: ClassVar[str] = "de"
    domain_size: int
    keep: int

    @classmethod
    def make(cls, domain_size: int, epsilon: Fraction) -> Self:
        e, _ = exp_bounds(epsilon)
        return cls(domain_size, probability_down(e / (e + domain_size - 1)))

    @classmethod
    def from_parameters(cls, domain_size: int, parameters: Parameters) -> Self:
        read_names(parameters, "p")
        mechanism = cls(domain_size, read_probability(parameters, "p"))
        if mechanism.p <= mechanism.q:
            raise DocumentError("invalid-parameters", "p must be above 1 / domain_size, or reports carry no signal")
        return mechanism

    def parameters(self) -> dict[str, int | str]:
        return {"p": str(self.keep)}

    def worst_case(self) -> WorstCase:
        """For an output y, P(y | x) is p for x = y and (1 - p) / (d - 1) for every other x: two values, one ratio."""
        return WorstCase(max(self.p / self.q, self.q / self.p))

    @property
    def p(self) -> Fraction:
        return Fraction(self.keep, ONE)

    @property
    def q(self) -> Fraction:
        return Fraction(ONE - self.keep, ONE * (self.domain_size - 1))

    @property
    def joint_support(self) -> tuple[Fraction, Fraction]:
        return Fraction(0), Fraction(0)

    @property
    def width(self) -> int:
        return index_width(self.domain_size)

    def perturb(self, item: int, coins: Coins) -> bytes:
        index = item
        if not coins.bernoulli(self.keep):
            other = coins.below(self.domain_size - 1)
            index = other if other < index else other + 1
        return index.to_bytes(self.width, "little")

    def check(self, payload: bytes) -> None:
        if int.from_bytes(payload, "little") >= self.domain_size:
            raise payload_error("index-out-of-range")

    def support(self, payload: bytes) -> Collection[int]:
        self.check(payload)
        return (int.from_bytes(payload, "little"),)


@dataclass(frozen=True, slots=True)
class SubsetSelection(PureMechanism):
    """A random subset of size w that contains the true index with probability p = w e / (w e + d - w); w = 1 is direct
    encoding (Ye, Barg 2018; Wang et al. 2016). The subset travels as a bitmap, so that no order of its elements can
    leak. ``subset_size`` is w; ``include`` / 2**64 is p.
    """

    name: ClassVar[str] = "ss"
    domain_size: int
    subset_size: int
    include: int

    @classmethod
    def make(cls, domain_size: int, epsilon: Fraction) -> Self:
        """`w` is the floor or the ceiling of d / (e + 1), at least 1, whichever has less variance at frequency 1/d."""
        e, _ = exp_bounds(epsilon)
        best = domain_size / (float(e) + 1)
        sizes = sorted({max(1, math.floor(best)), max(1, min(math.ceil(best), domain_size - 1))})
        candidates = [cls(domain_size, w, probability_down(w * e / (w * e + domain_size - w))) for w in sizes]
        return min(candidates, key=lambda candidate: candidate.noise_variance(1 / domain_size))

    @classmethod
    def from_parameters(cls, domain_size: int, parameters: Parameters) -> Self:
        read_names(parameters, "w", "p")
        w, include = read_integer(parameters, "w"), read_probability(parameters, "p")
        if w >= domain_size:
            raise DocumentError("invalid-parameters", f"w must be below the domain size {domain_size}, not {w}")
        mechanism = cls(domain_size, w, include)
        if mechanism.p <= mechanism.q:
            raise DocumentError("invalid-parameters", "p must be above w / domain_size, or reports carry no signal")
        return mechanism

    def parameters(self) -> dict[str, int | str]:
        return {"w": self.subset_size, "p": str(self.include)}

    def worst_case(self) -> WorstCase:
        """A subset S of size w has P(S | x) = p / C(d - 1, w - 1) if it contains x, the other members being uniform,
        and (1 - p) / C(d - 1, w) if it does not: two values. C(d - 1, w) / C(d - 1, w - 1) = (d - w) / w.
        """
        ratio = self.p / (1 - self.p) * Fraction(self.domain_size - self.subset_size, self.subset_size)
        return WorstCase(max(ratio, 1 / ratio))

    @property
    def p(self) -> Fraction:
        return Fraction(self.include, ONE)

    @property
    def q(self) -> Fraction:
        """The remaining w - 1 (true index in) or w (true index out) members are spread evenly over d - 1 others."""
        return (self.subset_size - self.p) / (self.domain_size - 1)

    @property
    def joint_support(self) -> tuple[Fraction, Fraction]:
        d, w, p = self.domain_size, self.subset_size, self.p
        one_true = p * (w - 1) / (d - 1)
        if d == 2:
            return one_true, Fraction(0)
        none_true = (w - 1) * (p * (w - 2) + (1 - p) * w) / ((d - 1) * (d - 2))
        return one_true, none_true

    @property
    def width(self) -> int:
        return _bitmap_width(self.domain_size)

    def perturb(self, item: int, coins: Coins) -> bytes:
        """One word decides whether the true index is in; the others are a uniform subset of the rest."""
        included = coins.bernoulli(self.include)
        others = coins.subset(self.domain_size - 1, self.subset_size - included)
        members = [other if other < item else other + 1 for other in others]
        if included:
            members.append(item)
        return pack_indices(members, self.domain_size)

    def check(self, payload: bytes) -> None:
        if count_indices(payload, self.domain_size) != self.subset_size:
            raise payload_error("wrong-subset-size")

    def support(self, payload: bytes) -> Collection[int]:
        self.check(payload)
        return tuple(unpack_indices(payload, self.domain_size))


@dataclass(frozen=True, slots=True)
class UnaryEncoding(PureMechanism):
    """One bit per index, each perturbed on its own: the true index's bit is set with probability p = ``true_bit`` /
    2**64, every other bit with probability q = ``other_bit`` / 2**64. SUE, OUE and THE differ only in their p and q.
    """

    domain_size: int
    true_bit: int
    other_bit: int

    @classmethod
    def from_parameters(cls, domain_size: int, parameters: Parameters) -> Self:
        read_names(parameters, "p", "q")
        p, q = read_probability(parameters, "p"), read_probability(parameters, "q")
        if p <= q:
            raise DocumentError("invalid-parameters", "p must be above q, or reports carry no signal")
        return cls(domain_size, p, q)

    def parameters(self) -> dict[str, int | str]:
        return {"p": str(self.true_bit), "q": str(self.other_bit)}

    def worst_case(self) -> WorstCase:
        """The bits are independent, and the laws of two items x and x' differ in bits x and x' only. All other factors
        cancel; the two that are left are largest, each on its own, at bit x set (p / q) and bit x' clear
        ((1 - q) / (1 - p)), which one output has together. p > q, so that both factors are above 1.
        """
        p, q = self.p, self.q
        return WorstCase(p / q * ((1 - q) / (1 - p)))

    @property
    def p(self) -> Fraction:
        return Fraction(self.true_bit, ONE)

    @property
    def q(self) -> Fraction:
        return Fraction(self.other_bit, ONE)

    @property
    def joint_support(self) -> tuple[Fraction, Fraction]:
        return self.p * self.q, self.q**2

    @property
    def width(self) -> int:
        return _bitmap_width(self.domain_size)

    def perturb(self, item: int, coins: Coins) -> bytes:
        """One word per bit, in index order."""
        words = coins.words(self.domain_size)
        flags = [word < self.other_bit for word in words]
        flags[item] = words[item] < self.true_bit
        return pack_flags(flags, self.domain_size)

    def check(self, payload: bytes) -> None:
        count_indices(payload, self.domain_size)

    def support(self, payload: bytes) -> Collection[int]:
        return tuple(unpack_indices(payload, self.domain_size))


@dataclass(frozen=True, slots=True)
class SymmetricUnaryEncoding(UnaryEncoding):
    """Basic RAPPOR: each bit is told truly with the same probability, whether it is set or not. p = h / (h + 1),
    q = 1 / (h + 1), with h = exp(epsilon / 2).
    """

    name: ClassVar[str] = "sue"

    @classmethod
    def make(cls, domain_size: int, epsilon: Fraction) -> Self:
        h, _ = exp_bounds(epsilon / 2)
        return cls(domain_size, probability_down(h / (h + 1)), probability_up(1 / (h + 1)))


@dataclass(frozen=True, slots=True)
class OptimalUnaryEncoding(UnaryEncoding):
    """The unary encoding of least variance at small frequencies: the true bit is a fair coin, so that the many zero
    bits are told as truly as possible. p = 1/2, q = 1 / (e + 1).
    """

    name: ClassVar[str] = "oue"

    @classmethod
    def make(cls, domain_size: int, epsilon: Fraction) -> Self:
        e, _ = exp_bounds(epsilon)
        return cls(domain_size, ONE // 2, probability_up(1 / (e + 1)))


@dataclass(frozen=True, slots=True)
class ThresholdingHistogramEncoding(UnaryEncoding):
    """Bits of a thresholded noisy histogram: one-hot plus Lap(2 / epsilon), and of each cell only whether it exceeds
    theta.

    The threshold is applied on the device: the noise of the cells is independent, so the bits are drawn directly, with
    the probabilities that the noise would give them: p = 1 - exp(epsilon (theta - 1) / 2) / 2 and
    q = exp(-epsilon theta / 2) / 2. The realised loss is below epsilon by more than rounding, because a threshold
    forgets; OUE spends what THE leaves.
    """

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


def index_width(domain_size: int) -> int:
    """Bytes of an index on the wire: the least of 1, 2 and 4 that holds ``domain_size - 1``."""
    return 1 if domain_size <= 1 << 8 else 2 if domain_size <= 1 << 16 else 4


def _bitmap_width(domain_size: int) -> int:
    """Bytes that hold ``domain_size`` bits."""
    return -(-domain_size // 8)


def pack_flags(flags: Iterable[bool], domain_size: int) -> bytes:
    """One flag per index, in order, to a bitmap."""
    digits = bytes([49 if flag else 48 for flag in flags])
    return int(digits[::-1], 2).to_bytes(_bitmap_width(domain_size), "little")


def pack_indices(indices: Iterable[int], domain_size: int) -> bytes:
    """A set of indices to a bitmap."""
    bitmap = bytearray(_bitmap_width(domain_size))
    for index in indices:
        bitmap[index >> 3] |= 1 << (index & 7)
    return bytes(bitmap)


def count_indices(payload: bytes, domain_size: int) -> int:
    """Count the bits that are set; refuses set padding bits."""
    bits = int.from_bytes(payload, "little")
    if bits >> domain_size:
        raise payload_error("padding-bits-set")
    return bits.bit_count()


def unpack_indices(payload: bytes, domain_size: int) -> Iterator[int]:
    """The indices whose bit is set, ascending; refuses set padding bits."""
    count_indices(payload, domain_size)
    return (8 * place + bit for place, byte in enumerate(payload) if byte for bit in range(8) if byte >> bit & 1)
