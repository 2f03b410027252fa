"""Fidelity ``vector``: one row a device, on arrays, through the wire's payload bytes and the aggregator's counting."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from ldp_aggregator.counting.decoding import count
from ldp_aggregator.counting.tally import Tally
from ldp_aggregator.mechanisms import facts_of
from protocols import Campaign, Question
from simulations.fidelities.items import Columns, Integers

_CELLS_AT_ONCE: Final = 1 << 21
"""Cells (devices times domain size) perturbed at once, so that memory stays flat however many devices there are."""

_DEVICES_AT_ONCE: Final = 1 << 20


def simulate_vector(columns: Columns, rng: np.random.Generator, devices: int | None = None) -> Tally:
    """The tally of one report (``answers: "one"``) or one per group (``"all"``) from every device.

    ``devices`` None makes every row a device; a number draws the owner of each device among the rows, independently.
    """
    if devices is None:
        return _answer(columns, np.arange(len(columns)), rng)
    tally = Tally(columns.campaign)
    for start in range(0, devices, _DEVICES_AT_ONCE):
        owners = rng.integers(0, len(columns), size=min(_DEVICES_AT_ONCE, devices - start))
        tally.merge(_answer(columns, owners, rng))
    return tally


def draw_questions(campaign: Campaign, devices: int, rng: np.random.Generator) -> Iterator[tuple[Question, Integers]]:
    """Each question with the devices that answer it, drawn by weight without looking at any record."""
    for pool in pools(campaign):
        yield from _draw(pool, devices, rng)


def pools(campaign: Campaign) -> tuple[Sequence[Question], ...]:
    """The sets of questions of which a device answers one each."""
    return campaign.groups if campaign.privacy.answers == "all" else (campaign.questions,)


def _answer(columns: Columns, owners: Integers, rng: np.random.Generator) -> Tally:
    tally = Tally(columns.campaign)
    for question, positions in draw_questions(columns.campaign, len(owners), rng):
        step = max(1, _CELLS_AT_ONCE // question.domain_size)
        for start in range(0, len(positions), step):
            rows = owners[positions[start : start + step]]
            payloads = facts_of(question.mechanism).perturb(columns.items(question, rows, rng), rng)
            tally.add(question.index, len(rows), count(question, payloads))
    return tally


def _draw(pool: Sequence[Question], devices: int, rng: np.random.Generator) -> Iterator[tuple[Question, Integers]]:
    if len(pool) == 1:
        yield pool[0], np.arange(devices)
        return
    bounds = np.cumsum([question.weight for question in pool])
    drawn = np.searchsorted(bounds, rng.integers(0, bounds[-1], size=devices), side="right")
    order = np.argsort(drawn, kind="stable")
    starts = np.searchsorted(drawn[order], np.arange(len(pool) + 1))
    for position, question in enumerate(pool):
        yield question, order[starts[position] : starts[position + 1]]
