"""Ids and digests as columns of numbers, in increasing order of the id; those that no run has yet; and the filter in
front of a run: a Bloom filter whose bits for one id are all in one word (Putze, Sanders, Singler 2007).

"Not in here" is always true; "perhaps in here" is wrong for about one id in 240, which costs a look at one page of the
file. Who chooses ids cannot choose which are wrongly held for known: a secret number goes into the hash.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]

_GROWTH: Final = 4
"""An array of recent ids is merged with the newer ones once they have a quarter of its length."""

RECORD_BYTES: Final = 24
"""An id of 16 bytes, as it came, and its digest of 8, little-endian."""


@dataclass(frozen=True)
class Keys:
    """Sorted distinct ids as two big-endian halves, with the digest of each; three arrays of shape (n,)."""

    high: Words
    low: Words
    digest: Words

    def __len__(self) -> int:
        return len(self.high)

    def slice(self, start: int, stop: int) -> Keys:
        return Keys(self.high[start:stop], self.low[start:stop], self.digest[start:stop])

    def find(self, wanted: Keys) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Positions in ``wanted`` of the ids that are here, and where they are."""
        if not len(self) or not len(wanted):
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        places = np.searchsorted(self.high, wanted.high)
        places = np.where(places == len(self), 0, places)
        halves = np.flatnonzero(self.high[places] == wanted.high)
        places = places[halves]
        wrong = np.flatnonzero(self.low[places] != wanted.low[halves])
        if len(wrong):
            # Another id with the same first half: nobody meets one but who makes them.
            for one in wrong:
                places[one] = self._among_equals(int(places[one]), wanted.low[halves[one]])
            matched = places >= 0
            halves, places = halves[matched], places[matched]
        return halves, places

    def _among_equals(self, start: int, low: np.uint64) -> int:
        """Find an id among those with its first half, the first of which is at ``start``; -1 for nowhere."""
        stop = int(np.searchsorted(self.high, self.high[start], side="right"))
        place = start + int(np.searchsorted(self.low[start:stop], low))
        return place if place < stop and self.low[place] == low else -1


def keys_of(records: bytes) -> Keys:
    """Records of ids in increasing order, one after the other, as columns."""
    columns = np.frombuffer(records, dtype="<u8").reshape(-1, 3)
    return Keys(columns[:, 0].byteswap(), columns[:, 1].byteswap(), columns[:, 2].copy())


def joined(parts: Sequence[Keys]) -> Keys:
    """Parts that follow each other, as one."""
    if len(parts) == 1:
        return parts[0]
    return Keys(*(np.concatenate([getattr(part, name) for part in parts]) for name in ("high", "low", "digest")))


def merged(parts: list[Keys]) -> Keys:
    """The union of parts that share no id."""
    if len(parts) == 1:
        return parts[0]
    # One column after another: what is merged is large, and each column that waits for its turn would be there twice.
    high = np.concatenate([part.high for part in parts])
    order = np.argsort(high, kind="stable")  # It finds what is sorted already, and merges.
    ordered = high[order]
    if (ordered[1:] == ordered[:-1]).any():
        order = np.lexsort((np.concatenate([part.low for part in parts]), high))
        ordered = high[order]
    del high
    low = np.concatenate([part.low for part in parts])[order]
    return Keys(ordered, low, np.concatenate([part.digest for part in parts])[order])


class UnsortedIds:
    """Ids that no run has yet, in a few sorted arrays (Bentley, Saxe 1980: the logarithmic method).

    What is added is not in it yet.
    """

    def __init__(self) -> None:
        self._arrays: list[Keys] = []

    def __len__(self) -> int:
        return sum(map(len, self._arrays))

    def add(self, keys: Keys) -> None:
        if not len(keys):
            return
        newer = [keys]
        while self._arrays and len(self._arrays[-1]) <= _GROWTH * sum(map(len, newer)):
            newer.append(self._arrays.pop())
        self._arrays.append(merged(newer))

    def find(self, wanted: Keys) -> list[tuple[NDArray[np.int64], NDArray[np.uint64]]]:
        """Positions in ``wanted`` of the ids that are here, and their digests; a pair for each array."""
        found = []
        for array in self._arrays:
            positions, places = array.find(wanted)
            if len(positions):
                found.append((positions, array.digest[places]))
        return found

    def all(self) -> Keys:
        """Everything, as one array; any thread may ask while nothing is added."""
        if not self._arrays:
            empty = np.zeros(0, dtype=np.uint64)
            return Keys(empty, empty, empty)
        return merged(self._arrays)


BITS_PER_ID: Final = 16
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
