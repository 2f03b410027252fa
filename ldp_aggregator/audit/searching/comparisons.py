"""The search for events that tell people apart.

Half of the trials choose the events, the other half tests them, so that choosing costs no confidence, however many
columns and people there are. Everyone is compared with the first people, with everybody else and with everybody of
another class; and with the same person in another process, which had asked others before.

Compared is everything that is read off an upload as one integer, by somebody who knows no mechanism: single bytes, bits
counted, order, checksums, words as integers and as floating-point numbers with the fineness of their last digit,
remainders; and, because what two parts tell together neither need tell alone, exclusive ors and differences: of bytes,
of an answer with its id, of answers that are equally wide.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.audit.asking.black_box import Person
from ldp_aggregator.audit.asking.observations import Bytes, Flags, Numbers, Seen, Table, hashed
from ldp_aggregator.audit.asking.people import spread
from ldp_aggregator.audit.searching.events import BLOCK, COMPANY, SIDE, WHOLE, Event

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
    """Every column of a table, as the rows flagged by ``chooses``, shape (m,), define it: the others may test it."""
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
        codes = np.unique(every[chooses])
        if 0 < len(codes) <= _MOST_VALUES:
            at = np.searchsorted(codes, every)
            at[codes[np.minimum(at, len(codes) - 1)] != every] = len(codes)
            yield "all of it", at, len(codes) + 1
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
    """Range of each number among 32, more of them in the tails; the cuts come from all people's reports together."""
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
    """Remainders of the rows, each read as a little-endian number."""
    rest = np.zeros(len(rows), dtype=np.int64)
    for place in range(rows.shape[1] - 1, -1, -1):
        rest = (rest * 256 + rows[:, place]) % modulus
    return rest


CHOSEN: Final = 16
"""Events of each scope that the first half sends to the second."""

_ALIKE: Final = 2
"""Events of one name among them."""

_FIRST: Final = 6
_WORTH: Final = 3.5
"""Standard deviations."""

_LEAST_COUNT: Final = 3
_NOTHING: Final = -50.0
_FOLDS: Final = ((0, 1), (1, 0))
_CAUTION: Final = 3.2
"""Standard deviations that choosing takes off what it has seen."""

Counts = NDArray[np.int64]
About = tuple[str, str, float, tuple[int, ...]]
"""Name, scope, claim and questions of an event."""


@dataclass(frozen=True)
class Sides:
    """The people to compare. ``classes`` has the number of everyone's class, and None where there are no crowds."""

    people: tuple[Person | None, ...]
    classes: NDArray[np.int64] | None
    pairs: Counts
    """Numbers of the one and the other side of every comparison, shape (comparisons, 2)."""

    def sums(self, counts: Counts) -> Counts:
        """Counts of every side, shape (sides, ...), from those of everyone, shape (people, ...): everyone alone, and
        then all others, and all of another class.
        """
        if self.classes is None:
            return counts
        of_class = np.zeros((self.classes.max() + 1, *counts.shape[1:]), dtype=np.int64)
        np.add.at(of_class, self.classes, counts)
        total = of_class.sum(axis=0)
        return np.concatenate([counts, total - counts, total - of_class[self.classes]])


def sides_of(people: Sequence[Person]) -> Sides:
    """Everyone with each of the first people, with all others and with all of another class, in both directions."""
    k = len(people)
    labels = list(dict.fromkeys(person.label for person in people))
    classes = np.array([labels.index(person.label) for person in people], dtype=np.int64)
    crowded = {1: k > 1, 2: len(labels) > 1}
    singles = [(one, other) for one in range(k) for other in range(min(k, _FIRST)) if one != other]
    crowds = [(one, crowd * k + one) for one in range(k) for crowd in (1, 2) if crowded[crowd]]
    pairs = dict.fromkeys(
        pair for found in (singles, crowds) for one, other in found for pair in ((one, other), (other, one))
    )
    return Sides((*people, *[None] * (2 * k)), classes, np.array(list(pairs), dtype=np.int64).reshape(-1, 2))


def company_of(people: Sequence[Person]) -> Sides:
    """Everyone in one process with the same person in the other, where others had been asked before."""
    k = len(people)
    pairs = [pair for one in range(k) for pair in ((2 * one, 2 * one + 1), (2 * one + 1, 2 * one))]
    return Sides(tuple(person for person in people for _ in range(2)), None, np.array(pairs, dtype=np.int64))


@dataclass(frozen=True)
class Asked:
    """The uploads asked for, the same for every column: the ``trials`` of every side in each of the three parts, and
    the ``shares`` of every row of counts in the two that choose, shape (rows, 1).
    """

    sides: Sides
    trials: list[Counts]
    shares: NDArray[np.float64]

    @classmethod
    def of(cls, sides: Sides, counts: Counts) -> Asked:
        choosing = counts[0] + counts[1]
        return cls(sides, [sides.sums(part[:, 0]) for part in counts], choosing / choosing.sum())


class Chosen:
    """The best events of each scope: of the second half, by how much the first half puts them above their claims."""

    def __init__(self) -> None:
        self._best: dict[tuple[str, str], list[tuple[float, int, Event]]] = {}
        self._number = 0

    def add(self, excess: float, event: Event) -> None:
        same = self._best.setdefault((event.scope, event.name), [])
        self._number += 1
        heapq.heappush(same, (excess, self._number, event))
        if len(same) > _ALIKE:
            heapq.heappop(same)

    def of(self, scope: str) -> list[Event]:
        found = [entry for (of_scope, _), same in self._best.items() if of_scope == scope for entry in same]
        return [event for _, _, event in sorted(found, key=lambda entry: -entry[0])[:CHOSEN]]


@dataclass(frozen=True)
class Claims:
    """The claims of a document: of a whole upload, and of the answer to each question."""

    total: float
    of_question: Callable[[int], float]

    def of(self, table: Table, column: Column) -> tuple[str, float]:
        if column.side:
            return SIDE, 0.0
        if column.block is None:
            return WHOLE, self.total
        return BLOCK, self.of_question(table.shape.blocks[column.block].question)


def search(people: Sequence[Person], seen: Seen, claims: Claims, chosen: Chosen) -> None:
    """Choose events among all columns of all tables, and which table an answer is in."""
    third = np.where(seen.tests, 2, seen.within // 2 % 2)
    places = (third * seen.people + seen.person) * 2 + seen.process
    trials = _counts(places, np.zeros(len(places), dtype=np.int64), 1, seen.people)
    everyone = Asked.of(sides_of(people), trials.sum(axis=2))
    company = Asked.of(company_of(people), trials.reshape(3, 2 * seen.people, 1))

    def look(rows: NDArray[np.int64], column: Column, scope: str, claim: float, questions: tuple[int, ...]) -> None:
        counts = _counts(places[rows], column.codes, column.values, seen.people)
        weigh(counts, (column.name, scope, claim, questions))
        if column.values == 256 and (scope == SIDE or "difference" not in column.name):
            whole = counts.sum(axis=-1)
            for bit in range(8):
                # The values are even and odd by turns; without their last bit, half as many are left.
                even, odd = counts[..., 0::2], counts[..., 1::2]
                is_set = odd.sum(axis=-1)
                about = f"{column.name}, bit {bit}", scope, claim, questions
                weigh(np.stack([whole - is_set, is_set], axis=-1), about)
                counts = even + odd

    def weigh(counts: Counts, about: About) -> None:
        name, scope, _, questions = about
        counts = counts[..., counts[:2].any(axis=(0, 1, 2))]
        if not counts.size:
            return
        whole = counts.sum(axis=2)
        if _uneven(whole[0] + whole[1], everyone.shares):
            _choose(chosen, everyone, whole, about)
        if scope == SIDE and questions:
            # Ids may well say which process made them.
            return
        lives = counts.reshape(3, 2 * seen.people, -1)
        if _uneven(lives[0] + lives[1], company.shares):
            _choose(chosen, company, lives, (name, COMPANY, 0.0, questions))

    shapes = np.zeros(len(seen.person), dtype=np.int64)
    for number, table in enumerate(seen.tables):
        shapes[table.rows] = number
    name = "which questions are answered, in how many uploads and bytes, with which header"
    look(np.arange(len(shapes)), Column(name, shapes, len(seen.tables)), SIDE, 0.0, ())
    for table in seen.largest:
        for column in columns_of(table, ~seen.tests[table.rows]):
            scope, claim = claims.of(table, column)
            questions = table.shape.questions if column.block is None else (table.shape.questions[column.block],)
            look(table.rows, column, scope, claim, questions)


def _counts(places: NDArray[np.int64], codes: NDArray[np.int64], values: int, people: int) -> Counts:
    """Counts of every value of everybody, shape (3, people, processes, values): two parts choose, the third tests."""
    return np.bincount(places * values + codes, minlength=6 * people * values).reshape(3, people, 2, values)


def _uneven(counts: Counts, shares: NDArray[np.float64]) -> bool:
    """A quick test that passes rows which may differ from a single law, in any value or altogether."""
    expected = counts.sum(axis=0) * shares
    excess = (counts - expected) ** 2 / (expected + 1)
    freedom = max(1, (counts.shape[0] - 1) * (counts.shape[1] - 1))
    return bool(excess.max() > _WORTH**2 or excess.sum() > freedom + _WORTH * np.sqrt(2 * freedom))


def _choose(chosen: Chosen, uploads: Asked, counts: Counts, about: About) -> None:
    """Add the comparisons of the highest excess, each with its best set of values.

    Sets of many values promise too much where they were chosen; their promise is one chosen in the other part.
    """
    sides, trials = uploads.sides, uploads.trials
    one, other = sides.pairs[:, 0], sides.pairs[:, 1]
    if not len(one):
        return
    parts = [sides.sums(part) for part in counts]
    both, of_both = parts[0] + parts[1], trials[0] + trials[1]
    order, bounds = prefixes(both[one], both[other], of_both[one][:, None], of_both[other][:, None])
    length = bounds.argmax(axis=1)
    best = bounds[np.arange(len(one)), length]
    rows = np.argsort(-best)[:_ALIKE]
    rows = rows[best[rows] > _NOTHING]
    if not len(rows):
        return
    pairs = sides.pairs[rows]
    promises = np.mean(
        [_promised(parts[f][pairs], trials[f][pairs], parts[s][pairs], trials[s][pairs]) for f, s in _FOLDS], axis=0
    )
    for row, pair, promise in zip(rows, pairs, promises, strict=True):
        values = order[row, : length[row] + 1]
        ones, others = (int(parts[2][side][values].sum()) for side in pair)
        of_one, of_other = (int(trials[2][side]) for side in pair)
        who, whom = (sides.people[side] for side in pair)
        event = Event(*about, who, whom, ones, of_one, others, of_other)
        chosen.add(float(promise) - event.claim, event)


def _promised(fitted: Counts, of_fitted: Counts, held_out: Counts, of_shown: Counts) -> NDArray[np.float32]:
    """Estimate what the sets that are best by ``fitted`` show elsewhere; counts of both sides of every comparison,
    shape (comparisons, 2, values), and their trials, shape (comparisons, 2).
    """
    order, bounds = prefixes(fitted[:, 0], fitted[:, 1], of_fitted[:, :1], of_fitted[:, 1:])
    chosen = np.arange(order.shape[1]) <= bounds.argmax(axis=1)[:, None]
    ones, others = ((_in_order(held_out[:, side], order) * chosen).sum(axis=1) for side in (0, 1))
    return _cautious(ones, others, of_shown[:, 0], of_shown[:, 1])


def _in_order(counts: Counts, order: Counts) -> Counts:
    return counts[np.arange(len(order))[:, None], order]


def prefixes(ones: Counts, others: Counts, one_trials: Any, other_trials: Any) -> tuple[Counts, NDArray[np.float32]]:
    """Each row's values in order of their ratio, and a cautious loss of every prefix; both of shape (rows, values)."""
    order = np.argsort(-(ones + np.float32(0.5)) / (others + np.float32(0.5)), axis=1)
    a, b = (np.cumsum(_in_order(of, order), axis=1, dtype=np.float32) for of in (ones, others))
    return order, _cautious(a, b, one_trials, other_trials)


def _cautious(ones: Any, others: Any, one_trials: Any, other_trials: Any) -> NDArray[np.float32]:
    """A cautious estimate of the loss that counts prove."""
    a, b = np.asarray(ones, np.float32) + np.float32(0.5), np.asarray(others, np.float32) + np.float32(1)
    # Few trials may leave a part without any.
    one_trials, other_trials = (np.maximum(np.asarray(of, np.float32), 1) for of in (one_trials, other_trials))
    # Of shares near 1 the logarithm varies less.
    spread_a = np.sqrt(np.maximum(1 / a - 1 / (one_trials + 1), 0))
    spread_b = np.sqrt(np.maximum(1 / b - 1 / (other_trials + 1), 0))
    low = np.log(a / one_trials) - _CAUTION * spread_a
    high = np.log(b / other_trials) + _CAUTION * spread_b
    return np.where(a > _LEAST_COUNT, low - high, _NOTHING)
