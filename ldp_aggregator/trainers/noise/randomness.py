"""The source of a trainer's coins: the operating system, or a seed for experiments that must repeat."""

from __future__ import annotations

import hashlib
import os
import struct
import warnings
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from protocols.exact import SYSTEM_COINS, Coins, SystemCoins

RandomState = int | np.random.Generator | np.random.RandomState | None


class PrivacyWarning(UserWarning):
    """The result protects less than its epsilon says; the message says why."""


class SeededCoins(Coins):
    """Reproducible words; whoever knows the seed can take the noise off again."""

    def __init__(self, generator: np.random.Generator) -> None:
        self._generator = generator

    def words(self, count: int) -> Sequence[int]:
        return struct.unpack(f"<{count}Q", self.packed(count))

    def packed(self, count: int) -> bytes:
        """The same words, little-endian."""
        return self._generator.bytes(8 * count)


def word_array(coins: Coins, count: int) -> NDArray[np.uint64]:
    """``coins.words`` as an array; without a detour over Python's integers where the coins are known."""
    if type(coins) is SystemCoins:
        return np.frombuffer(os.urandom(8 * count), dtype="<u8")
    if isinstance(coins, SeededCoins):
        return np.frombuffer(coins.packed(count), dtype="<u8")
    return np.array(coins.words(count), dtype=np.uint64)


_LEARNED: Final[set[bytes]] = set()
"""Digests of the rows that this process has learned from; they leave it no more than the rows do."""


def warn_of_second_fit(rows: NDArray[Any]) -> None:
    """Warn where this process has learned from the same rows before, and no accountant adds the two epsilons up.

    ``rows`` tells tables apart: the classes of all rows in their order, statistics, or points.
    """
    digest = hashlib.sha256(rows.tobytes()).digest()
    if digest in _LEARNED:
        warnings.warn(
            "this process has learned from these rows before: the epsilons of all fits add up. Give them one "
            "accountant=Accountant(total), which refuses what is too much",
            PrivacyWarning,
            stacklevel=4,
        )
    _LEARNED.add(digest)


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
