"""Where a trainer's coins come from: the operating system, or a seed for experiments that must repeat."""

from __future__ import annotations

import struct
import warnings
from collections.abc import Sequence

import numpy as np

from protocols.coins import SYSTEM_COINS, Coins

RandomState = int | np.random.Generator | np.random.RandomState | None


class PrivacyWarning(UserWarning):
    """The result protects less than its epsilon says; the message says why."""


class SeededCoins(Coins):
    """Reproducible words; whoever knows the seed can take the noise off again."""

    def __init__(self, generator: np.random.Generator) -> None:
        self._generator = generator

    def words(self, count: int) -> Sequence[int]:
        return struct.unpack(f"<{count}Q", self._generator.bytes(8 * count))


def coins_of(random_state: RandomState) -> Coins:
    """The operating system's CSPRNG for None; anything else is a seed, and warns that its output must stay inside."""
    if random_state is None:
        return SYSTEM_COINS
    warnings.warn(
        "noise from random_state can be taken off by whoever knows the seed: for experiments, never for release",
        PrivacyWarning,
        stacklevel=3,
    )
    if isinstance(random_state, np.random.RandomState):
        random_state = int(random_state.randint(2**31))
    return SeededCoins(np.random.default_rng(random_state))
