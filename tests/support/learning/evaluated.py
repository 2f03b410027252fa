"""A study to evaluate: a campaign, and a model with a known accuracy. Without numpy: devices are tested with it."""

from __future__ import annotations

from typing import Any

from protocols import Campaign

DESCRIBED: list[dict[str, Any]] = [
    {"name": "u", "kind": "categorical", "values": ["1", "2", "3"]},
    {"name": "v", "kind": "categorical", "values": ["p", "q"]},
    {"name": "size", "kind": "continuous", "low": 0, "high": 10},
]
FEATURES = [{**one, "missing": False} for one in DESCRIBED]
LABEL: dict[str, Any] = {"name": "y", "classes": ["a", "b"]}


def draft(**changes: Any) -> dict[str, Any]:
    base = {"version": 1, "title": "Learn", "label": LABEL, "features": FEATURES, "privacy": {"epsilon": 1}}
    return {**base, "study": "s", **changes}


def model(*features: dict[str, Any], prior: tuple[float, float] = (0.6, 0.4)) -> dict[str, Any]:
    head = {"version": 1, "kind": "naive-bayes", "label": "y", "classes": ["a", "b"], "prior": list(prior)}
    return {**head, "features": [*features]}


U = {**DESCRIBED[0], "likelihood": [[0.75, 0.01], [0.24, 0.24], [0.01, 0.75]]}
V = {**DESCRIBED[1], "likelihood": [[0.6, 0.3], [0.4, 0.7]]}
WRONG = {**DESCRIBED[0], "likelihood": U["likelihood"][::-1]}


def evaluation(*features: dict[str, Any], **changes: Any) -> Campaign:
    """A round about a model of these features, by default of both discrete ones."""
    asked = {"title": "How good?", "asks": "score", "evaluation": {"model": model(*(features or (U, V)))}}
    return Campaign.compile(draft(**asked | changes))
