"""A Bloom filter whose bits for one id are all in one word (Putze, Sanders, Singler 2007), on whole arrays.

"Not in here" is always true; "perhaps in here" is wrong for about one id in 300. Who chooses ids cannot choose which
are wrongly held for known: a secret number of each run goes into the hash, and a wrong "perhaps" costs one look.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.store.runs.keys import Keys, Words

BITS_PER_ID: Final = 16
BITS_SET: Final = 4
WORD_BITS: Final = 64

_MIX: Final = np.uint64(0xBF58476D1CE4E5B9)


@dataclass(frozen=True)
class Filter:
    """``words`` of shape (filter_words(n),), and the secret number that ids are hashed with."""

    words: Words
    secret: int

    def may_hold(self, keys: Keys) -> NDArray[np.int64]:
        """Positions of the ids that are perhaps in here."""
        places, bits = _hashed(keys, self.secret, len(self.words))
        return np.flatnonzero((self.words[places] & bits) == bits)

    def add(self, keys: Keys) -> None:
        places, bits = _hashed(keys, self.secret, len(self.words))
        np.bitwise_or.at(self.words, places, bits)


def filter_words(ids: int) -> int:
    """How many words a filter for so many ids has."""
    return max(1, -(-ids * BITS_PER_ID // WORD_BITS))


def empty_filter(ids: int, secret: int) -> Filter:
    return Filter(np.zeros(filter_words(ids), dtype=np.uint64), secret)


def _hashed(keys: Keys, secret: int, words: int) -> tuple[NDArray[np.int64], Words]:
    """The word of each id, and its bits there."""
    mixed = (keys.high ^ np.uint64(secret)) * _MIX
    mixed ^= (mixed >> np.uint64(29)) ^ keys.low
    mixed *= _MIX
    mixed ^= mixed >> np.uint64(32)
    # The upper half chooses the word, evenly; four times six bits of the lower half choose its bits.
    places = ((mixed >> np.uint64(32)) * np.uint64(words)) >> np.uint64(32)
    bits = np.zeros(len(mixed), dtype=np.uint64)
    for step in range(BITS_SET):
        bits |= np.uint64(1) << ((mixed >> np.uint64(6 * step)) & np.uint64(63))
    return places.astype(np.int64), bits
