"""Local randomisers, one file each: parameters, exact loss, perturbation, and the numbers its estimator needs."""

from protocols.mechanisms.base import VALUE_BITS, Mechanism, Moment, PureMechanism, WorstCase
from protocols.mechanisms.de import DirectEncoding
from protocols.mechanisms.laplace import LaplaceVector
from protocols.mechanisms.noisy_vector import NoisyVector
from protocols.mechanisms.onebit import OneBit
from protocols.mechanisms.oue import OptimalUnaryEncoding
from protocols.mechanisms.registry import (
    DISCRETE,
    MOMENTS,
    PURE,
    AnyMechanism,
    from_parameters,
)
from protocols.mechanisms.she import SummingHistogramEncoding
from protocols.mechanisms.ss import SubsetSelection
from protocols.mechanisms.sue import SymmetricUnaryEncoding
from protocols.mechanisms.the import ThresholdingHistogramEncoding
from protocols.mechanisms.unary import UnaryEncoding

__all__ = [
    "DISCRETE",
    "MOMENTS",
    "PURE",
    "VALUE_BITS",
    "AnyMechanism",
    "DirectEncoding",
    "LaplaceVector",
    "Mechanism",
    "Moment",
    "NoisyVector",
    "OneBit",
    "OptimalUnaryEncoding",
    "PureMechanism",
    "SubsetSelection",
    "SummingHistogramEncoding",
    "SymmetricUnaryEncoding",
    "ThresholdingHistogramEncoding",
    "UnaryEncoding",
    "WorstCase",
    "from_parameters",
]
