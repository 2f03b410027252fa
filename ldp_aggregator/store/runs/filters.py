"""A Bloom filter whose bits for one id are all in one word (Putze, Sanders, Singler 2007), on whole arrays.

"Not in here" is always true; "perhaps in here" is wrong for about one id in 100, which costs a look at one page of the
file. Who chooses ids cannot choose which are wrongly held for known: a secret number goes into the hash.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.store.runs.keys import Keys, Words

BITS_PER_ID: Final = 12
BITS_SET: Final = 5
WORD_BITS: Final = 64

_MIX: Final = np.uint64(0xBF58476D1CE4E5B9)


class Hashes:
    """Ids, and what each secret makes of them: runs with one secret share the work."""

    def __init__(self, keys: Keys) -> None:
        self.keys = keys
        self._made: dict[int, tuple[NDArray[np.int64], Words, Words]] = {}

    def under(self, secret: int) -> tuple[NDArray[np.int64], Words, Words]:
        """The ids' positions in the order in which a filter is read, what chooses the word of each (a number below
        2^32), and its bits there.
        """
        if secret not in self._made:
            made = _mixed(self.keys, secret)
            order = np.argsort(made)  # A large filter read from its beginning to its end takes half the time.
            self._made[secret] = (order, *_spread(made[order]))
        return self._made[secret]


@dataclass(frozen=True)
class Filter:
    """``words`` of shape (filter_words(n),), and the secret number that ids are hashed with."""

    words: Words
    secret: int

    @classmethod
    def for_ids(cls, ids: int, secret: int) -> Filter:
        """One that holds nothing, and has room for so many ids."""
        return cls(np.zeros(filter_words(ids), dtype=np.uint64), secret)

    def add(self, keys: Keys) -> None:
        """Have more ids in it."""
        chosen, bits = _spread(_mixed(keys, self.secret))
        np.bitwise_or.at(self.words, _places(chosen, len(self.words)), bits)

    def may_hold(self, hashes: Hashes) -> NDArray[np.int64]:
        """Positions of the ids that are perhaps in here, in increasing order."""
        positions, chosen, bits = hashes.under(self.secret)
        # Every place is within the words: "clip" only spares the check.
        words = self.words.take(_places(chosen, len(self.words)), mode="clip")
        return np.sort(positions[(words & bits) == bits])


def filter_words(ids: int) -> int:
    """The number of words in a filter for so many ids."""
    return max(1, -(-ids * BITS_PER_ID // WORD_BITS))


def new_secret() -> int:
    """One for the runs of a campaign: they may all have the same, and are asked faster then."""
    return secrets.randbits(64)


def _mixed(keys: Keys, secret: int) -> Words:
    """Hash each id with the secret: all bits of the result depend on all of the id's."""
    made = (keys.high ^ np.uint64(secret)) * _MIX
    made ^= (made >> np.uint64(29)) ^ keys.low
    made *= _MIX
    made ^= made >> np.uint64(32)
    return made


def _spread(made: Words) -> tuple[Words, Words]:
    """The upper half, which chooses the word; and bits in it, chosen by five times six bits of the lower half."""
    bits = np.zeros(len(made), dtype=np.uint64)
    for step in range(BITS_SET):
        bits |= np.uint64(1) << ((made >> np.uint64(6 * step)) & np.uint64(63))
    return made >> np.uint64(32), bits


def _places(chosen: Words, words: int) -> NDArray[np.int64]:
    """Choose among so many words, evenly and in the order of what chooses."""
    return ((chosen * np.uint64(words)) >> np.uint64(32)).astype(np.int64)
