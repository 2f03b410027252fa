"""Local randomisers: parameters, exact loss, perturbation, estimator's numbers; and their one table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ldp_protocols.errors import DocumentError
from ldp_protocols.mechanisms.base import VALUE_BITS as VALUE_BITS
from ldp_protocols.mechanisms.base import Mechanism as Mechanism
from ldp_protocols.mechanisms.base import Moment as Moment
from ldp_protocols.mechanisms.base import Parameters
from ldp_protocols.mechanisms.base import PureMechanism as PureMechanism
from ldp_protocols.mechanisms.base import WorstCase as WorstCase
from ldp_protocols.mechanisms.noisy_vector import LaplaceVector as LaplaceVector
from ldp_protocols.mechanisms.noisy_vector import NoisyVector as NoisyVector
from ldp_protocols.mechanisms.noisy_vector import SummingHistogramEncoding as SummingHistogramEncoding
from ldp_protocols.mechanisms.onebit import OneBit as OneBit
from ldp_protocols.mechanisms.pure import DirectEncoding as DirectEncoding
from ldp_protocols.mechanisms.pure import OptimalUnaryEncoding as OptimalUnaryEncoding
from ldp_protocols.mechanisms.pure import SubsetSelection as SubsetSelection
from ldp_protocols.mechanisms.pure import SymmetricUnaryEncoding as SymmetricUnaryEncoding
from ldp_protocols.mechanisms.pure import ThresholdingHistogramEncoding as ThresholdingHistogramEncoding
from ldp_protocols.mechanisms.pure import UnaryEncoding as UnaryEncoding

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
    classes: dict[str, type[Any]] = {**DISCRETE, **MOMENTS}
    if name not in classes:
        raise DocumentError("unknown-mechanism", f"mechanism {name!r} is not one of {', '.join(sorted(classes))}")
    made: AnyMechanism = classes[name].from_parameters(domain_size, parameters)
    return made
