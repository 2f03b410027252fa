"""Sources of coins that planted clients use in place of the operating system's."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence

from protocols import Coins


class TwisterCoins(Coins):
    """Words of a Mersenne Twister, which was never made to keep a secret."""

    def __init__(self, twister: random.Random) -> None:
        self.twister = twister

    def words(self, count: int) -> Sequence[int]:
        return [self.twister.getrandbits(64) for _ in range(count)]


class HashCoins(Coins):
    """SHA-256 of a seed and a counter: as good as its seed."""

    def __init__(self, seed: bytes) -> None:
        self._seed, self._counter = seed, 0

    def words(self, count: int) -> Sequence[int]:
        return [self._word() for _ in range(count)]

    def _word(self) -> int:
        self._counter += 1
        return int.from_bytes(hashlib.sha256(self._seed + self._counter.to_bytes(8, "big")).digest()[:8], "big")
