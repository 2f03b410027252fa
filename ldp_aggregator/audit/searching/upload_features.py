"""Everything that is read off an upload as one integer, by somebody who knows no mechanism.

Single bytes, bits counted, order, checksums, words as integers and as floating-point numbers with the fineness of their
last digit, remainders; and, because what two parts tell together neither need tell alone, exclusive ors and
differences: of bytes, of an answer with its id, of answers that are equally wide.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np

from ldp_aggregator.audit.asking.observations import Bytes, Flags, Numbers, Table, hashed
from ldp_aggregator.audit.asking.people import spread

MOST_BYTES: Final = 160
"""Bytes of an answer that are looked at one by one."""

_PAIRED: Final = 8
"""Bytes that are looked at in pairs."""

_BLOCK_PAIRS: Final = 16
_BINS: Final = 16
_REMAINDERS: Final = (3, 5, 7, 11, 13)
_MOST_VALUES: Final = 2048
"""Answers that take no more values are looked at as a whole."""


@dataclass(frozen=True)
class Column:
    """``codes`` in [0, values), shape (m,), of the table's rows. ``block``: read off that block's payload alone;
    ``side``: off nothing that an answer may change.
    """

    name: str
    codes: Numbers
    values: int
    block: int | None = None
    side: bool = False


def columns_of(table: Table, chooses: Flags) -> Iterator[Column]:
    """Every column of a table. What a column is depends on the rows that ``chooses`` flags, shape (m,), alone, so that
    the others may test what these choose.
    """
    blocks = table.shape.blocks
    for number, block in enumerate(blocks):
        alone = number if len(blocks) > 1 else None
        prefix = f"answer {number}: " if len(blocks) > 1 else ""
        payload, ids = table.payloads[:, block.payload], table.ids[:, block.ids]
        for name, codes, values in _answer(payload, chooses):
            yield Column(prefix + name, codes, values, block=alone)
        for name, codes, values in _identifier(ids, closely=number == 0):
            yield Column(f"{prefix}id: {name}", codes, values, side=True)
        for name, codes, values in _crossed(ids, payload, chooses):
            yield Column(f"{prefix}id and answer: {name}", codes, values)
    for one, other in spread(list(combinations(range(len(blocks)), 2)), _BLOCK_PAIRS):
        first, second = (table.payloads[:, blocks[number].payload] for number in (one, other))
        for name, codes, values in _together(first, second, chooses):
            yield Column(f"answers {one} and {other}: {name}", codes, values)
        first, second = (table.ids[:, blocks[number].ids] for number in (one, other))
        for name, codes, values in _together(first[:, :4], second[:, :4], chooses):
            yield Column(f"ids {one} and {other}: {name}", codes, values, side=True)


Named = tuple[str, Numbers, int]


def _answer(rows: Bytes, chooses: Flags) -> Iterator[Named]:
    width = rows.shape[1]
    for place in range(min(width, MOST_BYTES)):
        yield f"byte {place}", rows[:, place].astype(np.int64), 256
    if not width:
        return
    yield from _sums(rows)
    if width > 1:
        every = hashed(rows)
        known = np.unique(every[chooses])
        if 0 < len(known) <= _MOST_VALUES:
            at = np.searchsorted(known, every)
            at[known[np.minimum(at, len(known) - 1)] != every] = len(known)
            yield "all of it", at, len(known) + 1
        ascending = np.asarray((rows[:, 1:] >= rows[:, :-1]).all(axis=1), dtype=np.int64)
        yield "ascending order of the bytes", ascending, 2
        yield "place of the largest byte", np.asarray(rows.argmax(axis=1), dtype=np.int64), width
        yield from _pairs_of_bytes(rows)
    if width % 4 == 0:
        yield from _words(rows, chooses)
    if width % 8 == 0:
        for place in range(min(width // 8, MOST_BYTES)):
            yield f"fineness of double {place}", *_fineness(rows, place)


def _identifier(rows: Bytes, closely: bool) -> Iterator[Named]:
    for place in range(min(rows.shape[1], 32)):
        yield f"byte {place}", rows[:, place].astype(np.int64), 256
    if rows.shape[1]:
        yield from _sums(rows)
    if rows.shape[1] and closely:
        yield from _pairs_of_bytes(rows)
        for modulus in _REMAINDERS:
            yield f"remainder by {modulus}", _remainder(rows, modulus), modulus
            yield f"remainder by {modulus}, read backwards", _remainder(rows[:, ::-1], modulus), modulus


def _sums(rows: Bytes) -> Iterator[Named]:
    bits: Numbers = np.bitwise_count(rows).sum(axis=1, dtype=np.int64)
    yield "number of set bits", bits, 8 * rows.shape[1] + 1
    yield "parity of the set bits", bits % 2, 2
    yield "sum of the bytes", rows.sum(axis=1, dtype=np.int64) % 256, 256
    yield "exclusive or of the bytes", np.asarray(np.bitwise_xor.reduce(rows, axis=1), dtype=np.int64), 256


def _pairs_of_bytes(rows: Bytes) -> Iterator[Named]:
    for one, other in list(combinations(range(min(rows.shape[1], _PAIRED)), 2)):
        first, second = rows[:, one], rows[:, other]
        yield f"exclusive or of bytes {one} and {other}", (first ^ second).astype(np.int64), 256
        yield f"difference of bytes {one} and {other}", (first - second).astype(np.int64), 256


def _crossed(ids: Bytes, payload: Bytes, chooses: Flags) -> Iterator[Named]:
    """An id that is the key to its answer."""
    width = min(ids.shape[1], payload.shape[1])
    if width:
        yield from _together(ids[:, :width], payload[:, :width], chooses)
        for place in range(width, ids.shape[1]):
            yield f"exclusive or of bytes {place} and 0", (ids[:, place] ^ payload[:, 0]).astype(np.int64), 256


def _together(first: Bytes, second: Bytes, chooses: Flags) -> Iterator[Named]:
    """Two parts that are equally wide."""
    if first.shape[1] != second.shape[1] or not first.shape[1]:
        return
    both = first ^ second
    bits = np.bitwise_count(both).sum(axis=1, dtype=np.int64)
    yield "set bits of the exclusive or", bits, 8 * both.shape[1] + 1
    yield "parity of the exclusive or", bits % 2, 2
    for place in range(min(both.shape[1], 8)):
        yield f"exclusive or of byte {place}", both[:, place].astype(np.int64), 256
        yield f"difference of byte {place}", (first[:, place] - second[:, place]).astype(np.int64), 256
    if first.shape[1] % 4 == 0:
        words = [np.ascontiguousarray(rows).view("<i4").astype(np.int64) for rows in (first, second)]
        for place in range(min(words[0].shape[1], 8)):
            yield f"difference of word {place}", _cut(words[0][:, place] - words[1][:, place], chooses), 2 * _BINS + 1


def _words(rows: Bytes, chooses: Flags) -> Iterator[Named]:
    """32-bit words: their range, cut where the reports lie, and the lowest set bit."""
    words = np.ascontiguousarray(rows).view("<i4").astype(np.int64)
    for place in range(min(words.shape[1], MOST_BYTES)):
        word = words[:, place]
        yield f"range of word {place}", _cut(word, chooses), 2 * _BINS + 1
        lowest = np.log2(np.maximum(word & -word, 1)).astype(np.int64) + (word != 0)
        yield f"lowest set bit of word {place}", lowest, 34


def _cut(numbers: Numbers, chooses: Flags) -> Numbers:
    """Which of 32 ranges, more of them in the tails. The cuts come from all people's reports together."""
    if not chooses.any():
        return np.zeros(len(numbers), dtype=np.int64)
    tails = np.array([1e-4, 1e-3, 1e-2])
    shares = np.concatenate([tails, np.linspace(0, 1, _BINS + 1)[1:-1], 1 - tails[::-1]])
    cuts = np.unique(np.quantile(numbers[chooses], shares, method="lower"))
    return np.searchsorted(cuts, numbers).astype(np.int64)


def _fineness(rows: Bytes, place: int) -> tuple[Numbers, int]:
    """Exponent of the last digit of a double that is not zero: a sum is no finer than its coarsest summand."""
    bits = np.ascontiguousarray(rows).view("<u8")[:, place]
    exponent = ((bits >> np.uint64(52)) & np.uint64(0x7FF)).astype(np.int64)
    mantissa = ((bits & np.uint64((1 << 52) - 1)) | np.uint64(1 << 52)).astype(np.int64)
    return exponent + np.log2((mantissa & -mantissa).astype(np.float64)).astype(np.int64), 0x800 + 53


def _remainder(rows: Bytes, modulus: int) -> Numbers:
    """Of the little-endian number."""
    rest = np.zeros(len(rows), dtype=np.int64)
    for place in range(rows.shape[1] - 1, -1, -1):
        rest = (rest * 256 + rows[:, place]) % modulus
    return rest
