"""A published model as a row of a table: what its document says of its training."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ldp_aggregator.store.contract import PublishedModel


@dataclass(frozen=True)
class ModelRow:
    """``accuracy`` with its 95 % interval where an evaluation round ran; what a document does not carry is None."""

    version: int
    created: datetime
    reports: int | None
    epsilon: float | None
    published_epsilon: float | None
    published_delta: float | None
    accuracy: float | None
    low: float | None
    high: float | None
    round: str | None
    """The id of the evaluation round."""


def model_row(model: PublishedModel) -> ModelRow:
    """What the model's document says; it may be of a version that says less."""
    try:
        training = _object(json.loads(model.document).get("training"))
    except (ValueError, AttributeError):
        training = {}
    published, evaluation = _object(training.get("published")), _object(training.get("evaluated"))
    reports = training.get("reports")
    accuracy = _object(evaluation.get("accuracy"))
    return ModelRow(
        model.version,
        model.created,
        reports if isinstance(reports, int) else None,
        _number(_object(training.get("guarantee")).get("epsilon")),
        _number(published.get("epsilon")),
        _number(published.get("delta")),
        _number(accuracy.get("value")),
        _number(accuracy.get("low")),
        _number(accuracy.get("high")),
        _text(evaluation.get("campaign")),
    )


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
