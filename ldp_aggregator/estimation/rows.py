"""Cells as rows of a table and of a JSON document, where an infinite number is null."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.estimation.estimators import Cells


def rows_of(
    places: Sequence[tuple[str | None, str | None]],
    cells: Cells,
    per_liar: NDArray[np.float64],
    processed: NDArray[np.float64] | None,
) -> Iterable[dict[str, Any]]:
    """One row per cell, of which ``places`` are value and class."""
    for cell, (value, of_class) in enumerate(places):
        yield {
            "value": value,
            "class": of_class,
            "estimate": float(cells.value[cell]),
            "variance": float(cells.variance[cell]),
            "low": float(cells.low[cell]),
            "high": float(cells.high[cell]),
            "per_liar": float(per_liar[cell]),
            "processed": None if processed is None else float(processed[cell]),
        }


def cells_to_json(cells: Cells) -> list[dict[str, Any]]:
    return [
        finite_only({"estimate": v, "variance": s, "low": low, "high": high})
        for v, s, low, high in zip(
            *(a.tolist() for a in (cells.value, cells.variance, cells.low, cells.high)), strict=True
        )
    ]


def finite_only(row: dict[str, Any]) -> dict[str, Any]:
    return {key: None if isinstance(value, float) and not np.isfinite(value) else value for key, value in row.items()}
