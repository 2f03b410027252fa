"""Fidelity ``counts``: the tally itself is drawn, at a cost that does not grow with the number of devices.

Devices are exchangeable, so only how many of them hold each item matters (:mod:`simulations.fidelities.holdings`); how
the reports of that many devices add up is the mechanism's to draw (:mod:`ldp_aggregator.mechanisms`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.counting.tally import Tally
from ldp_aggregator.mechanisms import facts_of
from protocols import Question
from protocols.document.questions import INDEX, SIGN, signs_of
from simulations.fidelities.holdings import Holders, hold_cells, hold_moments, resampled, rowwise
from simulations.fidelities.items import UNIT, Columns, Integers
from simulations.fidelities.vector import draw_questions, pools


def simulate_counts(columns: Columns, rng: np.random.Generator, devices: int | None = None) -> Tally:
    """As :func:`simulations.fidelities.vector.simulate_vector`, in distribution."""
    tally = Tally(columns.campaign)
    for question, holders in _answering(columns, rng, devices):
        tally.add(question.index, holders.devices, _count(columns, question, holders, rng))
    return tally


def _answering(columns: Columns, rng: np.random.Generator, devices: int | None) -> Iterator[tuple[Question, Holders]]:
    """Each question with the devices that answer it."""
    if devices is None:
        for question, rows in draw_questions(columns.campaign, len(columns), rng):
            yield question, rowwise(np.bincount(rows, minlength=len(columns)))
    elif columns.campaign.privacy.answers == "one":
        # The devices of different questions are different ones, so their owners are drawn independently.
        numbers = rng.multinomial(devices, _shares(columns.campaign.questions))
        for question, number in zip(columns.campaign.questions, numbers.tolist(), strict=True):
            yield question, resampled(number, len(columns), rng)
    else:
        owners = rng.multinomial(devices, np.full(len(columns), 1 / len(columns)))
        for pool in pools(columns.campaign):
            asked = rng.multinomial(owners, _shares(pool))
            for position, question in enumerate(pool):
                yield question, rowwise(asked[:, position])


def _shares(pool: Sequence[Question]) -> NDArray[np.float64]:
    weights = np.array([question.weight for question in pool], dtype=np.float64)
    shares: NDArray[np.float64] = weights / weights.sum()
    return shares


def _count(columns: Columns, question: Question, holders: Holders, rng: np.random.Generator) -> Integers:
    facts = facts_of(question.mechanism)
    if question.encoding == INDEX:
        return facts.tally(hold_cells(columns, question, holders, rng), rng)
    moments, numbers = hold_moments(columns, question, holders, rng)
    if question.encoding != SIGN:
        return facts.tally_moments(moments, numbers, rng)
    cells: Integers = np.zeros(question.domain_size, dtype=np.int64)
    present = np.where(moments.missing, 0, numbers)
    ones = rng.binomial(present, (moments.values + UNIT) / (2 * UNIT))  # Devices whose stochastic bit is 1.
    first = signs_of(question, columns.class_count) * moments.cells
    np.add.at(cells, first[:, None] + np.arange(2), np.stack([present - ones, ones], axis=-1))
    np.add.at(cells, first[moments.missing] + 2, numbers[moments.missing])
    return facts.tally(cells, rng)
