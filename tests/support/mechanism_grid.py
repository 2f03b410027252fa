"""Mechanisms over a grid of domains and epsilons, and the exact law of what their code sends."""

import math
from functools import partial

import pytest
from exact_coins import enumerate_outcomes

from ldp_protocols.mechanisms import DISCRETE, MOMENTS, PURE, NoisyVector, UnaryEncoding

VALUE_BITS = 52


DOMAINS = (2, 3, 4, 7, 8, 9, 16, 33, 64, 100, 255, 256, 257, 1000, 1024)
EPSILONS = (0.01, 0.05, 0.1, 0.3, 0.5, math.log(2), 1.0, 1.5, 2.0, 3.0, 4.0, 7.5, 10.0)
ALL = {**DISCRETE, **MOMENTS}
NOISY = {name: kind for name, kind in ALL.items() if issubclass(kind, NoisyVector)}
UNIT = 1 << VALUE_BITS


def thresholds(mechanism):
    """What the mechanism compares words with."""
    return (mechanism.true_bit, mechanism.other_bit) if isinstance(mechanism, UnaryEncoding) else ()


def exact_distributions(mechanism, upper=False):
    """Per item, the exact distribution of the payloads that ``perturb`` returns."""
    return [
        enumerate_outcomes(partial(mechanism.perturb, item), thresholds(mechanism), upper=upper)
        for item in range(mechanism.domain_size)
    ]


SMALL = [
    pytest.param(name, size, epsilon, id=f"{name}-{size}-{epsilon}")
    for name in PURE
    for size, epsilon in ((2, 0.5), (3, 2.0), (4, 1.0), (5, 0.1), (5, 4.0))
]
