"""Coins that keep the words they gave, so that a client in another language can be given the same."""

import random

from ldp_protocols.exact import Coins


class RecordingCoins(Coins):
    """Words from a script, or from a seed, kept as they are taken."""

    def __init__(self, seed, script=None):
        self._random, self._script, self.taken = random.Random(repr(seed)), script, []

    def words(self, count):
        if self._script is None:
            fresh = [self._random.getrandbits(64) for _ in range(count)]
        else:
            fresh = self._script[len(self.taken) : len(self.taken) + count]
        self.taken += fresh
        return fresh
