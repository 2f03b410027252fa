"""How a pure mechanism supports cells, as doubles: its fractions take their time, and features are asked alike."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from protocols.mechanisms import PureMechanism


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
    """:attr:`PureMechanism.p`, ``q`` and ``joint_support``, computed once for all equal mechanisms."""
    return Support(float(mechanism.p), float(mechanism.q), *map(float, mechanism.joint_support))
