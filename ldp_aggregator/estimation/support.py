"""A mechanism's probabilities and variances as doubles, each computed once: features are asked alike, and fractions
take their time.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from protocols.mechanisms import AnyMechanism, PureMechanism


class Support(NamedTuple):
    """Probabilities that a cell is supported which is true (``p``), which is another (``q``); and that two cells both
    are, where one of them is true, and where none is.
    """

    p: float
    q: float
    one_true: float
    none_true: float


@lru_cache(maxsize=4096)
def support_of(mechanism: PureMechanism) -> Support:
    """:attr:`PureMechanism.p`, ``q`` and ``joint_support``."""
    return Support(float(mechanism.p), float(mechanism.q), *map(float, mechanism.joint_support))


@lru_cache(maxsize=4096)
def noise_variance(mechanism: AnyMechanism, frequency: float) -> float:
    """:meth:`Mechanism.noise_variance` of one cell."""
    noise: float = mechanism.noise_variance(frequency)
    return noise


@lru_cache(maxsize=4096)
def sum_variance(mechanism: PureMechanism, members: int, frequency: float) -> float:
    """:meth:`PureMechanism.sum_variance` of so many cells."""
    return mechanism.sum_variance(members, frequency)
