"""Payloads of reports to many questions, decoded and counted together.

:mod:`ldp_aggregator.counting.rows` works on one question at a time, and most of what it costs for a few reports is the
price of calling numpy. Uploads that arrive together are a few reports to each of many questions: here payloads of one
family of mechanisms, padded to whole words, are one array whatever their questions. Both ways give the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.counting.digest import digests
from ldp_aggregator.counting.parts import Sums
from ldp_aggregator.counting.rows import Rows, cells, coded, count, refusals
from protocols import Campaign
from protocols.mechanisms import DirectEncoding, NoisyVector, OneBit, SubsetSelection, UnaryEncoding

Numbers = NDArray[np.int64]

WORD_BYTES: Final = 8
FEW: Final = 64
"""Reports a question, on average, up to which counting many questions together is the cheaper way."""
MOST_LAYOUTS: Final = 64

_APART: Final = -1
"""The family of mechanisms that are counted question by question."""


@dataclass(frozen=True, eq=False)
class Layout:
    """A campaign's questions as arrays, one entry each. ``bound`` is the largest magnitude of a noisy cell, ``subset``
    the number of bits of a subset; -1 where there is none. Payloads of one ``size`` are padded to the longest of them.
    """

    campaign: Campaign
    family: Numbers
    width: Numbers
    words: Numbers
    size: Numbers
    domain: Numbers
    cells: Numbers
    bound: Numbers
    subset: Numbers


@dataclass(frozen=True)
class ById:
    """A campaign, hashed by its id alone."""

    campaign: Campaign

    def __hash__(self) -> int:
        return hash(self.campaign.id)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ById) and self.campaign.id == other.campaign.id


def layout_of(campaign: Campaign) -> Layout:
    """Laid out once for as long as a process is busy with few campaigns."""
    return _layout(ById(campaign))


@lru_cache(maxsize=MOST_LAYOUTS)
def _layout(key: ById) -> Layout:
    mechanisms = [question.mechanism for question in key.campaign.questions]
    width = np.array([mechanism.width for mechanism in mechanisms], dtype=np.int64)
    words = -(-width // WORD_BYTES)
    return Layout(
        campaign=key.campaign,
        family=np.array([_family(mechanism) for mechanism in mechanisms], dtype=np.int64),
        width=width,
        words=words,
        size=np.ceil(np.log2(words) / 2).astype(np.int64),  # Up to 1, 4, 16, 64, ... words.
        domain=np.array([mechanism.domain_size for mechanism in mechanisms], dtype=np.int64),
        cells=np.array([cells(question) for question in key.campaign.questions], dtype=np.int64),
        bound=np.array([getattr(mechanism, "bound", -1) for mechanism in mechanisms], dtype=np.int64),
        subset=np.array([getattr(mechanism, "subset_size", -1) for mechanism in mechanisms], dtype=np.int64),
    )


@dataclass(frozen=True)
class OneQuestion:
    """Reports to one question, ``places`` among all."""

    campaign: Campaign
    question: int
    places: slice
    rows: Rows

    def refusals(self) -> dict[int, str]:
        found = refusals(self.campaign.questions[self.question], self.rows)
        return {self.places.start + row: code for row, code in found.items()}

    def digests(self) -> NDArray[np.uint64]:
        return digests(self.question, self.rows)

    def sums(self, counted: NDArray[np.bool_]) -> Sums:
        chosen = counted[self.places]
        n = int(np.count_nonzero(chosen))
        if not n:
            return {}
        kept = self.rows if n == len(self.rows) else self.rows[chosen]
        return {self.question: (n, count(self.campaign.questions[self.question], kept))}


@dataclass(frozen=True)
class ManyQuestions:
    """Reports to questions of one family: payloads padded with zeros to whole words, questions increasing."""

    layout: Layout
    family: int
    places: Numbers
    questions: Numbers
    rows: Rows

    def refusals(self) -> dict[int, str]:
        places = self.places
        found: dict[int, str] = {}
        for code, flags in _FAMILIES[self.family].refuse(self.layout, self.questions, self.rows):
            found |= coded(code, flags, places)
        return found

    def digests(self) -> NDArray[np.uint64]:
        return digests(self.questions, self.rows, self.layout.words[self.questions])

    def sums(self, counted: NDArray[np.bool_]) -> Sums:
        chosen = counted[self.places]
        questions, rows = self.questions, self.rows
        if not chosen.all():
            questions, rows = questions[chosen], rows[chosen]
        return _FAMILIES[self.family].count(self.layout, questions, rows) if len(questions) else {}


Sheet = OneQuestion | ManyQuestions


def lay_out(campaign: Campaign, questions: Numbers, payloads: bytes) -> list[Sheet]:
    """Reports in increasing order of their ``questions``, one entry each, payloads concatenated in the same order."""
    layout = layout_of(campaign)
    widths = layout.width[questions]
    ends = np.cumsum(widths)
    found: list[Sheet] = []
    starts = starts_of(questions)
    families = layout.family[questions]
    if len(questions) > FEW * len(starts):
        families = np.full_like(families, _APART)
    kinds = families * (1 << 32) + layout.size[questions]
    apart = families == _APART
    for first, last in _stretches(questions, apart):
        text = payloads[ends[first] - widths[first] : ends[last - 1]]
        rows = np.frombuffer(text, dtype=np.uint8).reshape(last - first, -1)
        found.append(OneQuestion(campaign, int(questions[first]), slice(first, last), rows))
    if apart.all():
        return found
    for kind in sorted(set(kinds[~apart].tolist())):
        places = np.flatnonzero(kinds == kind)
        chosen = widths[places]
        rows = _padded(payloads, ends[places] - chosen, chosen, WORD_BYTES * int(layout.words[questions[places]].max()))
        found.append(ManyQuestions(layout, kind >> 32, places, questions[places], rows))
    return found


def starts_of(ordered: Numbers) -> Numbers:
    """Where each run of equal numbers begins."""
    begins = np.ones(len(ordered), dtype=np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=begins[1:])
    return begins.nonzero()[0]


def _stretches(questions: Numbers, wanted: NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
    """First and one beyond the last place of every question among those wanted."""
    if not wanted.any():
        return
    starts = starts_of(questions).tolist()
    for first, last in zip(starts, [*starts[1:], len(questions)], strict=True):
        if wanted[first]:
            yield first, last


def _padded(payloads: bytes, starts: Numbers, widths: Numbers, columns: int) -> Rows:
    """Stretches of the payloads as rows of the same length, zeros behind them."""
    # The last row may be looked for beyond the end.
    text = np.frombuffer(payloads + bytes(columns), dtype=np.uint8)
    reach = np.arange(columns)
    rows: Rows = text[starts[:, None] + reach]
    rows[reach >= widths[:, None]] = 0
    return rows


Refusal = tuple[str, NDArray[np.bool_]]


@dataclass(frozen=True)
class _Family:
    """How payloads of a family are checked and counted; a later refusal of a row stands for an earlier one."""

    mechanisms: tuple[type[Any], ...]
    refuse: Callable[[Layout, Numbers, Rows], Iterator[Refusal]]
    count: Callable[[Layout, Numbers, Rows], Sums]


def _refuse_indices(layout: Layout, questions: Numbers, rows: Rows) -> Iterator[Refusal]:
    yield "index-out-of-range", _indices(rows) >= layout.domain[questions]


def _refuse_onebit(layout: Layout, questions: Numbers, rows: Rows) -> Iterator[Refusal]:
    indices, bits = _index_and_bit(layout, questions, rows)
    yield "bit-out-of-range", bits > 1
    yield "index-out-of-range", indices >= layout.domain[questions]


def _refuse_bits(layout: Layout, questions: Numbers, rows: Rows) -> Iterator[Refusal]:
    subset = layout.subset[questions]
    sizes = np.bitwise_count(rows).sum(axis=1, dtype=np.int64)
    yield "wrong-subset-size", (subset >= 0) & (sizes != subset)
    last = rows[np.arange(len(rows)), layout.width[questions] - 1].astype(np.int64)
    used = layout.domain[questions] % 8
    yield "padding-bits-set", (used > 0) & ((last >> used) > 0)


def _refuse_vectors(layout: Layout, questions: Numbers, rows: Rows) -> Iterator[Refusal]:
    beyond = np.abs(rows.view("<i4").astype(np.int64)) > layout.bound[questions][:, None]
    yield "value-out-of-range", np.asarray(beyond.any(axis=1))


def _count_indices(layout: Layout, questions: Numbers, rows: Rows) -> Sums:
    return _counted_positions(layout, questions, _indices(rows))


def _count_onebit(layout: Layout, questions: Numbers, rows: Rows) -> Sums:
    indices, bits = _index_and_bit(layout, questions, rows)
    return _counted_positions(layout, questions, 2 * indices + bits)


def _count_bits(layout: Layout, questions: Numbers, rows: Rows) -> Sums:
    return _added_up(layout, questions, np.unpackbits(rows, axis=1, bitorder="little"))


def _count_vectors(layout: Layout, questions: Numbers, rows: Rows) -> Sums:
    return _added_up(layout, questions, rows.view("<i4"))


def _counted_positions(layout: Layout, questions: Numbers, positions: Numbers) -> Sums:
    """One vector for all questions that were asked, cut into theirs."""
    asked, _, numbers = _runs(questions)
    sizes = layout.cells[asked]
    ends = np.cumsum(sizes)
    flat = np.bincount(np.repeat(ends - sizes, numbers) + positions, minlength=int(ends[-1])).astype(np.int64)
    bounds = zip(asked.tolist(), numbers.tolist(), (ends - sizes).tolist(), ends.tolist(), strict=True)
    return {question: (n, flat[first:last]) for question, n, first, last in bounds}


def _added_up(layout: Layout, questions: Numbers, values: NDArray[Any]) -> Sums:
    """Sums of columns, question by question."""
    asked, starts, numbers = _runs(questions)
    totals = np.add.reduceat(values, starts, axis=0, dtype=np.int64)
    bounds = zip(asked.tolist(), numbers.tolist(), layout.cells[asked].tolist(), totals, strict=True)
    return {question: (n, total[:size]) for question, n, size, total in bounds}


def _runs(questions: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """The questions that occur, where each begins, how often."""
    starts = starts_of(questions)
    return questions[starts], starts, np.append(starts[1:], len(questions)) - starts


def _indices(rows: Rows) -> Numbers:
    """Little-endian integers of 1, 2 or 4 bytes, with zeros behind them."""
    return rows.view("<u4")[:, 0].astype(np.int64)


def _index_and_bit(layout: Layout, questions: Numbers, rows: Rows) -> tuple[Numbers, Numbers]:
    """The bit is the last byte of a payload, the index all before it."""
    before = layout.width[questions] - 1
    words = rows.view("<u8")[:, 0]
    shift = (8 * before).astype(np.uint64)
    return (words & ((np.uint64(1) << shift) - np.uint64(1))).astype(np.int64), (words >> shift).astype(np.int64)


_FAMILIES: Final = (
    _Family((DirectEncoding,), _refuse_indices, _count_indices),
    _Family((OneBit,), _refuse_onebit, _count_onebit),
    _Family((UnaryEncoding, SubsetSelection), _refuse_bits, _count_bits),
    _Family((NoisyVector,), _refuse_vectors, _count_vectors),
)


def _family(mechanism: Any) -> int:
    """Where a mechanism stands in the table; one that does not is counted question by question."""
    found = (number for number, family in enumerate(_FAMILIES) if isinstance(mechanism, family.mechanisms))
    return next(found, _APART)
