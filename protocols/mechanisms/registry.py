"""The one table of mechanisms, and ``auto``: the choice of least predicted variance."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Final

from protocols.errors import DocumentError
from protocols.mechanisms.base import Mechanism, Moment, Parameters, PureMechanism
from protocols.mechanisms.de import DirectEncoding
from protocols.mechanisms.laplace import LaplaceVector
from protocols.mechanisms.onebit import OneBit
from protocols.mechanisms.oue import OptimalUnaryEncoding
from protocols.mechanisms.she import SummingHistogramEncoding
from protocols.mechanisms.ss import SubsetSelection
from protocols.mechanisms.sue import SymmetricUnaryEncoding
from protocols.mechanisms.the import ThresholdingHistogramEncoding

AnyMechanism = Mechanism[int] | Mechanism[Moment]

DISCRETE: Final[Mapping[str, type[Mechanism[int]]]] = {
    mechanism.name: mechanism
    for mechanism in (
        DirectEncoding,
        SubsetSelection,
        OptimalUnaryEncoding,
        SymmetricUnaryEncoding,
        ThresholdingHistogramEncoding,
        SummingHistogramEncoding,
    )
}
"""Mechanisms for an index, in the order in which ``auto`` prefers equals: shorter payloads first."""

PURE: Final[Mapping[str, type[PureMechanism]]] = {
    name: mechanism for name, mechanism in DISCRETE.items() if issubclass(mechanism, PureMechanism)
}
"""Those of :data:`DISCRETE` that support sets of indices; ``sign`` is asked with one of them."""

MOMENTS: Final[Mapping[str, type[Mechanism[Moment]]]] = {
    mechanism.name: mechanism for mechanism in (OneBit, LaplaceVector)
}
"""Mechanisms for a value that belongs to a class."""

SIGN: Final = "sign"
"""Not a mechanism: the value as one stochastic bit, asked with its class by the best discrete mechanism on 2 k
cells."""


def make_discrete(name: str, domain_size: int, epsilon: Fraction, theta: Fraction | None = None) -> Mechanism[int]:
    """The mechanism ``name`` (or, for ``auto``, the one of least variance at frequency 1/d) for an index below d."""
    if name != "auto":
        return DISCRETE[name].make(domain_size, epsilon, theta)
    candidates = [mechanism.make(domain_size, epsilon, theta) for mechanism in DISCRETE.values()]
    return min(candidates, key=lambda mechanism: mechanism.noise_variance(1 / domain_size))


def make_sign(classes: int, epsilon: Fraction) -> PureMechanism:
    """The pure mechanism whose bit contrasts have the least variance on the 2 k cells of (class, bit)."""
    cells = 2 * classes
    return min((mechanism.make(cells, epsilon) for mechanism in PURE.values()), key=_sign_variance)


def make_continuous(name: str, classes: int, epsilon: Fraction) -> AnyMechanism:
    """The mechanism for a value with its class: ``laplace``, ``onebit``, ``sign``, or ``auto`` by predicted variance.

    The prediction is for equal classes and values spread evenly over their bounds. There the stochastic bit of ``sign``
    adds P(class) (1 - E[value^2]) = 2 / (3 k), which decides at large epsilon.
    """
    if name == SIGN:
        return make_sign(classes, epsilon)
    if name != "auto":
        return MOMENTS[name].make(classes, epsilon)
    sign = make_sign(classes, epsilon)
    candidates: list[tuple[float, AnyMechanism]] = [(_sign_variance(sign) + 2 / (3 * classes), sign)]
    for mechanism in MOMENTS.values():
        made = mechanism.make(classes, epsilon)
        candidates.append((made.noise_variance(1 / classes), made))
    return min(candidates, key=lambda candidate: candidate[0])[1]


def from_parameters(name: str, domain_size: int, parameters: Parameters) -> AnyMechanism:
    """The mechanism a document names. Raises DocumentError for unknown names and impossible numbers."""
    known: dict[str, type[Any]] = {**DISCRETE, **MOMENTS}
    if name not in known:
        raise DocumentError("unknown-mechanism", f"mechanism {name!r} is not one of {', '.join(sorted(known))}")
    made: AnyMechanism = known[name].from_parameters(domain_size, parameters)
    return made


def _sign_variance(mechanism: PureMechanism) -> float:
    """N Var of one class's sum of signs, at equal classes and balanced bits."""
    share = 1 / mechanism.domain_size
    return mechanism.contrast_variance(share, share)
