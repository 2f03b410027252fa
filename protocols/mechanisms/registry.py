"""The one table of mechanisms."""

from __future__ import annotations

from collections.abc import Mapping
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


def from_parameters(name: str, domain_size: int, parameters: Parameters) -> AnyMechanism:
    """The mechanism a document names. Raises DocumentError for unknown names and impossible numbers."""
    known: dict[str, type[Any]] = {**DISCRETE, **MOMENTS}
    if name not in known:
        raise DocumentError("unknown-mechanism", f"mechanism {name!r} is not one of {', '.join(sorted(known))}")
    made: AnyMechanism = known[name].from_parameters(domain_size, parameters)
    return made
