"""From payloads to sums: the one way to check and count them, for one report to each of many questions as for a million
to one.

Payloads of questions with mechanisms of one name, padded with zeros to whole words, are one array whatever their
questions; where there are many reports to a question, its payloads are an array of their own, as they came. How rows of
such an array are checked and added up is the mechanism's business (:mod:`ldp_aggregator.mechanisms`).

Beside each id are eight bytes that tell a retry (same report) from a second answer (other bytes under the same id): a
mixing function on whole arrays, not a cryptographic hash. Who forges a collision has made a duplicate, which is not
counted either way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.mechanisms import analysis_of
from ldp_aggregator.mechanisms.analysis import FEW, Analysis, Flags, Integers, Limit, Rows
from ldp_protocols import Campaign, Question

DIGEST_BYTES: Final = 8

_STEP: Final = np.uint64(0x9E3779B97F4A7C15)
_FIRST: Final = np.uint64(0xBF58476D1CE4E5B9)
_SECOND: Final = np.uint64(0x94D049BB133111EB)

Sums = dict[int, tuple[int, Integers]]
"""Question index to (n, counts)."""

WORD_BYTES: Final = 8
MOST_LAYOUTS: Final = 64


def digests(question: int | Integers, rows: Rows, words: Integers | None = None) -> NDArray[np.uint64]:
    """One number per payload of a question, or of a question for each; another question or another payload gives
    another number, but for a chance of 2**-64. Zeros that fill up the last eight bytes change nothing;
    zeros beyond do not where ``words`` says how many eight bytes each row has.
    """
    count, width = rows.shape
    columns = -(-width // 8)
    if width % 8:
        padded = np.zeros((count, 8 * columns), dtype=np.uint8)
        padded[:, :width] = rows
        rows = padded
    values = np.ascontiguousarray(rows).view("<u8").astype(np.uint64)
    places = np.arange(1, columns + 1, dtype=np.uint64) * _STEP
    mixed = _mix(values + places)
    if words is not None:
        mixed[np.arange(columns) >= words[:, None]] = 0
    total = mixed.sum(axis=1, dtype=np.uint64)
    return _mix(total + np.atleast_1d(np.asarray(question, dtype=np.uint64)) * _SECOND)


def _mix(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of splitmix64 (Steele, Lea, Flood 2014), a bijection of 64 bits."""
    values = (values ^ (values >> np.uint64(30))) * _FIRST
    values = (values ^ (values >> np.uint64(27))) * _SECOND
    return values ^ (values >> np.uint64(31))


def payload_rows(question: Question, payloads: bytes) -> Rows:
    """Concatenated payloads as an array of shape (n, width), without a copy."""
    return np.frombuffer(payloads, dtype=np.uint8).reshape(-1, question.mechanism.width)


def cells(question: Question) -> int:
    """Length of the question's tally vector: its domain size, or for ``onebit`` a zero and a one count per cell."""
    return analysis_of(question.mechanism).cells


def count(question: Question, rows: Rows) -> Integers:
    """The sum of reports to one question, shape (cells(question),). Rows must be free of :func:`refusals`."""
    analysis = analysis_of(question.mechanism)
    if not len(rows):
        return np.zeros(analysis.cells, dtype=np.int64)
    rows = np.ascontiguousarray(rows)
    (total,) = analysis.sums(rows, np.zeros(1, np.int64), np.array([analysis.cells]), analysis.limits)
    return total


def refusals(question: Question, rows: Rows) -> dict[int, str]:
    """Row position to code (see ``ldp_protocols.errors.PAYLOAD_CODES``) of the rows that no device can have sent."""
    analysis = analysis_of(question.mechanism)
    return _coded(analysis, np.ascontiguousarray(rows), analysis.limits, np.arange(len(rows)))


def _coded(
    analysis: Analysis[Any] | type[Analysis[Any]], rows: Rows, limits: Sequence[Limit], places: Integers
) -> dict[int, str]:
    found: dict[int, str] = {}
    for code, flags in analysis.refusals(rows, limits):
        if flags.any():
            found |= dict.fromkeys(places[flags].tolist(), code)
    return found


@dataclass(frozen=True)
class CampaignKey:
    """A campaign, hashed by its id alone."""

    campaign: Campaign

    def __hash__(self) -> int:
        return hash(self.campaign.id)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, CampaignKey)
            and self.campaign.id == other.campaign.id
            and len(self.campaign.counted) == len(other.campaign.counted)
        )


@dataclass(frozen=True, eq=False)
class Layout:
    """A campaign's questions as arrays, one entry each. ``kind`` is a place in ``kinds``; payloads of one kind and
    ``size`` are padded to the longest of them. ``limits`` has a row for each of a mechanism's limits.
    """

    kinds: tuple[type[Analysis[Any]], ...]
    kind: Integers
    width: Integers
    words: Integers
    size: Integers
    cells: Integers
    limits: Integers


@lru_cache(maxsize=MOST_LAYOUTS)
def layout_of(key: CampaignKey) -> Layout:
    """Laid out once for as long as a process is busy with few campaigns."""
    analyses = [analysis_of(question.mechanism) for question in key.campaign.counted]
    kinds = tuple(dict.fromkeys(type(analysis) for analysis in analyses))
    width = np.array([analysis.mechanism.width for analysis in analyses], dtype=np.int64)
    words = -(-width // WORD_BYTES)
    limits = np.zeros((max(len(analysis.limits) for analysis in analyses), len(analyses)), dtype=np.int64)
    for place, analysis in enumerate(analyses):
        limits[: len(analysis.limits), place] = analysis.limits
    return Layout(
        kinds=kinds,
        kind=np.array([kinds.index(type(analysis)) for analysis in analyses], dtype=np.int64),
        width=width,
        words=words,
        size=np.ceil(np.log2(words) / 2).astype(np.int64),  # Up to 1, 4, 16, 64, ... words.
        cells=np.array([analysis.cells for analysis in analyses], dtype=np.int64),
        limits=limits,
    )


@dataclass(frozen=True, eq=False)
class PayloadMatrix:
    """Reports with mechanisms of one name, ``places`` among all; questions increase.

    If all answer one question, ``rows`` are its payloads; otherwise zeros pad them to whole words.
    """

    layout: Layout
    places: Integers
    questions: Integers
    rows: Rows

    @property
    def analysis(self) -> type[Analysis[Any]]:
        return self.layout.kinds[int(self.layout.kind[self.questions[0]])]

    def _limits(self, questions: Integers) -> Sequence[Limit]:
        first = int(questions[0])
        if first == questions[-1]:
            return [int(limit) for limit in self.layout.limits[:, first]]
        return list(self.layout.limits[:, questions])

    def refusals(self) -> dict[int, str]:
        """Place to code of the reports that no device can have sent."""
        return _coded(self.analysis, self.rows, self._limits(self.questions), self.places)

    def digests(self) -> NDArray[np.uint64]:
        """Eight bytes of each report."""
        return digests(self.questions, self.rows, self.layout.words[self.questions])

    def sums(self, counted: Flags) -> Sums:
        """The exact sums of those reports whose place among all is ``counted``."""
        chosen = counted[self.places]
        questions, rows = self.questions, self.rows
        if not chosen.all():
            questions, rows = questions[chosen], rows[chosen]
        if not len(questions):
            return {}
        starts = starts_of(questions)
        asking = questions[starts]
        totals = self.analysis.sums(rows, starts, self.layout.cells[asking], self._limits(questions))
        numbers = np.diff(starts, append=len(questions)).tolist()
        return {question: (n, total) for question, n, total in zip(asking.tolist(), numbers, totals, strict=True)}


def lay_out(campaign: Campaign, questions: Integers, payloads: bytes) -> list[PayloadMatrix]:
    """Reports in increasing order of their ``questions``, one entry each, payloads concatenated in the same order."""
    layout = layout_of(CampaignKey(campaign))
    widths = layout.width[questions]
    ends = np.cumsum(widths)
    starts = starts_of(questions)
    if len(questions) > FEW * len(starts):
        firsts, lasts = starts.tolist(), [*starts.tolist()[1:], len(questions)]
        return [
            PayloadMatrix(
                layout,
                np.arange(first, last),
                questions[first:last],
                payload_rows(
                    campaign.counted[questions[first]], payloads[ends[first] - widths[first] : ends[last - 1]]
                ),
            )
            for first, last in zip(firsts, lasts, strict=True)
        ]
    kinds = layout.kind[questions] * (1 << 32) + layout.size[questions]
    found = []
    for kind in sorted(set(kinds.tolist())):
        places = np.flatnonzero(kinds == kind)
        numbers, chosen = questions[places], widths[places]
        rows = _padded(payloads, ends[places] - chosen, chosen, WORD_BYTES * int(layout.words[numbers].max()))
        found.append(PayloadMatrix(layout, places, numbers, rows))
    return found


def starts_of(ordered: Integers) -> Integers:
    """The places where runs of equal numbers begin."""
    begins = np.ones(len(ordered), dtype=np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=begins[1:])
    return begins.nonzero()[0]


def _padded(payloads: bytes, starts: Integers, widths: Integers, columns: int) -> Rows:
    """Stretches of the payloads as rows of the same length, zeros behind them."""
    # The last row may be looked for beyond the end.
    text = np.frombuffer(payloads + bytes(columns), dtype=np.uint8)
    reach = np.arange(columns)
    rows: Rows = text[starts[:, None] + reach]
    rows[reach >= widths[:, None]] = 0
    return rows
