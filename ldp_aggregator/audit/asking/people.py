"""The people to ask, whose reports must be hard to tell apart.

The same in every audit of a document: every class; the first and the last value of everything; up to 16 values of each
feature in turn, of more a lot draws which; numbers inside, at and far outside the bounds, infinities and what is no
number; texts that nobody declared, values of a wrong type, features that are missing alone or together, records that
cannot be read.

And people whose records are drawn anew by every audit, so that no client knows whom it will be asked for. Their
classes, values and ranges of numbers are chosen so that as many *pairs* of them as possible stand in one record
together, those of the people who are asked in any case not counted again: what a client does for two values together
shows, although nobody could ask for all records. Within its range a number is uniform.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, combinations, islice, zip_longest
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


Pair = tuple[int, int, int, int]
"""A place and what stands there, and another's."""

DRAWN: Final = 24
"""People whose records are drawn."""

DRAWN_SHARE: Final = 8
"""They are asked an eighth as often as the others."""

RANGES: Final = 8
"""Equal parts of a number's range, of which each is a value."""

_TRIES: Final = 32
"""Records of which the one with the most new pairs is taken."""

_PLACES: Final = 32
"""Class and features among which pairs are counted; with more, by lot, others for every record."""


def drawn_people(
    document: Document, asked: Sequence[Person], rng: np.random.Generator, count: int = DRAWN
) -> tuple[Person, ...]:
    """At most so many people with a value for every feature, all different from each other and from who is ``asked``
    in any case.
    """
    features, classes = document["features"], document["label"]["classes"]
    values = (len(of["values"]) if of["kind"] == "categorical" else RANGES for of in features)
    covered: set[Pair] = set()
    for person in asked:
        cells = [classes.index(person.label), *(_cell(feature, person) for feature in features)]
        covered |= _pairs(cells, range(len(cells))[:_PLACES])
    met = [np.zeros(size, dtype=np.int64) for size in (len(classes), *values)]
    people: dict[str, Person] = {}
    for _ in range(count):
        places = np.sort(rng.permutation(len(met))[:_PLACES])
        # What was drawn least often comes next, so that values are met in turn, in an order that is drawn.
        tries = [[int(rng.choice(np.flatnonzero(times == times.min()))) for times in met] for _ in range(_TRIES)]
        new = [_pairs(cells, places) - covered for cells in tries]
        best = int(np.argmax([len(pairs) for pairs in new]))
        covered |= new[best]
        for times, cell in zip(met, tries[best], strict=True):
            times[cell] += 1
        label, *cells = tries[best]
        record = {of["name"]: _value(of, cell, rng) for of, cell in zip(features, cells, strict=True)}
        person = Person(record, classes[label])
        people[key_of(person)] = person
    keys = {key_of(person) for person in asked}
    return tuple(person for key, person in people.items() if key not in keys)


def _cell(feature: Mapping[str, Any], person: Person) -> int | None:
    """The number of a person's value, or of its range; None where it is odd."""
    if isinstance(person.record, UnreadableRecord):
        return None
    value = person.record.get(feature["name"])
    if feature["kind"] == "categorical":
        return feature["values"].index(value) if isinstance(value, str) and value in feature["values"] else None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not feature["low"] <= value <= feature["high"]:
        return None
    share = (value - feature["low"]) / (feature["high"] - feature["low"])
    return min(RANGES - 1, int(RANGES * share))


def _pairs(cells: Sequence[int | None], places: Sequence[int] | Any) -> set[Pair]:
    known = [(int(place), cell) for place in places if (cell := cells[place]) is not None]
    return {(*one, *other) for one, other in combinations(known, 2)}


def _value(feature: Mapping[str, Any], cell: int, rng: np.random.Generator) -> object:
    if feature["kind"] == "categorical":
        return feature["values"][cell]
    low, high = feature["low"], feature["high"]
    return float(low + (high - low) * (cell + rng.random()) / RANGES)
