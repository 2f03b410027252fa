"""Cells as rows of a table and of a JSON document, where an infinite number is null; and their names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.estimation.intervals import Cells
from ldp_protocols import Campaign, Question
from ldp_protocols.document.questions import PAIR, RIGHT, SCORE


def cell_rows(cells: Cells, per_liar: NDArray[np.float64] | float) -> list[dict[str, Any]]:
    """Return one row per cell."""
    reach = np.broadcast_to(per_liar, cells.value.shape)
    columns = {"estimate": cells.value, "variance": cells.variance, "low": cells.low, "high": cells.high}
    columns["per_liar"] = reach
    return [dict(zip(columns, row, strict=True)) for row in zip(*(c.tolist() for c in columns.values()), strict=True)]


def named_rows(
    values: Iterable[str | None],
    classes: Sequence[str | None],
    rows: Iterable[dict[str, Any]],
    processed: NDArray[np.float64] | None,
) -> list[dict[str, Any]]:
    """Return rows of cells with their value and class, and the ``processed`` estimate."""
    places = [(value, of_class) for value in values for of_class in classes]
    use = [None] * len(places) if processed is None else processed.tolist()
    return [
        {"value": value, "class": of_class, **row, "processed": one}
        for (value, of_class), row, one in zip(places, rows, use, strict=True)
    ]


def finite_rows(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows for JSON, which knows no infinity: null stands for it."""
    return [{k: None if isinstance(v, float) and not np.isfinite(v) else v for k, v in row.items()} for row in rows]


def cell_names(campaign: Campaign, question: Question) -> list[str] | None:
    """Return the names of the values of a question's cells; of a model whether it is right, or where its score lies."""
    if question.kind == RIGHT:
        return ["wrong", "right"]
    if question.kind == SCORE and campaign.evaluation is not None:
        return [*campaign.evaluation.names]
    return [*campaign.feature(question.feature).cell_names] if question.kind == PAIR else None
