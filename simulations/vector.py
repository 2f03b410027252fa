"""Fidelity ``vector``: one row a device, on arrays, through the wire's payload bytes and the aggregator's counting."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from ldp_aggregator.counting import count
from ldp_aggregator.tally import Tally
from protocols import Campaign, Question
from simulations.items import Columns, Integers
from simulations.perturbation import perturb_items

_CELLS_AT_ONCE: Final = 1 << 21
"""Cells (devices times domain size) perturbed at once, so that memory stays flat however many devices there are."""


def simulate_vector(columns: Columns, rng: np.random.Generator) -> Tally:
    """The tally of one report (``answers: "one"``) or one per group (``"all"``) from every row."""
    tally = Tally(columns.campaign)
    for question, rows in draw_questions(columns.campaign, len(columns), rng):
        step = max(1, _CELLS_AT_ONCE // question.domain_size)
        for start in range(0, len(rows), step):
            chunk = rows[start : start + step]
            payloads = perturb_items(question, columns.items(question, chunk, rng), rng)
            tally.add(question.index, len(chunk), count(question, payloads))
    return tally


def draw_questions(campaign: Campaign, devices: int, rng: np.random.Generator) -> Iterator[tuple[Question, Integers]]:
    """Each question with the devices that answer it, drawn by weight without looking at any record."""
    pools = campaign.groups if campaign.privacy.answers == "all" else (campaign.questions,)
    for pool in pools:
        yield from _draw(pool, devices, rng)


def _draw(pool: Sequence[Question], devices: int, rng: np.random.Generator) -> Iterator[tuple[Question, Integers]]:
    bounds = np.cumsum([question.weight for question in pool])
    drawn = np.searchsorted(bounds, rng.integers(0, bounds[-1], size=devices), side="right")
    order = np.argsort(drawn, kind="stable")
    starts = np.searchsorted(drawn[order], np.arange(len(pool) + 1))
    for position, question in enumerate(pool):
        yield question, order[starts[position] : starts[position + 1]]
