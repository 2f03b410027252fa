"""The parts of a tally: what one commit adds to it, as bytes; the tally is their sum.

A part has an entry for every question it touches, one after the other, each a whole number of little-endian int64: the
question's index, n, how many counts there are, the bytes of each cell's number (0: all cells, in order) times 16 plus
the bytes of each count; then those numbers, increasing, and the counts. So a report adds about as many bytes as it has.
Appending a part never waits for another writer; when there are :data:`COMPACT_AT` parts, small ones are replaced by
their sum.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from struct import Struct
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.counting.payloads import Sums
from ldp_aggregator.counting.tally import Tally
from ldp_protocols import Campaign

COMPACT_AT: Final = 64
"""Parts of one campaign after which a writer adds some up. Parts cost the reader, compaction costs the writer."""

_WORD: Final = 8
_HEAD: Final = Struct("<4q")
"""Question, n, how many counts, widths."""
_SIZES: Final = (1, 2, 4, 8)
_BYTES_FOR: Final = [next(size for size in _SIZES if bits < 8 * size) for bits in range(64)]
"""Bytes of a signed integer whose magnitude has so many bits."""
_COUNTS: Final[Mapping[int, np.dtype[np.integer[Any]]]] = {size: np.dtype(f"<i{size}") for size in _SIZES}
_NUMBERS: Final[Mapping[int, np.dtype[np.integer[Any]]]] = {size: np.dtype(f"<u{size}") for size in _SIZES}


def encode_part(sums: Sums) -> bytes:
    """Questions in increasing order, of which a commit may touch many, each with a few counts: arrays are made once."""
    if not sums:
        return b""
    questions = sorted(sums)
    counts = np.concatenate([sums[question][1] for question in questions])
    ends = np.cumsum([len(sums[question][1]) for question in questions])
    starts = np.concatenate(([0], ends[:-1]))
    highest, lowest = np.maximum.reduceat(counts, starts).tolist(), np.minimum.reduceat(counts, starts).tolist()
    used = np.flatnonzero(counts)
    numbers, stored = used - starts[np.searchsorted(ends, used, side="right")], counts[used]
    cuts = [0, *np.searchsorted(used, ends).tolist()]
    of_all, of_used, of_numbers = (
        _stretches(values, types) for values, types in ((counts, _COUNTS), (stored, _COUNTS), (numbers, _NUMBERS))
    )
    part = []
    for place, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        number_bytes, count_bytes = _least_bytes(end - start - 1, 0), _least_bytes(highest[place], lowest[place])
        question, first, last = questions[place], cuts[place], cuts[place + 1]
        n = sums[question][0]
        if (last - first) * (number_bytes + count_bytes) < (end - start) * count_bytes:
            part.append(_HEAD.pack(question, n, last - first, number_bytes << 4 | count_bytes))
            part.append(of_numbers(number_bytes, first, last))
            part.append(of_used(count_bytes, first, last))
        else:
            part.append(_HEAD.pack(question, n, end - start, count_bytes))
            part.append(of_all(count_bytes, start, end))
    return b"".join(part)


def add_part(tally: Tally, part: bytes) -> None:
    """Add one part. Raises ValueError for bytes that are no part of this campaign."""
    if len(part) % _WORD:
        raise ValueError(f"a tally part has a size of whole words, not of {len(part)} bytes")
    position = 0
    while position < len(part):
        position = _add_entry(tally, part, position)


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


def _add_entry(tally: Tally, part: bytes, position: int) -> int:
    """Add the entry that begins here, and say where it ends. Raises ValueError."""
    question = int.from_bytes(part[position : position + _WORD], "little", signed=True)
    if not 0 <= question < len(tally.counts):
        raise ValueError(f"a tally part names question {question}, which does not exist")
    start = position + _HEAD.size
    if start > len(part):
        raise _ended(question)
    _, n, length, widths = _HEAD.unpack_from(part, position)
    counts, number_bytes, count_bytes = tally.counts[question], widths >> 4, widths & 15
    size = len(counts)
    if not 0 <= length <= size or count_bytes not in _COUNTS or number_bytes not in (0, *_SIZES):
        raise _senseless(question)
    middle = start + _whole(length * number_bytes)
    end = middle + _whole(length * count_bytes)
    if end > len(part):
        raise _ended(question)
    stored = np.frombuffer(part, _COUNTS[count_bytes], length, middle)
    if number_bytes == 0:
        if length != size:
            raise ValueError(f"a tally part has {length} counts for question {question} of {size}")
        counts += stored
    elif length:
        numbers = np.frombuffer(part, _NUMBERS[number_bytes], length, start)
        if numbers[-1] >= size or np.less_equal(numbers[1:], numbers[:-1]).any():
            raise _senseless(question)
        counts[numbers] += stored
    tally.n[question] += n
    return end


def _ended(question: int) -> ValueError:
    return ValueError(f"a tally part ends within question {question}")


def _senseless(question: int) -> ValueError:
    return ValueError(f"a tally part has an entry of question {question} that makes no sense")


def _stretches(
    values: NDArray[np.int64], types: Mapping[int, np.dtype[np.integer[Any]]]
) -> Callable[[int, int, int], bytes]:
    """A function of a width and two places that packs the values between these; of each width all are packed once."""
    packed = cache(lambda size: values.astype(types[size]).tobytes())
    return lambda size, first, last: _filled(packed(size)[first * size : last * size])


def _least_bytes(most: int, least: int) -> int:
    """Bytes of the least signed integers that hold both; also enough for unsigned ones up to ``most``."""
    bits = max(most.bit_length(), (-1 - least).bit_length() if least < 0 else 0)
    return _BYTES_FOR[bits]


def _filled(text: bytes) -> bytes:
    return text.ljust(_whole(len(text)), b"\0")


def _whole(size: int) -> int:
    """The bytes of whole words that so many bytes need."""
    return -(-size // _WORD) * _WORD
