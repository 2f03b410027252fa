"""The people to ask, whose reports must be hard to tell apart.

The same in every audit of a document: every class; the first and the last value of everything; up to 16 values of each
feature in turn, of more a lot draws which; numbers inside, at and far outside the bounds, infinities and what is no
number; texts that nobody declared, values of a wrong type, features that are missing alone or together, records that
cannot be read.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice, zip_longest
from typing import Any, Final, TypeVar

import numpy as np

from ldp_aggregator.audit.asking.black_box import Person, UnreadableRecord

Document = Mapping[str, Any]
T = TypeVar("T")

MOST_PEOPLE: Final = 72
"""With more to ask, every feature has its share of them."""

_CLASSES: Final = 32
_BETWEEN: Final = 14
_BOTH_ENDS: Final = 16
"""Classes of which both ends of the features are asked; of further ones one end each, in turn."""

_ODD: Final = (None, "", "a text that nobody declared", True, 7, -0.0, [1], {"a": 1}, math.nan, math.inf, -math.inf)
_FAR: Final = 20
"""A number far outside lies so many ranges beyond the bounds."""


def key_of(person: Person) -> str:
    return json.dumps(person.to_json(), sort_keys=True)


def people_of(document: Document, rng: np.random.Generator) -> tuple[Person, ...]:
    """List the people to ask about a document, the most telling first; all different."""
    features, classes = document["features"], spread(document["label"]["classes"], _CLASSES)
    ends = [{f["name"]: ends_of(f)[end] for f in features} for end in (0, 1)]
    main = [
        Person(ends[end], name)
        for number, name in enumerate(classes)
        for end in ((0, 1) if number < _BOTH_ENDS else (number % 2,))
    ]
    others = chain(_all_at_once(features), _in_turn(features, ends, rng))
    labelled = (Person(record, classes[number % len(classes)]) for number, record in enumerate(others))
    found = {key_of(person): person for person in chain(main, islice(labelled, max(0, MOST_PEOPLE - len(main))))}
    return tuple(found.values())


def spread(values: Sequence[T], most: int) -> list[T]:
    """At most ``most`` of the values, the first and the last among them."""
    if len(values) <= most:
        return list(values)
    return [values[round(place * (len(values) - 1) / (most - 1))] for place in range(most)]


def ends_of(feature: Mapping[str, Any]) -> tuple[object, object]:
    """The first and the last value of a feature."""
    if feature["kind"] == "categorical":
        return feature["values"][0], feature["values"][-1]
    return feature["low"], feature["high"]


def between(feature: Mapping[str, Any], rng: np.random.Generator) -> list[object]:
    """Up to 14 values between the ends of a feature: its own, or the middles of its bins, or three numbers. Where there
    are more, a lot draws which.
    """
    if feature["kind"] == "categorical":
        return _some(feature["values"][1:-1], rng)
    low, high = feature["low"], feature["high"]
    bins = feature.get("bins")
    shares = [0.25, 0.5, 0.75] if bins is None else [(cell + 0.5) / bins for cell in _some(range(1, bins - 1), rng)]
    return [low + (high - low) * share for share in shares]


def _some(values: Sequence[T], rng: np.random.Generator) -> list[T]:
    return [values[place] for place in sorted(rng.permutation(len(values))[:_BETWEEN])]


def _all_at_once(features: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, object]]:
    """Records in which every feature is odd in the same way, and one that has more than was asked for."""
    names = [feature["name"] for feature in features]
    yield {}
    yield UnreadableRecord({}, names)
    for odd in _ODD:
        yield dict.fromkeys(names, odd)
    for sign in (1, -1):
        yield {feature["name"]: _far(feature, sign) for feature in features}
    yield {feature["name"]: ends_of(feature)[0] for feature in features} | {"a feature that nobody declared": 1}


def _in_turn(
    features: Sequence[Mapping[str, Any]], ends: Sequence[Mapping[str, object]], rng: np.random.Generator
) -> Iterator[Mapping[str, object]]:
    """Records of which one feature differs from the first person's, one of each feature after the other."""
    for row in zip_longest(*(list(_alone(feature, ends, rng)) for feature in features)):
        yield from (record for record in row if record is not None)


def _alone(
    feature: Mapping[str, Any], ends: Sequence[Mapping[str, object]], rng: np.random.Generator
) -> Iterator[Mapping[str, object]]:
    first, last = ends
    name = feature["name"]
    yield {other: value for other, value in first.items() if other != name}
    yield {name: last[name]}
    yield {**last, name: _far(feature, 1)}
    yield UnreadableRecord({other: value for other, value in last.items() if other != name}, [name])
    for number, value in enumerate(between(feature, rng)):
        yield {**ends[number % 2], name: value}
    yield {**first, name: "a text that nobody declared"}
    yield {**last, name: math.nan}
    yield {**first, name: _far(feature, -1)}


def _far(feature: Mapping[str, Any], sign: int) -> object:
    """A number far outside; of a category, one that no list of values can hold."""
    if feature["kind"] == "categorical":
        return sign * 1e300
    width = feature["high"] - feature["low"]
    return feature["high"] + _FAR * width if sign > 0 else feature["low"] - _FAR * width
