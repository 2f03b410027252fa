"""People whose records are drawn anew by every audit, so that no client knows whom it will be asked for.

Their classes, values and ranges of numbers are chosen so that as many *pairs* of them as possible stand in one record
together, those of the people who are asked in any case not counted again: what a client does for two values together
shows, although nobody could ask for all records. Within its range a number is uniform.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, Final

import numpy as np

from ldp_aggregator.audit.asking.black_box import Person, UnreadableRecord
from ldp_aggregator.audit.asking.people import Document, key_of

Pair = tuple[int, int, int, int]
"""A place and what stands there, and another's."""

DRAWN: Final = 24
"""People whose records are drawn."""

SHARE: Final = 8
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
    sizes = [len(classes), *(_size(feature) for feature in features)]
    covered: set[Pair] = set()
    for person in asked:
        cells = [classes.index(person.label), *(_cell(feature, person) for feature in features)]
        covered |= _pairs(cells, range(len(cells))[:_PLACES])
    met = [np.zeros(size, dtype=np.int64) for size in sizes]
    people: dict[str, Person] = {}
    for _ in range(count):
        places = np.sort(rng.permutation(len(sizes))[:_PLACES])
        # What was drawn least often comes next, so that values are met in turn, in an order that is drawn.
        tries = [[_rarest(times, rng) for times in met] for _ in range(_TRIES)]
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


def _size(feature: Mapping[str, Any]) -> int:
    return len(feature["values"]) if feature["kind"] == "categorical" else RANGES


def _rarest(times: Any, rng: np.random.Generator) -> int:
    return int(rng.choice(np.flatnonzero(times == times.min())))


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
