"""The parts of a tally: what one commit adds to it, as bytes; the tally is their sum.

A part has an entry for every question it touches, one after the other, each a whole number of little-endian int64: the
question's index, n, how many counts there are, the bytes of each cell's number (0: all cells, in order) times 16 plus
the bytes of each count; then those numbers, increasing, and the counts. So a report adds about as many bytes as it has.
Appending a part never waits for another writer; when there are :data:`COMPACT_AT` parts, small ones are replaced by
their sum.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.counting.payloads import Sums, cells
from ldp_aggregator.counting.tally import Tally
from ldp_protocols import Campaign

COMPACT_AT: Final = 64
"""Parts of one campaign after which a writer adds some up. Parts cost the reader, compaction costs the writer."""

_WORD: Final = 8
_HEAD: Final = 4
"""Words before the numbers and counts of an entry."""
_SIZES: Final = (1, 2, 4, 8)


def encode_part(sums: Sums) -> bytes:
    """Questions in increasing order."""
    return b"".join(_pack(question, n, counts) for question, (n, counts) in sorted(sums.items()))


def add_part(tally: Tally, part: bytes) -> None:
    """Add one part. Raises ValueError for bytes that are no part of this campaign."""
    words = np.frombuffer(part, dtype="<i8")
    position = 0
    while position < len(words):
        question = int(words[position])
        if not 0 <= question < len(tally.campaign.counted):
            raise ValueError(f"a tally part names question {question}, which does not exist")
        counts, end = _unpack(words, position, question, cells(tally.campaign.counted[question]))
        tally.add(question, int(words[position + 1]), counts)
        position = end


def tally_of_parts(campaign: Campaign, parts: Iterable[bytes]) -> Tally:
    """The sum of all parts."""
    tally = Tally(campaign)
    for part in parts:
        add_part(tally, part)
    return tally


def part_of_tally(tally: Tally) -> bytes:
    """A tally as one part; questions without reports are left out."""
    return encode_part({q: (int(n), tally.counts[q]) for q, n in enumerate(tally.n) if n})


def compactable(sizes: Sequence[int]) -> int:
    """The number of the smallest parts to replace by their sum, given all their bytes in increasing order.

    A part joins when the smaller ones together are as large: so a byte is written again only when the part it is in
    about doubles, and a large tally is not written anew for every few small reports.
    """
    total = 0
    for position, size in enumerate(sizes):
        if position >= 2 and size > total:
            return position
        total += size
    return len(sizes)


def _pack(question: int, n: int, counts: NDArray[np.int64]) -> bytes:
    used = np.flatnonzero(counts)
    number_bytes, count_bytes = _least_bytes(len(counts) - 1, 0), _least_bytes(int(counts.max()), int(counts.min()))
    if len(used) * (number_bytes + count_bytes) < len(counts) * count_bytes:
        numbers, stored = used.astype(f"<u{number_bytes}").tobytes(), counts[used]
    else:
        numbers, stored, number_bytes = b"", counts, 0
    head = np.array([question, n, len(stored), number_bytes << 4 | count_bytes], dtype="<i8").tobytes()
    return head + _filled(numbers) + _filled(stored.astype(f"<i{count_bytes}").tobytes())


def _unpack(words: NDArray[np.int64], position: int, question: int, size: int) -> tuple[NDArray[np.int64], int]:
    """The counts of an entry and where it ends. Raises ValueError."""
    ended = ValueError(f"a tally part ends within question {question}")
    if position + _HEAD > len(words):
        raise ended
    length, widths = int(words[position + 2]), int(words[position + 3])
    number_bytes, count_bytes = widths >> 4, widths & 15
    if not 0 <= length <= size or count_bytes not in _SIZES or number_bytes not in (0, *_SIZES):
        raise ValueError(f"a tally part has an entry of question {question} that makes no sense")
    middle = position + _HEAD + -(-length * number_bytes // _WORD)
    end = middle + -(-length * count_bytes // _WORD)
    if end > len(words):
        raise ended
    counts = _read(words[middle:end], f"<i{count_bytes}", length).astype(np.int64)
    if number_bytes == 0:
        if length != size:
            raise ValueError(f"a tally part has {length} counts for question {question} of {size}")
        return counts, end
    numbers = _read(words[position + _HEAD : middle], f"<u{number_bytes}", length)
    if length and (numbers[-1] >= size or (numbers[1:] <= numbers[:-1]).any()):
        raise ValueError(f"a tally part has an entry of question {question} that makes no sense")
    vector = np.zeros(size, dtype=np.int64)
    vector[numbers.astype(np.int64)] = counts
    return vector, end


def _read(words: NDArray[np.int64], kind: str, number: int) -> NDArray[np.int64]:
    return np.frombuffer(words.tobytes(), dtype=kind, count=number) if number else np.zeros(0, dtype=np.int64)


def _least_bytes(most: int, least: int) -> int:
    """Bytes of the least signed integers that hold both; also enough for unsigned ones up to ``most``."""
    return next(size for size in _SIZES if -(1 << 8 * size - 1) <= least and most < 1 << 8 * size - 1)


def _filled(text: bytes) -> bytes:
    return text + bytes(-len(text) % _WORD)
