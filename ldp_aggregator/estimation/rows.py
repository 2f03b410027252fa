"""Cells as rows of a table and of a JSON document, where an infinite number is null; and their names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.estimation.estimators import Cells
from protocols import Campaign, Question
from protocols.document.questions import MARGINAL, PAIR, SCORE, SIGNS, SQUARE, TRIPLE, VALUE, XOR
from protocols.document.schema import MISSING, CategoricalFeature, Feature

_IN_WORDS: Final = {SIGNS: "value and square", TRIPLE: "two features"}


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


def kind_in_words(kind: str) -> str:
    """What a kind of question asks for, where its name in a document does not say so."""
    return _IN_WORDS.get(kind, kind)


def cell_names(campaign: Campaign, question: Question) -> list[str] | None:
    """Names of the values of a question's cells; of an xor whether both indices are one, of signs the two sums."""
    if question.kind == SIGNS:
        return [VALUE, SQUARE]
    if question.kind == XOR:
        return ["alike", "crossed"]
    if question.kind == SCORE:
        return [f"{campaign.candidates[question.group].name} is {told}" for told in ("wrong", "right")]
    if question.kind not in (PAIR, MARGINAL, TRIPLE):
        return None
    names = value_names(campaign.feature(question.feature))
    if question.kind != TRIPLE:
        return names
    return [f"{one}, {other}" for one in names for other in value_names(campaign.feature(question.other))]


def value_names(feature: Feature) -> list[str]:
    """Names of what there is to answer about a discrete feature, bins as intervals."""
    if isinstance(feature, CategoricalFeature):
        return [*feature.values, *[MISSING] * feature.missing]
    edges = [feature.low, *feature.inner_edges, feature.high]
    closing = [")"] * (feature.size - 1) + ["]"]
    bins = [f"[{low:g}, {high:g}{close}" for low, high, close in zip(edges, edges[1:], closing, strict=False)]
    return [*bins, *[MISSING] * feature.missing]
