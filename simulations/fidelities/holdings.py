"""How many of a question's devices hold which item, without listing the devices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ldp_aggregator.learning.frames import MISSING_INDEX
from ldp_aggregator.mechanisms.facts import Moments
from protocols import Question
from protocols.document.questions import LABEL, RIGHT, SCORE
from simulations.fidelities.items import Columns, Integers


@dataclass(frozen=True)
class Holders:
    """Devices whose owners are rows of a table: ``devices`` of them, spread over the rows in a way that is drawn once.

    ``spread(kinds, number)`` puts every row into one of ``number`` kinds and returns how many devices each kind has.
    It may be called once only: a second call would be about other devices.
    """

    devices: int
    spread: Callable[[Integers, int], Integers]


def rowwise(numbers: Integers) -> Holders:
    """So many devices of each row."""

    def spread(kinds: Integers, number: int) -> Integers:
        held = np.zeros(number, dtype=np.int64)
        np.add.at(held, kinds, numbers)
        return held

    return Holders(int(numbers.sum()), spread)


def resampled(devices: int, rows: int, rng: np.random.Generator) -> Holders:
    """Devices whose owners are drawn among ``rows`` independently: multinomial over the kinds, however many devices."""

    def spread(kinds: Integers, number: int) -> Integers:
        held: Integers = rng.multinomial(devices, np.bincount(kinds, minlength=number) / rows)
        return held

    return Holders(devices, spread)


def hold_cells(columns: Columns, question: Question, holders: Holders, rng: np.random.Generator) -> Integers:
    """Devices per cell of a question about an index."""
    k = columns.class_count
    if question.kind == LABEL:
        return holders.spread(columns.classes, k)
    if question.kind in (RIGHT, SCORE):
        return holders.spread(columns.of_the_model(question), question.domain_size)
    if columns.is_projected(question.feature):
        rows, numbers = _listed(columns, question, holders)
        cells: Integers = np.zeros(question.domain_size, dtype=np.int64)
        np.add.at(cells, columns.indices(question, rows, rng), numbers)
        return cells
    feature = columns.campaign.feature(question.feature)
    size = feature.size
    values = columns.value_indices(question.feature)
    held = holders.spread((values - MISSING_INDEX) * k + columns.classes, (size + 1) * k).reshape(size + 1, k)
    if feature.missing:
        return np.roll(held, -1, axis=0).ravel()
    replaced = rng.multinomial(held[0], np.full(size, 1 / size))
    return (held[1:] + replaced.T).ravel()


def hold_moments(
    columns: Columns, question: Question, holders: Holders, rng: np.random.Generator
) -> tuple[Moments, Integers]:
    """The different moments of any other question, and how many devices hold each."""
    rows, numbers = _listed(columns, question, holders)
    return columns.moments(question, rows, rng), numbers


def _listed(columns: Columns, question: Question, holders: Holders) -> tuple[Integers, Integers]:
    """Rows and how many devices hold each; a row with something missing once for each of its devices, because each of
    them draws a replacement of its own.
    """
    numbers = holders.spread(np.arange(len(columns)), len(columns))
    incomplete = columns.incomplete(question)
    whole = np.flatnonzero(~incomplete & (numbers > 0))
    broken = np.repeat(np.flatnonzero(incomplete), numbers[incomplete])
    return np.concatenate([whole, broken]), np.concatenate([numbers[whole], np.ones_like(broken)])
