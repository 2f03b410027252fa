"""From payloads to exact integer sums: the one way to count, for one report to each of many questions as for a million
to one. Any order, any sharding, any merge gives the same bits.

Payloads of questions with mechanisms of one name, padded with zeros to whole words, are one array whatever their
questions; where there are many reports to a question, its payloads are an array of their own, as they came. How rows of
such an array are checked and added up is the mechanism's business (:mod:`ldp_aggregator.mechanisms`).

Beside each id are eight bytes that tell a retry (same report) from a second answer (other bytes under the same id): a
mixing function on whole arrays, not a cryptographic hash. Who forges a collision has made a duplicate, which is not
counted either way.

The tally of a campaign is the sum of its *parts*: what one commit adds, as bytes. A part has an entry for every
question it touches, one after the other, each a whole number of little-endian int64: the question's index, n, how many
counts there are, the bytes of each cell's number (0: all cells, in order) times 16 plus the bytes of each count; then
those numbers, increasing, and the counts. So a report adds about as many bytes as it has. Appending a part never waits
for another writer; when there are :data:`COMPACT_AT` parts, small ones are replaced by their sum.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.mechanisms import analysis_of
from ldp_aggregator.mechanisms.analysis import FEW, Analysis, Flags, Integers, Limit, Rows
from ldp_protocols import Campaign, Question
from ldp_protocols.wire import Block, decode_upload

DIGEST_BYTES: Final = 8

_STEP: Final = np.uint64(0x9E3779B97F4A7C15)
_FIRST: Final = np.uint64(0xBF58476D1CE4E5B9)
_SECOND: Final = np.uint64(0x94D049BB133111EB)


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


Sums = dict[int, tuple[int, Integers]]
"""Question index to (n, counts)."""

WORD_BYTES: Final = 8
MOST_LAYOUTS: Final = 64


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
class ById:
    """A campaign, hashed by its id alone."""

    campaign: Campaign

    def __hash__(self) -> int:
        return hash(self.campaign.id)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, ById)
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
def layout_of(key: ById) -> Layout:
    """Laid out once for as long as a process is busy with few campaigns."""
    asked = [analysis_of(question.mechanism) for question in key.campaign.counted]
    kinds = tuple(dict.fromkeys(type(analysis) for analysis in asked))
    width = np.array([analysis.mechanism.width for analysis in asked], dtype=np.int64)
    words = -(-width // WORD_BYTES)
    limits = np.zeros((max(len(analysis.limits) for analysis in asked), len(asked)), dtype=np.int64)
    for place, analysis in enumerate(asked):
        limits[: len(analysis.limits), place] = analysis.limits
    return Layout(
        kinds=kinds,
        kind=np.array([kinds.index(type(analysis)) for analysis in asked], dtype=np.int64),
        width=width,
        words=words,
        size=np.ceil(np.log2(words) / 2).astype(np.int64),  # Up to 1, 4, 16, 64, ... words.
        cells=np.array([analysis.cells for analysis in asked], dtype=np.int64),
        limits=limits,
    )


@dataclass(frozen=True, eq=False)
class Sheet:
    """Reports with mechanisms of one name, ``places`` among all; questions increase.

    Where all answer one question, ``rows`` are its payloads; otherwise zeros pad them to whole words.
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
        asked = questions[starts]
        totals = self.analysis.sums(rows, starts, self.layout.cells[asked], self._limits(questions))
        numbers = np.diff(starts, append=len(questions)).tolist()
        return {question: (n, total) for question, n, total in zip(asked.tolist(), numbers, totals, strict=True)}


def lay_out(campaign: Campaign, questions: Integers, payloads: bytes) -> list[Sheet]:
    """Reports in increasing order of their ``questions``, one entry each, payloads concatenated in the same order."""
    layout = layout_of(ById(campaign))
    widths = layout.width[questions]
    ends = np.cumsum(widths)
    starts = starts_of(questions)
    if len(questions) > FEW * len(starts):
        firsts, lasts = starts.tolist(), [*starts.tolist()[1:], len(questions)]
        return [
            Sheet(
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
        asked, chosen = questions[places], widths[places]
        rows = _padded(payloads, ends[places] - chosen, chosen, WORD_BYTES * int(layout.words[asked].max()))
        found.append(Sheet(layout, places, asked, rows))
    return found


def starts_of(ordered: Integers) -> Integers:
    """Return the places where runs of equal numbers begin."""
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


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Numbers of one campaign's counted reports.

    reports
        How many there are.
    vouched
        Those that came in a batch that a relay vouched for, less those that were then seen outside of one.
    least_batch
        The smallest such batch: devices, less the reports of an upload that hid nobody because they were known before
        or refused. None where there was none.
    overlap
        Reports that are in the sums twice: both of two merged stores had counted them.
    unchecked
        Reports that may be, beyond ``overlap``: when they were merged, one store's ids were gone.
    """

    reports: int = 0
    vouched: int = 0
    least_batch: int | None = None
    overlap: int = 0
    unchecked: int = 0

    @property
    def otherwise(self) -> int:
        """Reports, at least, that were seen outside of every vouched batch. Where it is 0 there are none."""
        return self.reports - self.vouched

    @property
    def twice(self) -> int:
        """Reports, at most, that are in the sums twice."""
        return self.overlap + self.unchecked


class Tally:
    """Number of reports and summed counts of every question of a campaign, in a series of each of its windows.

    Attributes
    ----------
    n
        int64, one entry for each of ``campaign.counted``: reports counted.
    counts
        One int64 vector for each, of length :func:`ldp_aggregator.counting.tally.cells`.
    """

    def __init__(
        self, campaign: Campaign, n: NDArray[np.int64] | None = None, counts: list[NDArray[np.int64]] | None = None
    ) -> None:
        """Nothing counted yet, or what ``n`` and ``counts`` say."""
        self.campaign = campaign
        self.n = np.zeros(len(campaign.counted), dtype=np.int64) if n is None else n
        self.counts = [np.zeros(cells(q), dtype=np.int64) for q in campaign.counted] if counts is None else counts

    @classmethod
    def of_uploads(cls, campaign: Campaign, uploads: Iterable[bytes]) -> Tally:
        """The tally of serialised uploads, every report counted (no deduplication; that is the store's business).

        Raises DocumentError on bytes that are no upload; reports that no device can have sent are left out.
        """
        tally = cls(campaign)
        for upload in uploads:
            for block in decode_upload(upload, campaign):
                tally.add_block(block)
        return tally

    @classmethod
    def of_windows(cls, campaign: Campaign, windows: Sequence[Tally]) -> Tally:
        """The tally of a series from those of its windows; the inverse of :meth:`window`."""
        counts = [counts for one in windows for counts in one.counts]
        return cls(campaign, np.concatenate([one.n for one in windows]), counts)

    def window(self, window: int) -> Tally:
        """The tally of one window of a series, as of a campaign that has no others; it shares the arrays."""
        asked = len(self.campaign.questions)
        its = slice(window * asked, (window + 1) * asked)
        return Tally(self.campaign.one_window, self.n[its], self.counts[its])

    @property
    def windows(self) -> tuple[Tally, ...]:
        """The tally of every window; itself alone where the campaign has none."""
        number = len(self.n) // len(self.campaign.questions)
        return (self,) if number == 1 else tuple(map(self.window, range(number)))

    def pooled(self) -> Tally:
        """The sum over all windows; itself where the campaign has none."""
        windows = self.windows
        if len(windows) == 1:
            return self
        total = Tally(self.campaign.one_window)
        for one in windows:
            total.merge(one)
        return total

    def add(self, question: int, n: int, counts: NDArray[np.int64]) -> None:
        """Add ``n`` reports to question number ``question`` whose counts are already summed."""
        if counts.shape != self.counts[question].shape:
            raise ValueError(f"question {question} has {self.counts[question].size} counts, not {counts.size}")
        self.n[question] += n
        self.counts[question] += counts

    def add_block(self, block: Block) -> dict[int, str]:
        """Count a block of reports; returns position to code of those refused and left out."""
        question = self.campaign.counted[block.question]
        rows = payload_rows(question, block.payloads)
        refused = refusals(question, rows)
        if refused:
            rows = np.delete(rows, list(refused), axis=0)
        self.add(block.question, len(rows), count(question, rows))
        return refused

    def merge(self, other: Tally) -> None:
        """Add another tally of the same campaign into this one."""
        if other.campaign.id != self.campaign.id:
            raise ValueError(f"tallies of campaigns {self.campaign.id} and {other.campaign.id} do not add up")
        self.n += other.n
        for mine, theirs in zip(self.counts, other.counts, strict=True):
            mine += theirs

    def __add__(self, other: Tally) -> Tally:
        total = Tally(self.campaign)
        total.merge(self)
        total.merge(other)
        return total

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Tally)
            and other.campaign.id == self.campaign.id
            and np.array_equal(self.n, other.n)
            and all(np.array_equal(a, b) for a, b in zip(self.counts, other.counts, strict=True))
        )

    __hash__ = None  # type: ignore[assignment]  # Mutable.

    def __repr__(self) -> str:
        return f"Tally(campaign={self.campaign.id!r}, reports={int(self.n.sum())})"


def devices_counted(campaign: Campaign, counts: Sequence[int]) -> int:
    """The crowd behind the numbers of reports to each question; with ``answers: "all"`` that of the smallest group."""
    of_group = dict.fromkeys((question.group for question in campaign.questions), 0)
    for question, reports in zip(campaign.questions, counts, strict=True):
        of_group[question.group] += int(reports)
    return min(of_group.values()) if campaign.privacy.answers == "all" else sum(of_group.values())


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
    """Return the number of the smallest parts to replace by their sum, given all their bytes in increasing order.

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
        numbers, kept = used.astype(f"<u{number_bytes}").tobytes(), counts[used]
    else:
        numbers, kept, number_bytes = b"", counts, 0
    head = np.array([question, n, len(kept), number_bytes << 4 | count_bytes], dtype="<i8").tobytes()
    return head + _filled(numbers) + _filled(kept.astype(f"<i{count_bytes}").tobytes())


def _unpack(words: NDArray[np.int64], position: int, question: int, size: int) -> tuple[NDArray[np.int64], int]:
    """The counts of an entry and where it ends. Raises ValueError."""
    ended = ValueError(f"a tally part ends within question {question}")
    if position + _HEAD > len(words):
        raise ended
    kept, widths = int(words[position + 2]), int(words[position + 3])
    number_bytes, count_bytes = widths >> 4, widths & 15
    if not 0 <= kept <= size or count_bytes not in _SIZES or number_bytes not in (0, *_SIZES):
        raise ValueError(f"a tally part has an entry of question {question} that makes no sense")
    middle = position + _HEAD + -(-kept * number_bytes // _WORD)
    end = middle + -(-kept * count_bytes // _WORD)
    if end > len(words):
        raise ended
    counts = _read(words[middle:end], f"<i{count_bytes}", kept).astype(np.int64)
    if number_bytes == 0:
        if kept != size:
            raise ValueError(f"a tally part has {kept} counts for question {question} of {size}")
        return counts, end
    numbers = _read(words[position + _HEAD : middle], f"<u{number_bytes}", kept)
    if kept and (numbers[-1] >= size or (numbers[1:] <= numbers[:-1]).any()):
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
