"""The event of each mechanism whose likelihood ratio is the whole of exp(epsilon), as its publication tells.

It is fixed before any report is seen, so all trials go into its bound. For thresholding (``the``) it is the same event
as for any unary encoding, and its ratio lies below exp(epsilon).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.audit.black_box import Person
from ldp_aggregator.audit.people import Document

Rows = NDArray[np.uint8]
Flags = NDArray[np.bool_]

_BITMAPS = ("sue", "oue", "the", "ss")


class Moment(NamedTuple):
    """A value in [-1, 1] of a class."""

    value: float
    cell: int


def tight_event(document: Document, question: int, one: Person, other: Person, payloads: Rows) -> Flags | None:
    """Which payloads of ``question`` (shape (n, width)) say ``one`` rather than ``other`` as loudly as is possible.

    None where this pair has no such event: both are encoded alike, or at random.
    """
    asked = document["questions"][question]
    first, second = _item(document, asked, one), _item(document, asked, other)
    if first is None or second is None or first == second:
        return None
    mechanism = asked["mechanism"]
    if isinstance(first, Moment) and isinstance(second, Moment):
        if mechanism == "laplace":
            return _beyond(payloads.view("<i4"), first, second, 1 << asked["parameters"]["grid"])
        loud = _integers(payloads[:, :-1]) == first.cell
        says = np.asarray(loud & (payloads[:, -1] == (first.value > second.value)))
        return says if first.cell == second.cell else None
    if mechanism == "de":
        return np.asarray(_integers(payloads) == first)
    if mechanism in _BITMAPS:
        bits = np.unpackbits(payloads, axis=1, bitorder="little").astype(np.bool_)
        return np.asarray(bits[:, first] & ~bits[:, second])
    if mechanism == "she":
        cells = payloads.view("<i4")
        return np.asarray((cells[:, first] >= 1) & (cells[:, second] <= 0))
    return None


def _beyond(cells: NDArray[np.int32], first: Moment, second: Moment, unit: int) -> Flags:
    """Every cell lies at or beyond the first item's, seen from the second's."""
    flags = np.ones(len(cells), dtype=np.bool_)
    for cell in {first.cell, second.cell}:
        mine, theirs = (item.value * unit if item.cell == cell else 0 for item in (first, second))
        flags &= cells[:, cell] >= mine if mine > theirs else cells[:, cell] <= mine
    return flags


def _integers(payloads: Rows) -> NDArray[np.int64]:
    """Unsigned little-endian."""
    value = np.zeros(len(payloads), dtype=np.int64)
    for place in range(payloads.shape[1]):
        value += payloads[:, place].astype(np.int64) << (8 * place)
    return value


def _item(document: Document, asked: Mapping[str, Any], person: Person) -> Any:
    """What the person's record is encoded as where no coin takes part: an index or a :class:`Moment`."""
    classes = document["label"]["classes"]
    label = classes.index(person.label)
    if asked["kind"] == "label":
        return label
    declared = {feature["name"]: feature for feature in document["features"]}
    feature, value = declared.get(asked["feature"]), person.record.get(asked["feature"])
    if feature is None or value is None or asked["kind"] == "product":
        return None
    if asked["kind"] == "pair":
        index = (
            feature["values"].index(value) if "values" in feature else (value != feature["low"]) * (feature["bins"] - 1)
        )
        return index * len(classes) + label
    at_top = asked["kind"] == "square" or value != feature["low"]
    return 2 * label + at_top if asked["encoding"] == "sign" else Moment(1.0 if at_top else -1.0, label)
