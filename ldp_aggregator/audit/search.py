"""The search for events that tell two people apart, in the raw bytes, by somebody who knows no mechanism.

Half of the trials choose the events, the other half tests them, so that choosing costs no confidence. Every column that
can be read off a payload is a candidate: single bytes, bits counted, order, words as integers and as floating-point
numbers with the fineness of their last digit, and two scores that weigh all bytes, or all words, together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.audit.bounds import loss_bound
from ldp_aggregator.audit.observations import Observations, Shape

Rows = NDArray[np.uint8]
Column = NDArray[np.int64]
Reader = Callable[[Rows], Column]
"""Reads one integer off every payload."""

CHOSEN: Final = 3
"""Events that the first half sends to the second."""

_LEAST_COUNT: Final = 20
"""A value seen less often than this tells nothing that would be seen again."""

_MOST_COLUMNS: Final = 256
_BINS: Final = 16
_SCORE_STEP: Final = 0.25
_ALPHA: Final = 1e-3


@dataclass(frozen=True)
class Event:
    """Uploads of ``shape`` whose column takes one of ``values``; without a column, all uploads of the shape."""

    shape: Shape
    name: str
    column: Reader | None
    values: NDArray[np.int64]

    def count(self, seen: Observations, half: int) -> int:
        rows = seen.rows(self.shape, half)
        if self.column is None or not len(rows):
            return len(rows)
        return int(np.isin(self.column(rows), self.values).sum())


def find_events(one: Observations, other: Observations) -> list[Event]:
    """The events that, by the even trials, are best at telling ``one`` from ``other``."""
    trials = one.half_trials(0), other.half_trials(0)
    found: list[tuple[float, Event]] = []
    for shape in dict.fromkeys((*one.shapes, *other.shapes)):
        mine, theirs = one.rows(shape, 0), other.rows(shape, 0)
        whole = float(loss_bound(len(mine), trials[0], len(theirs), trials[1], _ALPHA))
        found.append((whole, Event(shape, "these questions are answered, in so many bytes", None, np.array([]))))
        if len(mine) and mine.shape[1]:
            for name, column in _columns(mine, theirs):
                bound, values = _best_values(column(mine), column(theirs), trials)
                found.append((bound, Event(shape, name, column, values)))
    found.sort(key=lambda scored: -scored[0])
    return [event for _, event in found[:CHOSEN]]


def _best_values(mine: Column, theirs: Column, trials: tuple[int, int]) -> tuple[float, NDArray[np.int64]]:
    """The set of values, among those that begin with the most telling one, of the highest lower bound."""
    values, inverse = np.unique(np.concatenate([mine, theirs]), return_inverse=True)
    ones = np.bincount(inverse[: len(mine)], minlength=len(values))
    others = np.bincount(inverse[len(mine) :], minlength=len(values))
    often = np.flatnonzero(ones >= _LEAST_COUNT)
    if not len(often):
        return -np.inf, values[:0]
    order = often[np.argsort(-(ones[often] + 0.5) / (others[often] + 0.5), kind="stable")]
    bounds = loss_bound(np.cumsum(ones[order]), trials[0], np.cumsum(others[order]), trials[1], _ALPHA)
    best = int(np.argmax(bounds))
    return float(bounds[best]), values[order[: best + 1]]


def _columns(mine: Rows, theirs: Rows) -> Iterator[tuple[str, Reader]]:
    """Every way to read one integer off a payload. Columns that are fitted are fitted on these rows."""
    width = mine.shape[1]
    for place in range(min(width, _MOST_COLUMNS)):
        yield f"byte {place}", partial(_byte, place)
    yield "number of set bits", _set_bits
    yield "parity of the set bits", _parity
    if width > 1:
        yield "ascending order of the bytes", _ascending
        yield "place of the largest byte", _largest
    if width % 4 == 0:
        yield from _word_columns(mine, theirs)
    if width % 8 == 0:
        for place in range(min(width // 8, _MOST_COLUMNS)):
            yield f"fineness of double {place}", partial(_fineness, place)
    yield "score of all bytes", _fit_score([partial(_byte, place) for place in range(width)], mine, theirs)


def _word_columns(mine: Rows, theirs: Rows) -> Iterator[tuple[str, Reader]]:
    """32-bit words: the fineness of the integer, and its range; the ranges are cut where the reports lie."""
    both = np.concatenate([mine, theirs])
    ranges: list[Reader] = []
    for place in range(min(mine.shape[1] // 4, _MOST_COLUMNS)):
        cuts = np.unique(np.quantile(_words(both)[:, place], np.linspace(0, 1, _BINS + 1)[1:-1], method="lower"))
        yield f"range of word {place}", (ranged := partial(_range, place, cuts))
        yield f"lowest set bit of word {place}", partial(_lowest_bit, place)
        ranges.append(ranged)
    yield "score of all words", _fit_score(ranges, mine, theirs)


def _byte(place: int, rows: Rows) -> Column:
    return rows[:, place].astype(np.int64)


def _set_bits(rows: Rows) -> Column:
    return np.asarray(np.bitwise_count(rows).sum(axis=1, dtype=np.int64))


def _parity(rows: Rows) -> Column:
    return _set_bits(rows) % 2


def _ascending(rows: Rows) -> Column:
    return np.asarray((rows[:, 1:] >= rows[:, :-1]).all(axis=1)).astype(np.int64)


def _largest(rows: Rows) -> Column:
    return np.asarray(rows.argmax(axis=1)).astype(np.int64)


def _words(rows: Rows) -> NDArray[np.int32]:
    return np.ascontiguousarray(rows).view("<i4")


def _range(place: int, cuts: NDArray[Any], rows: Rows) -> Column:
    return np.searchsorted(cuts, _words(rows)[:, place], side="left").astype(np.int64)


def _lowest_bit(place: int, rows: Rows) -> Column:
    word = _words(rows)[:, place].astype(np.int64)
    return np.asarray(word & -word)


def _fineness(place: int, rows: Rows) -> Column:
    """Exponent of the last digit of a double that is not zero: a sum is no finer than its coarsest summand."""
    bits = np.ascontiguousarray(rows).view("<u8")[:, place]
    exponent = ((bits >> np.uint64(52)) & np.uint64(0x7FF)).astype(np.int64)
    mantissa = ((bits & np.uint64((1 << 52) - 1)) | np.uint64(1 << 52)).astype(np.int64)
    return exponent + np.log2((mantissa & -mantissa).astype(np.float64)).astype(np.int64)


def _fit_score(columns: Sequence[Reader], mine: Rows, theirs: Rows) -> Reader:
    """Naive Bayes over columns: the sum of ln(share among mine / share among theirs), in steps."""
    tables: list[tuple[Column, NDArray[np.float64]]] = []
    for column in columns:
        values, inverse = np.unique(np.concatenate([column(mine), column(theirs)]), return_inverse=True)
        ones = np.bincount(inverse[: len(mine)], minlength=len(values)) + 1.0
        others = np.bincount(inverse[len(mine) :], minlength=len(values)) + 1.0
        tables.append((values, np.log(ones / ones.sum()) - np.log(others / others.sum())))

    def score(rows: Rows) -> Column:
        total = np.zeros(len(rows))
        for column, (values, weights) in zip(columns, tables, strict=True):
            read = column(rows)
            at = np.minimum(np.searchsorted(values, read), len(values) - 1)
            total += np.where(values[at] == read, weights[at], 0.0)
        return np.round(total / _SCORE_STEP).astype(np.int64)

    return score
