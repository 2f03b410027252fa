"""Cells as rows of a table and of a JSON document, where an infinite number is null; and their names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.estimation.estimators import Cells
from protocols import Campaign, Question
from protocols.document.questions import PAIR, RIGHT, SCORE
from protocols.document.schema import MISSING, CategoricalFeature, Feature


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


def cell_names(campaign: Campaign, question: Question) -> list[str] | None:
    """Return the names of the values of a question's cells; of a model whether it is right, or where its score lies."""
    if question.kind == RIGHT:
        return ["wrong", "right"]
    if question.kind == SCORE:
        return score_names(campaign)
    return value_names(campaign.feature(question.feature)) if question.kind == PAIR else None


def score_names(campaign: Campaign) -> list[str]:
    """Return the names of the places of the score of an evaluation round's model: its bins, or the class it says."""
    evaluation, classes = campaign.evaluation, campaign.label.classes
    if evaluation is None:
        raise ValueError(f"campaign {campaign.id} is no evaluation round")
    if evaluation.edges is None:
        return [f"says {name}" for name in classes]
    edges = [f"{edge:g}" for edge in evaluation.edges]
    inner = [f"({low}, {high}]" for low, high in pairwise(edges)]
    return [f"up to {edges[0]}", *inner, f"above {edges[-1]}"]


def value_names(feature: Feature) -> list[str]:
    """Names of what there is to answer about a discrete feature, bins as intervals."""
    if isinstance(feature, CategoricalFeature):
        return [*feature.values, *[MISSING] * feature.missing]
    edges = [feature.low, *feature.inner_edges, feature.high]
    closing = [")"] * (feature.size - 1) + ["]"]
    bins = [f"[{low:g}, {high:g}{close}" for low, high, close in zip(edges, edges[1:], closing, strict=False)]
    return [*bins, *[MISSING] * feature.missing]
