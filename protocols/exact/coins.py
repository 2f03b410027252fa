"""Exact randomness: integers from the operating system's CSPRNG, never a floating-point number.

Every random decision on the device is derived from 64-bit words, in the order written here, so that a port to another
language can be proven equal by scripting the words (see :class:`ScriptedCoins`).
"""

from __future__ import annotations

import os
import struct
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Final

WORD_BITS: Final = 64
ONE: Final = 1 << WORD_BITS
"""Probability one: a probability is an integer P and means P / 2**64."""


class Coins(ABC):
    """A source of independent, uniformly random 64-bit words and what is drawn from them."""

    @abstractmethod
    def words(self, count: int) -> Sequence[int]:
        """Return ``count`` words, each uniform on [0, 2**64)."""

    def bernoulli(self, probability: int) -> bool:
        """Return True with probability exactly ``probability / 2**64``; takes one word."""
        return self.words(1)[0] < probability

    def below(self, bound: int) -> int:
        """Return a uniform integer in [0, bound), by rejection.

        Takes ceil(b / 64) words, b the bit length of ``bound - 1``, least significant word first; keeps the low b bits;
        starts again while the result is not below ``bound``. A bound of 1 takes no word. Raises ValueError for less.
        """
        if bound < 1:
            raise ValueError(f"bound must be at least 1, not {bound}")
        bits = (bound - 1).bit_length()
        if not bits:
            return 0
        mask = (1 << bits) - 1
        count = -(-bits // WORD_BITS)
        while count == 1:  # nearly always, and quicker
            value = self.words(1)[0] & mask
            if value < bound:
                return value
        while True:
            value = 0
            for position, word in enumerate(self.words(count)):
                value |= word << (WORD_BITS * position)
            value &= mask
            if value < bound:
                return value

    def subset(self, population: int, size: int) -> set[int]:
        """Return a uniformly random ``size``-element subset of range(population) (Floyd's algorithm, exact)."""
        chosen: set[int] = set()
        for last in range(population - size, population):
            candidate = self.below(last + 1)
            chosen.add(last if candidate in chosen else candidate)
        return chosen


class SystemCoins(Coins):
    """The operating system's CSPRNG.

    Safety: nothing is buffered, so a fork or a restored process image can never replay coins.
    """

    def words(self, count: int) -> Sequence[int]:
        return struct.unpack(f"<{count}Q", os.urandom(8 * count))


class ScriptedCoins(Coins):
    """Words from a list, for tests and test vectors."""

    def __init__(self, script: Iterable[int]) -> None:
        self._script = list(script)
        self.taken = 0

    def words(self, count: int) -> Sequence[int]:
        """The next words. Raises LookupError when there are not so many."""
        taken = self._script[self.taken : self.taken + count]
        if len(taken) < count:
            raise LookupError(f"the script holds {len(self._script)} words and more were asked for")
        self.taken += count
        return taken


SYSTEM_COINS: Final = SystemCoins()
