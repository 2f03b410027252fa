"""The people to ask, whose reports must be hard to tell apart.

The same in every audit of a document: every class; the first and the last value of everything; up to 16 values of each
feature in turn, of more a lot draws which; numbers inside, at and far outside the bounds, infinities and what is no
number; texts that nobody declared, values of a wrong type, features that are missing alone or together, records that
cannot be read.

And people whose records are drawn anew by every audit, so that no client knows whom it will be asked for. Their
classes, values and ranges of numbers are chosen so that as many *pairs* of them as possible stand in one record
together, those of the people who are asked in any case not counted again: what a client does for two values together
shows, although nobody could ask for all records. Within its range a number is uniform.

A campaign with windows is asked through whole lives: every device in every window, with the record that it has then.
The promise is about any two lives. So people whose records change between windows are asked beside those whose records
stand still, and all that a device sends in its life, with the window in which it sends it, is one observation.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations, islice, zip_longest
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np

from ldp_aggregator.audit.asking.black_box import Answer, Client, Person, UnreadableRecord
from ldp_aggregator.audit.asking.features import AskedFeature, classes_of, feature_of

Document = Mapping[str, Any]
T = TypeVar("T")

MOST_PEOPLE: Final = 72
"""With more to ask, every feature has its share of them."""

_CLASSES: Final = 32
_BOTH_ENDS: Final = 16
"""Classes of which both ends of the features are asked; of further ones one end each, in turn."""

_ODD: Final = (None, "", "a text that nobody declared", True, 7, -0.0, [1], {"a": 1}, math.nan, math.inf, -math.inf)


def key_of(person: Person) -> str:
    return json.dumps(person.to_json(), sort_keys=True)


def people_of(document: Document, rng: np.random.Generator) -> tuple[Person, ...]:
    """List the people to ask about a document, the most telling first; all different."""
    features, classes = _features(document), spread(classes_of(document), _CLASSES)
    ends = [{feature.name: feature.ends[end] for feature in features} for end in (0, 1)]
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


def _features(document: Document) -> list[AskedFeature]:
    return [feature_of(declared) for declared in document["features"]]


def _all_at_once(features: Sequence[AskedFeature]) -> Iterator[Mapping[str, object]]:
    """Records in which every feature is odd in the same way, and one that has more than was asked for."""
    names = [feature.name for feature in features]
    yield {}
    yield UnreadableRecord({}, names)
    for odd in _ODD:
        yield dict.fromkeys(names, odd)
    for sign in (1, -1):
        yield {feature.name: feature.far(sign) for feature in features}
    yield {feature.name: feature.ends[0] for feature in features} | {"a feature that nobody declared": 1}


def _in_turn(
    features: Sequence[AskedFeature], ends: Sequence[Mapping[str, object]], rng: np.random.Generator
) -> Iterator[Mapping[str, object]]:
    """Records of which one feature differs from the first person's, one of each feature after the other."""
    for row in zip_longest(*(list(_alone(feature, ends, rng)) for feature in features)):
        yield from (record for record in row if record is not None)


def _alone(
    feature: AskedFeature, ends: Sequence[Mapping[str, object]], rng: np.random.Generator
) -> Iterator[Mapping[str, object]]:
    first, last = ends
    name = feature.name
    yield {other: value for other, value in first.items() if other != name}
    yield {name: last[name]}
    yield {**last, name: feature.far(1)}
    yield UnreadableRecord({other: value for other, value in last.items() if other != name}, [name])
    for number, value in enumerate(feature.between(rng)):
        yield {**ends[number % 2], name: value}
    yield {**first, name: "a text that nobody declared"}
    yield {**last, name: math.nan}
    yield {**first, name: feature.far(-1)}


Pair = tuple[int, int, int, int]
"""A place and what stands there, and another's."""

DRAWN: Final = 24
"""People whose records are drawn."""

DRAWN_SHARE: Final = 8
"""They are asked an eighth as often as the others."""

_TRIES: Final = 32
"""Records of which the one with the most new pairs is taken."""

_PLACES: Final = 32
"""Class and features among which pairs are counted; with more, by lot, others for every record."""


def drawn_people(
    document: Document, others: Sequence[Person], rng: np.random.Generator, count: int = DRAWN
) -> tuple[Person, ...]:
    """At most so many people, all different and none among ``others``, with a value for every feature."""
    features, classes = _features(document), classes_of(document)
    covered: set[Pair] = set()
    for person in others:
        own_cells = [classes.index(person.label), *(_cell(feature, person) for feature in features)]
        covered |= _pairs(own_cells, range(len(own_cells))[:_PLACES])
    met = [np.zeros(size, dtype=np.int64) for size in (len(classes), *(of.cells for of in features))]
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
        record = {of.name: of.drawn(cell, rng) for of, cell in zip(features, cells, strict=True)}
        person = Person(record, classes[label])
        people[key_of(person)] = person
    keys = {key_of(person) for person in others}
    return tuple(person for key, person in people.items() if key not in keys)


def _cell(feature: AskedFeature, person: Person) -> int | None:
    """The cell of a person's value; None where it is odd."""
    return None if isinstance(person.record, UnreadableRecord) else feature.cell_of(person.record.get(feature.name))


def _pairs(cells: Sequence[int | None], places: Sequence[int] | Any) -> set[Pair]:
    placed = [(int(place), cell) for place in places if (cell := cells[place]) is not None]
    return {(*one, *other) for one, other in combinations(placed, 2)}


WINDOWS: Final = 4
"""Windows of an audit, whatever the campaign has: a life of so many windows has every kind of change in it."""

_FROM: Final = "2027-01-01T00:00:00Z"
_NOON: Final = "2027-01-{:02d}T12:00:00Z"
"""Windows are days, and devices are asked at noon."""


@dataclass(frozen=True)
class Lives:
    """A series as an audit asks it: clients get ``document``, the campaign's with windows of a day.

    In ``value`` the questions of every window stand one after the other, as reports number them, each with its window.
    """

    document: str
    value: Document

    @classmethod
    def of(cls, document: str) -> Lives | None:
        """The lives in a document's campaign; None where it has no windows."""
        value: dict[str, Any] = json.loads(document)
        if value.get("windows") is None:
            return None
        value["windows"] = {"from": _FROM, "length": "P1D", "count": WINDOWS}
        questions = [{**question, "window": window} for window in range(WINDOWS) for question in value["questions"]]
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        return cls(text, {**value, "questions": questions})

    def people(self, people: Sequence[Person]) -> tuple[Person, ...]:
        """The people, and some of them who become each other from one window to the next."""
        first, *others = people[:4]
        changing: list[Person] = []
        for other in others:
            lives = ((other,) * 3, (first, other, other), (first, first, other), (other, first, other))
            changing += [replace(first, later=later) for later in lives]
            changing.append(replace(other, later=(first, other, first)))
        return (*people, *changing)

    def client(self, client: Client) -> Client:
        """The client as one that is asked for lives.

        The answer of a fresh device has an entry for every window, empty where it sends nothing new, and at the end how
        often it repeated itself in each, a byte a window: repeating is allowed, by a rule that knows no record. With a
        storage, where devices are asked again at any time, it is what the device sends, once each.
        """

        def ask(document: str, people: Sequence[Person], storage: Path | None = None, /) -> list[Answer]:
            turns = [
                replace(
                    person.in_window(window), device=person.device or f"life {number}", now=_NOON.format(window + 1)
                )
                for window in range(WINDOWS)
                for number, person in enumerate(people)
            ]
            answers = client(document, turns, storage)
            return [_life(answers[number :: len(people)], storage is None) for number in range(len(people))]

        return ask


def _life(answers: Sequence[Answer], in_windows: bool) -> Answer:
    """Requests of a device's life, each upload once, and where ``in_windows`` when, and when again."""
    if not any(answers):
        return answers[0]
    uploads: list[bytes] = []
    repeats: list[int] = []
    sent: set[bytes] = set()
    for answer in answers:
        new = [upload for upload in dict.fromkeys(answer) if upload not in sent]
        sent.update(new)
        uploads += new or ([b""] if in_windows else [])
        repeats.append(min(len(answer) - len(new), 255))
    return (*uploads, bytes(repeats)) if in_windows else tuple(uploads)


def answers_twice(answers: Sequence[Answer]) -> str | None:
    """Find devices that send more than once in their life. None where there is none."""
    twice = sum(sum(map(bool, answer)) > 1 for answer in answers)
    return f"{twice} of {len(answers)} devices sent more than one answer in their life" if twice else None
