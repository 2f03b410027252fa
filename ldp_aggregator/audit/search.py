"""The search for events that tell people apart.

Half of the trials choose the events, the other half tests them, so that choosing costs no confidence, however many
columns and people there are. Everyone is compared with the first people, with everybody else and with everybody of
another class.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.audit.black_box import Person
from ldp_aggregator.audit.columns import Column, columns_of
from ldp_aggregator.audit.events import BLOCK, SIDE, WHOLE, Event
from ldp_aggregator.audit.observations import Seen, Table

CHOSEN: Final = 16
"""Events of each scope that the first half sends to the second."""

_ALIKE: Final = 2
"""Events of one name among them."""

_FIRST: Final = 8
_LEAST_COUNT: Final = 4
_CAUTION: Final = 3.2
"""Standard deviations that choosing takes off what it has seen."""

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Candidate:
    """An event of the second half, and by how much the first half puts it above its claim."""

    excess: float
    event: Event


@dataclass(frozen=True)
class Sides:
    """Whom to compare: rows of ``weights``, shape (sides, people), say which people's counts make up a side."""

    people: tuple[Person | None, ...]
    weights: Counts
    pairs: Counts
    """Numbers of the one and the other side of every comparison, shape (comparisons, 2)."""


def sides_of(people: Sequence[Person]) -> Sides:
    """Everyone with each of the first people, with all others and with all of another class, in both directions."""
    k = len(people)
    labels = np.array([person.label for person in people])
    strangers = (labels[:, None] != labels[None, :]).astype(np.int64)
    weights = np.concatenate([np.eye(k, dtype=np.int64), 1 - np.eye(k, dtype=np.int64), strangers])
    singles = [(one, other) for one in range(k) for other in range(min(k, _FIRST)) if one != other]
    crowds = [(one, crowd * k + one) for one in range(k) for crowd in (1, 2) if weights[crowd * k + one].any()]
    pairs = dict.fromkeys(pair for found in (singles, crowds) for one, other in found for pair in ((one, other), (other, one)))
    return Sides((*people, *[None] * (2 * k)), weights, np.array(list(pairs), dtype=np.int64).reshape(-1, 2))


class Chosen:
    """The best candidates of each scope."""

    def __init__(self) -> None:
        self._best: dict[tuple[str, str], list[tuple[float, int, Candidate]]] = {}
        self._number = 0

    def add(self, candidate: Candidate) -> None:
        same = self._best.setdefault((candidate.event.scope, candidate.event.name), [])
        self._number += 1
        heapq.heappush(same, (candidate.excess, self._number, candidate))
        if len(same) > _ALIKE:
            heapq.heappop(same)

    def of(self, scope: str) -> list[Event]:
        found = [entry[2] for (of_scope, _), same in self._best.items() if of_scope == scope for entry in same]
        return [candidate.event for candidate in sorted(found, key=lambda c: -c.excess)[:CHOSEN]]


@dataclass(frozen=True)
class Claims:
    """What a document claims: of a whole upload, and of the answer to each question."""

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
    sides = sides_of(people)
    shapes = np.zeros(len(seen.person), dtype=np.int64)
    for number, table in enumerate(seen.tables):
        shapes[table.rows] = number
    counts = _counts(seen, np.arange(len(shapes)), shapes, len(seen.tables))
    name = "which questions are answered, in how many uploads and bytes, with which header"
    for candidate in _best(sides, seen, counts, name, SIDE, 0.0, ()):
        chosen.add(candidate)
    for table in seen.tables:
        for column in columns_of(table):
            scope, claim = claims.of(table, column)
            questions = table.shape.questions if column.block is None else (table.shape.questions[column.block],)
            counts = _counts(seen, table.rows, column.codes, column.values)
            for candidate in _best(sides, seen, counts, column.name, scope, claim, questions):
                chosen.add(candidate)


def _counts(seen: Seen, rows: NDArray[np.int64], codes: NDArray[np.int64], values: int) -> Counts:
    """How often everyone has every value, in either half; shape (2, people, values)."""
    places = (seen.tests[rows] * seen.people + seen.person[rows]) * values + codes
    return np.bincount(places, minlength=2 * seen.people * values).reshape(2, seen.people, values)


def _best(
    sides: Sides, seen: Seen, counts: Counts, name: str, scope: str, claim: float, questions: tuple[int, ...]
) -> Iterator[Candidate]:
    """The two comparisons of the highest excess, each with its best set of values."""
    used = counts[0].any(axis=0)
    chosen, tested = (sides.weights @ half[:, used] for half in counts)
    sizes = sides.weights.sum(axis=1)
    one, other = sides.pairs[:, 0], sides.pairs[:, 1]
    if not used.any() or not len(one):
        return
    trials = seen.half(False) * sizes
    order, bounds = prefixes(chosen[one], chosen[other], trials[one][:, None], trials[other][:, None])
    length = bounds.argmax(axis=1)
    best = bounds[np.arange(len(one)), length]
    for row in np.argsort(-best)[:_ALIKE]:
        if not np.isfinite(best[row]):
            return
        values = order[row, : length[row] + 1]
        ones, others = (int(tested[side][values].sum()) for side in (one[row], other[row]))
        of_one, of_other = (int(seen.half(True) * sizes[side]) for side in (one[row], other[row]))
        who, whom = sides.people[one[row]], sides.people[other[row]]
        event = Event(name, scope, claim, questions, who, whom, ones, of_one, others, of_other)
        yield Candidate(float(best[row]) - claim, event)


def prefixes(ones: Counts, others: Counts, one_trials: Any, other_trials: Any) -> tuple[Counts, NDArray[np.float64]]:
    """Of every row the values in the order of their ratio, and a cautious estimate of the loss that the first of them
    together prove; both of shape (rows, values).
    """
    order = np.argsort(-(ones + 0.5) / (others + 0.5), axis=1, kind="stable")
    a = np.cumsum(np.take_along_axis(ones, order, axis=1), axis=1) + 0.5
    b = np.cumsum(np.take_along_axis(others, order, axis=1), axis=1) + 1.0
    # Of shares near 1 the logarithm varies less.
    spread_a = np.sqrt(np.maximum(1 / a - 1 / (one_trials + 1), 0))
    spread_b = np.sqrt(np.maximum(1 / b - 1 / (other_trials + 1), 0))
    low = np.log(a / one_trials) - _CAUTION * spread_a
    high = np.log(b / other_trials) + _CAUTION * spread_b
    return order, np.where(a > _LEAST_COUNT, low - high, -np.inf)
