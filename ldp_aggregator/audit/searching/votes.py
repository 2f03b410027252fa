"""What a person's record is worth to a candidate of an evaluation round: right or wrong, by the document alone.

Naive Bayes over what needs no convention: declared texts, and numbers at the ends of their bounds. Anything else of a
candidate's features, and what is decided by less than rounding, is not known here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ldp_aggregator.audit.asking.black_box import Person

_CLEAR: Final = 1e-6


def vote_of(document: Mapping[str, Any], question: Mapping[str, Any], person: Person) -> int | None:
    """1 where the candidate that the question is about says the person's class, 0 where another; None where that is
    not known here.
    """
    model = document["candidates"][question["group"]]["model"]
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
        weight = feature.get("weight", 1)
        sums = [total + weight * term for total, term in zip(sums, terms, strict=True)]
    first, second = sorted(sums)[:-3:-1]
    if not first > second + _CLEAR:
        return None
    return int(model["classes"][sums.index(first)] == person.label)


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
