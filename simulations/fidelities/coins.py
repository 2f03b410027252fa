"""Seeded coins, for simulations only: a device takes its coins from the operating system."""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence

from protocols.exact import Coins


class SeededCoins(Coins):
    """Reproducible words from a Mersenne Twister; whoever knows the seed can undo every perturbation."""

    def __init__(self, seed: int | str) -> None:
        self._random = random.Random(seed)

    def words(self, count: int) -> Sequence[int]:
        return struct.unpack(f"<{count}Q", self._random.randbytes(8 * count))
