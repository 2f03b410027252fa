"""Uploads as an eavesdropper sees them: how many there are, which questions they answer, and every byte.

Uploads that agree in all but ids and payloads have one *shape*: their number, lengths, version, order of the questions
and every byte of the encoding. Reading is lenient: what a server would refuse may still tell something.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import msgpack
import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.audit.asking.black_box import Answer

Bytes = NDArray[np.uint8]
Numbers = NDArray[np.int64]
Flags = NDArray[np.bool_]

_MOST_SHAPES: Final = 1024
_MOST_LAYOUTS: Final = 64
"""Layouts of uploads of equal lengths; what has yet another shape, or its ids and payloads at yet other places, is kept
whole.
"""

_MOST_BLOCKS: Final = 96
"""Blocks whose every column is looked at."""


@dataclass(frozen=True)
class Block:
    """An answer within an upload: its question, and where its id and its payload lie among those of the shape."""

    question: int
    ids: slice
    payload: slice

    @property
    def width(self) -> int:
        return int(self.payload.stop - self.payload.start)


@dataclass(frozen=True)
class Shape:
    """``lengths`` of the uploads, every byte of theirs beside ids and payloads, and the blocks in their order."""

    lengths: tuple[int, ...]
    header: bytes
    blocks: tuple[Block, ...]

    @property
    def questions(self) -> tuple[int, ...]:
        return tuple(block.question for block in self.blocks)


@dataclass(frozen=True)
class Table:
    """The answers of one shape: their numbers, shape (m,), their ids and payloads as bytes, shape (m, bytes)."""

    shape: Shape
    rows: Numbers
    ids: Bytes
    payloads: Bytes


@dataclass(frozen=True)
class Seen:
    """All answers of fresh devices, ``tables`` by shape: of ``people``, in all.

    ``person`` and ``process`` say whose an answer is, and in which process it was given, shape (n,).
    """

    people: int
    person: Numbers
    process: Numbers
    tables: tuple[Table, ...]

    @cached_property
    def trials(self) -> Numbers:
        """Count how often everybody was asked, shape (people,)."""
        return np.bincount(self.person, minlength=self.people)

    @cached_property
    def tests(self) -> NDArray[np.bool_]:
        """The half of every person's answers that test what the other half chose, shape (n,)."""
        return np.asarray(self.within % 2 == 1)

    @cached_property
    def within(self) -> Numbers:
        """The number of every answer among its person's, shape (n,)."""
        return within(self.person, self.people)

    @property
    def several(self) -> bool:
        """True where some uploads answer several questions."""
        return any(len(table.shape.blocks) > 1 for table in self.tables)

    @cached_property
    def largest(self) -> tuple[Table, ...]:
        """The tables to look at closely: those with the most answers in the choosing half, and always the first."""
        chosen = [int((~self.tests[table.rows]).sum()) for table in self.tables]
        order = np.argsort(-np.array(chosen, dtype=np.int64), kind="stable")
        blocks = np.cumsum([len(self.tables[number].shape.blocks) for number in order])
        return tuple(self.tables[number] for number in order[: max(1, int((blocks <= _MOST_BLOCKS).sum()))])

    def rows_of(self, person: int) -> list[Numbers]:
        """Places of a person's answers in each of the tables."""
        return [np.asarray(rows[person]) for rows in self._rows]

    @cached_property
    def _rows(self) -> list[list[Numbers]]:
        found = []
        for table in self.tables:
            authors = self.person[table.rows]
            order = np.argsort(authors, kind="stable")
            found.append(np.split(order, np.searchsorted(authors[order], np.arange(1, self.people))))
        return found

    def half(self, person: int, tests: bool) -> int:
        """Trials of a person in a half."""
        trials = int(self.trials[person])
        return trials // 2 if tests else trials - trials // 2


def within(person: Numbers, people: int) -> Numbers:
    """The number of every answer among its person's, shape (n,)."""
    order = np.argsort(person, kind="stable")
    numbers = np.empty(len(order), dtype=np.int64)
    starts = np.searchsorted(person[order], np.arange(people))
    numbers[order] = np.arange(len(order)) - starts[person[order]]
    return numbers


def read_tables(answers: Sequence[Answer], chooses: Flags | None = None) -> tuple[Table, ...]:
    """The answers by shape. Of too many shapes, answers that ``chooses`` flags (None: all) say which count: the others
    may then test whether people differ in their shapes. Raises ChildProcessError without a readable upload.
    """
    alike: dict[tuple[int, ...], list[int]] = {}
    for number, answer in enumerate(answers):
        alike.setdefault(tuple(map(len, answer)), []).append(number)
    tables = []
    for lengths, numbers in alike.items():
        rows = np.array(numbers, dtype=np.int64)
        data = np.frombuffer(b"".join([b"".join(answers[number]) for number in numbers]), dtype=np.uint8)
        weights = np.ones(len(rows)) if chooses is None else chooses[rows].astype(np.float64)
        tables += _split(lengths, rows, data.reshape(len(rows), sum(lengths)), weights)
    if answers and not any(table.shape.blocks for table in tables):
        first = next((upload for answer in answers for upload in answer), b"")
        raise ChildProcessError(f"not an upload: {first[:40].hex()}")
    return tuple(tables)


def _split(lengths: tuple[int, ...], rows: Numbers, data: Bytes, weights: NDArray[np.float64]) -> list[Table]:
    """Tables of answers of equal lengths; those of which there are most, by their weights, come first."""
    tables: list[Table] = []
    for _ in range(_MOST_LAYOUTS):
        if not len(rows) or len(tables) >= _MOST_SHAPES:
            break
        # Whatever agrees in all bytes beside the places where the heaviest answer has ids and payloads, may share them.
        _, ids, payloads = _shape_of(lengths, data[int(weights.argmax())].tobytes())
        beside = np.ones(data.shape[1], dtype=np.bool_)
        beside[[*ids, *payloads]] = False
        _, firsts, groups = np.unique(hashed(data[:, beside]), return_index=True, return_inverse=True)
        heaviest = np.argsort(-np.bincount(groups, weights), kind="stable")[: _MOST_SHAPES - len(tables)]
        order = np.argsort(groups, kind="stable")
        starts = np.searchsorted(groups[order], np.arange(len(firsts) + 1))
        taken = np.zeros(len(rows), dtype=np.bool_)
        for group in heaviest:
            shape, *places = _shape_of(lengths, data[firsts[group]].tobytes())
            if places == [ids, payloads]:
                mine = order[starts[group] : starts[group + 1]]
                same = (data[np.ix_(mine, beside)] == data[firsts[group], beside]).all(axis=1)
                mine = mine[same]
                tables.append(Table(shape, rows[mine], data[np.ix_(mine, ids)], data[np.ix_(mine, payloads)]))
                taken[mine] = True
        rows, data, weights = rows[~taken], data[~taken], weights[~taken]
    if len(rows):
        whole = Shape(lengths, b"", (Block(-1, slice(0, 0), slice(0, data.shape[1])),))
        tables.append(Table(whole, rows, data[:, :0], data))
    return tables


def _shape_of(lengths: tuple[int, ...], data: bytes) -> tuple[Shape, list[int], list[int]]:
    """The shape of uploads, and the places of their ids and payloads in ``data``."""
    ids: list[int] = []
    payloads: list[int] = []
    blocks: list[Block] = []
    start = 0
    for length in lengths:
        try:
            found = _blocks_of(data[start : start + length])
        except Exception:  # msgpack raises many types, and hostile bytes unpack to anything; each means the same here.
            found = []
        for question, id_places, payload_places in found:
            starts = len(ids), len(payloads)
            ids += [start + place for place in id_places]
            payloads += [start + place for place in payload_places]
            blocks.append(Block(question, slice(starts[0], len(ids)), slice(starts[1], len(payloads))))
        start += length
    cut = {*ids, *payloads}
    header = bytes(byte for place, byte in enumerate(data) if place not in cut)
    return Shape(lengths, header, tuple(blocks)), ids, payloads


def _blocks_of(upload: bytes) -> list[tuple[int, range, range]]:
    """Question, places of the ids and of the payloads, of every block."""
    reader = msgpack.Unpacker(raw=True, strict_map_key=False)
    reader.feed(upload)
    reader.read_array_header()
    reader.skip()
    blocks = []
    for _ in range(reader.read_array_header()):
        members = reader.read_array_header()
        question = reader.unpack()
        spans = []
        for _ in range(members - 1):
            member, end = reader.unpack(), reader.tell()
            if isinstance(member, bytes):
                spans.append(range(end - len(member), end))
        blocks.append((int(question), spans[0], spans[1]))
    return blocks


def hashed(rows: Bytes) -> NDArray[Any]:
    """A 64-bit number for every row, the same for the same bytes; shape (m,)."""
    padded = np.zeros((len(rows), -(-max(rows.shape[1], 1) // 8) * 8), dtype=np.uint8)
    padded[:, : rows.shape[1]] = rows
    mixed = np.full(len(rows), 0x9E3779B97F4A7C15, dtype=np.uint64)
    for word in padded.view("<u8").T:
        mixed = (mixed ^ word) * np.uint64(0xD6E8FEB86659FD93)
        mixed ^= mixed >> np.uint64(32)
    return mixed
