"""What is kept of a private k-means, and its JSON: public features, centres on the grid, promise and spending."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.learning.guarantee import Guarantee
from ldp_aggregator.trainers.statistics import GRID
from protocols.document.schema import ContinuousFeature, read_feature
from protocols.errors import ModelError, ProtocolError
from protocols.fields import Fields, describe, parse_json

Integers = NDArray[np.int64]

VERSION: Final = 1
KIND: Final = "k-means"
_MOST: Final = 1000
"""Features, as of a schema; and clusters, so that a document has a bound."""


@dataclass(frozen=True)
class Clusters:
    features: tuple[ContinuousFeature, ...]
    centres: Integers
    """In steps of 1 / GRID of half a range, shape (clusters, features)."""
    guarantee: Guarantee
    budget: Mapping[str, float]


def write_clusters(clusters: Clusters) -> str:
    return json.dumps(
        {
            "version": VERSION,
            "kind": KIND,
            "features": [feature.to_json() for feature in clusters.features],
            "grid": GRID,
            "centres": clusters.centres.tolist(),
            "guarantee": clusters.guarantee.to_json(),
            "budget": dict(clusters.budget),
        },
        ensure_ascii=False,
        separators=(",", ":"),
    )


def read_clusters(text: bytes | str) -> Clusters:
    """The inverse of :func:`write_clusters`. Raises ModelError, which names the field."""
    fields = Fields(parse_json(text, _refuse), "", _refuse)
    fields.integer("version", least=VERSION, most=VERSION)
    fields.choice("kind", (KIND,))
    fields.integer("grid", least=GRID, most=GRID)
    values = fields.sequence("features", least=1, most=_MOST)
    features = tuple(_feature(value, f"features[{position}]") for position, value in enumerate(values))
    rows = fields.sequence("centres", least=1, most=_MOST)
    centres = [_centre(row, f"centres[{position}]", len(features)) for position, row in enumerate(rows)]
    guarantee = _guarantee(fields.raw("guarantee"))
    budget = Fields(fields.raw("budget"), "budget", _refuse)
    spent = {name: float(budget.number(name)) for name in fields.raw("budget")}
    fields.finish()
    return Clusters(features, np.array(centres, dtype=np.int64), guarantee, spent)


def _refuse(field: str, problem: str) -> ProtocolError:
    return ModelError(f"{field}: {problem}")


def _feature(value: Any, place: str) -> ContinuousFeature:
    feature = read_feature(value, place, 1, _refuse)
    if not isinstance(feature, ContinuousFeature) or feature.bins is not None:
        raise _refuse(place, "must be continuous, without bins")
    return feature


def _centre(row: Any, place: str, features: int) -> list[int]:
    whole = isinstance(row, list) and all(type(one) is int and abs(one) <= GRID for one in row)
    if not whole or len(row) != features:
        raise _refuse(place, f"must be {features} whole numbers from {-GRID} to {GRID}, not {describe(row)}")
    return list(row)


def _guarantee(value: Any) -> Guarantee:
    fields = Fields(value, "guarantee", _refuse)
    epsilon = float(fields.number("epsilon")) if fields.has("epsilon") else fields.raw("epsilon")
    public = tuple(fields.sequence("public", least=0, most=_MOST))
    guarantee = Guarantee(epsilon, float(fields.number("delta")), fields.text("relation"), public)
    fields.finish()
    return guarantee
