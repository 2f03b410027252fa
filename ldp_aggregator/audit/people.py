"""Whom to ask: pairs of people whose reports must be hard to tell apart, derived from the document alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ldp_aggregator.audit.black_box import Person

Document = Mapping[str, Any]
Pair = tuple[Person, Person]


def pairs(document: Document) -> tuple[Pair, ...]:
    """Whole records that differ in every attribute and the label; in one of both; and a record with nothing in it."""
    first, last = ({f["name"]: _value(f, end) for f in document["features"]} for end in (0, -1))
    yes, *_, no = document["label"]["classes"]
    one, other = Person(first, yes), Person(last, no)
    return (
        (one, other),
        (one, Person(first, no)),
        (Person(first, no), other),
        (one, Person({}, yes)),
    )


def _value(feature: Mapping[str, Any], end: int) -> object:
    if feature["kind"] == "categorical":
        return feature["values"][end]
    return (feature["low"], feature["high"])[end]
