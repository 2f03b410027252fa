"""What a person's record answers in an evaluation round, by the document alone: is its model right, what does it say?

Naive Bayes over what needs no convention: declared texts, and numbers at the ends of their bounds. Anything else of the
model's features, and what is decided by less than rounding, is not known here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ldp_aggregator.audit.asking.black_box import Person

_CLEAR: Final = 1e-6


def answer_of(document: Mapping[str, Any], question: Mapping[str, Any], person: Person) -> int | None:
    """Return whether the model says the person's class (1 or 0), or the place of its score with the class, as the
    question asks; None where that is not known here.
    """
    model, edges = document["evaluation"]["model"], document["evaluation"]["edges"]
    sums = _sums(model, person)
    if sums is None:
        return None
    first, second = sorted(sums)[:-3:-1]
    label = model["classes"].index(person.label)
    if question["kind"] == "right" or edges is None:
        if not first > second + _CLEAR:
            return None
        said = sums.index(first)
        return int(said == label) if question["kind"] == "right" else int(said * len(sums) + label)
    odds = sums[1] - sums[0]
    if not all(abs(odds - edge) > _CLEAR for edge in edges):
        return None
    return int(sum(odds > edge for edge in edges) * 2 + label)


def _sums(model: Mapping[str, Any], person: Person) -> list[float] | None:
    """Return the joint log likelihood of every class."""
    if model.get("projection") is not None:
        return None
    sums = [_log(share) for share in model["prior"]]
    for feature in model["features"]:
        try:
            value = person.record.get(feature["name"])
        except RuntimeError:
            return None
        if value is None:
            continue
        terms = _terms(feature, value)
        if terms is None:
            return None
        sums = [total + term for total, term in zip(sums, terms, strict=True)]
    return None if max(sums) == -math.inf else sums


def _terms(feature: Mapping[str, Any], value: object) -> Sequence[float] | None:
    """Ln P(value | class) of every class."""
    if feature["kind"] == "categorical":
        known = isinstance(value, str) and value in feature["values"]
        return [_log(share) for share in feature["likelihood"][feature["values"].index(value)]] if known else None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value not in (feature["low"], feature["high"]):
        return None
    if feature["kind"] == "continuous":
        return [_log(share) for share in feature["likelihood"][-1 if value == feature["high"] else 0]]
    return [
        -0.5 * math.log(2 * math.pi * variance) - (value - mean) ** 2 / (2 * variance)
        for mean, variance in zip(feature["mean"], feature["variance"], strict=True)
    ]


def _log(share: float) -> float:
    return math.log(share) if share > 0 else -math.inf
