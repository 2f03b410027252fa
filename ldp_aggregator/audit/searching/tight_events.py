"""The event of each mechanism whose likelihood ratio is the whole of exp(epsilon), as its publication tells.

It is fixed before any report is seen, so all trials go into its bound. For thresholding (``the``) it is the same event
as for any unary encoding, and its ratio lies below exp(epsilon). Beside it, what a mechanism would send without noise,
and what it can never send.

In an evaluation round a person's record answers, by the document alone: is its model right, what does it say?

Naive Bayes over what needs no convention: declared texts, and numbers at the ends of their bounds. Anything else of the
model's features, and what is decided by less than rounding, is not known here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.audit.asking.black_box import Person
from ldp_aggregator.audit.asking.features import AskedFeature, classes_of, feature_of
from ldp_aggregator.audit.asking.people import Document

_CLEAR: Final = 1e-6


def answer_of(document: Mapping[str, Any], question: Mapping[str, Any], person: Person) -> int | None:
    """The model's hit (1 or 0), or the place of its score with the class, as the question asks; None if unknown."""
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
    """The joint log likelihood of every class."""
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


def _terms(declared: Mapping[str, Any], value: object) -> Sequence[float] | None:
    """ln P(value | class) of every class."""
    feature = feature_of(declared)
    if "likelihood" in declared:
        index = feature.index_of(value)
        return None if index is None else [_log(share) for share in declared["likelihood"][index]]
    end = feature.end_of(value)
    if end is None:
        return None
    x = declared[("low", "high")[end]]
    return [
        -0.5 * math.log(2 * math.pi * variance) - (x - mean) ** 2 / (2 * variance)
        for mean, variance in zip(declared["mean"], declared["variance"], strict=True)
    ]


def _log(share: float) -> float:
    return math.log(share) if share > 0 else -math.inf


Rows = NDArray[np.uint8]
Flags = NDArray[np.bool_]
Question = Mapping[str, Any]

_BITMAPS: Final = ("sue", "oue", "the", "ss")
_NUMBERS: Final = ("she", "laplace")
_SCALES: Final = 16
"""A device cuts its noise at so many scales."""


class Moment(NamedTuple):
    """A value in [-1, 1] of a class."""

    value: float
    cell: int


Item = int | Moment


def tight_event(question: Question, first: Item, second: Item, payloads: Rows) -> Flags | None:
    """Flags of payloads, shape (n, width), that favour the first item most; None where no such event is known."""
    if first == second or not as_wide(question, payloads.shape[1]):
        return None
    mechanism = question["mechanism"]
    if isinstance(first, Moment) and isinstance(second, Moment):
        if mechanism == "laplace":
            return _beyond(words(payloads), first, second, 1 << question["parameters"]["grid"])
        loud = integers(payloads[:, :-1]) == first.cell
        says = np.asarray(loud & (payloads[:, -1] == (first.value > second.value)))
        return says if first.cell == second.cell else None
    if isinstance(first, Moment) or isinstance(second, Moment):
        return None
    if mechanism == "de":
        return np.asarray(integers(payloads) == first)
    if mechanism in _BITMAPS:
        bits = _bits(payloads)
        return np.asarray(bits[:, first] & ~bits[:, second])
    if mechanism == "she":
        cells = words(payloads)
        return np.asarray((cells[:, first] >= 1) & (cells[:, second] <= 0))
    return None


def without_noise(question: Question, item: Item) -> bytes | None:
    """The payload that tells the item in the clear. None where there is none, or no mechanism that is known here."""
    d, mechanism, parameters = question["domain_size"], question["mechanism"], question["parameters"]
    if isinstance(item, Moment):
        if mechanism == "onebit":
            return item.cell.to_bytes(_index_width(d), "little") + bytes([item.value > 0])
        cells = [round(item.value * (1 << parameters["grid"])) if c == item.cell else 0 for c in range(d)]
        return np.array(cells, dtype="<i4").tobytes() if mechanism == "laplace" else None
    if mechanism == "de":
        return item.to_bytes(_index_width(d), "little")
    if mechanism == "ss" and parameters["w"] > 1:
        return None
    if mechanism in _BITMAPS:
        return (1 << item).to_bytes(-(-d // 8), "little")
    return np.array([int(c == item) for c in range(d)], dtype="<i4").tobytes() if mechanism == "she" else None


def malformed(question: Question, payloads: Rows) -> Flags | None:
    """Mark the payloads that the mechanism never sends, whatever its coins. None where it is not known here."""
    d, mechanism, parameters = question["domain_size"], question["mechanism"], question["parameters"]
    if mechanism not in {"de", "onebit", *_BITMAPS, *_NUMBERS}:
        return None
    if not as_wide(question, payloads.shape[1]):
        return np.ones(len(payloads), dtype=np.bool_)
    if mechanism in _BITMAPS:
        bits = _bits(payloads)
        beyond = bits[:, d:].any(axis=1)
        return np.asarray(beyond | (bits.sum(axis=1) != parameters["w"]) if mechanism == "ss" else beyond)
    if mechanism in _NUMBERS:
        unit = 1 << parameters.get("grid", 0)
        most = unit + math.ceil(_SCALES * int(parameters["scale"]) / (1 << 40))
        return np.asarray((np.abs(words(payloads).astype(np.int64)) > most).any(axis=1))
    if mechanism == "de":
        return np.asarray(integers(payloads) >= d)
    return np.asarray((integers(payloads[:, :-1]) >= d) | (payloads[:, -1] > 1))


def stated_loss(question: Question) -> float:
    """The loss of the question's own probabilities, where the document states them; its epsilon otherwise."""
    d, parameters, epsilon = question["domain_size"], question["parameters"], float(question["epsilon"])
    p = int(parameters.get("p", 0)) / 2**64
    if not 0 < p < 1:
        return epsilon
    if question["mechanism"] == "de" and d > 1:
        return math.log(p * (d - 1) / (1 - p))
    if question["mechanism"] == "ss":
        w = parameters["w"]
        return math.log(p / (1 - p) * (d - w) / w)
    q = int(parameters.get("q", 0)) / 2**64
    return math.log(p / q * (1 - q) / (1 - p)) if question["mechanism"] in _BITMAPS and 0 < q < 1 else epsilon


def item_of(document: Document, question: Question, person: Person) -> Item | None:
    """A record encoded as the mechanism would, an index or :class:`Moment`; None where coins or conventions decide."""
    classes, person = classes_of(document), person.in_window(question.get("window", 0))
    label = classes.index(person.label)
    if question["kind"] == "label":
        return int(label)
    if question["kind"] in ("right", "score"):
        return answer_of(document, question, person)
    kind, declared = question["kind"], {feature["name"]: feature for feature in document["features"]}
    if question["feature"] not in declared or kind == "product":
        return None
    feature = feature_of(declared[question["feature"]])
    if kind == "joint":
        places = [_place_of(declared[question[name]], person) for name in ("feature", "other")]
        other = feature_of(declared[question["other"]]).size
        cells = (other or 0) + bool(declared[question["other"]].get("missing"))
        return None if places[0] is None or places[1] is None else places[0] * cells + places[1]
    try:
        value = person.record[feature.name]
    except (KeyError, RuntimeError):
        return _missing_of(feature, question, label, len(classes))
    if kind == "pair":
        index = feature.index_of(value)
        return None if index is None else index * len(classes) + label
    end = feature.end_of(value)
    if end is None:
        return None
    at_top = end == 1 or kind == "square"
    places = question["domain_size"] // len(classes)
    return places * label + at_top if question["encoding"] == "sign" else Moment(1.0 if at_top else -1.0, label)


def _place_of(declared: Mapping[str, Any], person: Person) -> int | None:
    """The place of a record's value among those of a feature and that there is none; None where it is a convention."""
    feature = feature_of(declared)
    try:
        return feature.index_of(person.record[feature.name])
    except (KeyError, RuntimeError):
        return feature.size if declared.get("missing") else None


def _missing_of(feature: AskedFeature, question: Question, label: int, classes: int) -> int | None:
    """The item of a record without the value: the last place, of the class or of all; None where it has none."""
    places = question["domain_size"] // classes
    if question["encoding"] == "sign" and places % 2:
        return int(places * label + places - 1)
    may_miss = question["kind"] == "pair" and feature.size is not None and places == feature.size + 1
    return (places - 1) * classes + label if may_miss else None


def as_wide(question: Question, width: int) -> bool:
    """True where a payload is as wide as its mechanism's."""
    d = question["domain_size"]
    widths = {"de": _index_width(d), "onebit": _index_width(d) + 1, "she": 4 * d, "laplace": 4 * d}
    return bool(width == widths.get(question["mechanism"], -(-d // 8)))


def _index_width(d: int) -> int:
    return 1 if d <= 1 << 8 else 2 if d <= 1 << 16 else 4


def _bits(payloads: Rows) -> Flags:
    return np.unpackbits(payloads, axis=1, bitorder="little").astype(np.bool_)


def words(payloads: Rows) -> NDArray[np.int32]:
    return np.ascontiguousarray(payloads).view("<i4")


def integers(payloads: Rows) -> NDArray[np.int64]:
    """Unsigned little-endian."""
    value = np.zeros(len(payloads), dtype=np.int64)
    for place in range(payloads.shape[1]):
        value += payloads[:, place].astype(np.int64) << (8 * place)
    return value


def _beyond(cells: NDArray[np.int32], first: Moment, second: Moment, unit: int) -> Flags:
    """Every cell lies at or beyond the first item's, seen from the second's."""
    flags = np.ones(len(cells), dtype=np.bool_)
    for cell in {first.cell, second.cell}:
        mine, theirs = (item.value * unit if item.cell == cell else 0 for item in (first, second))
        flags &= cells[:, cell] >= mine if mine > theirs else cells[:, cell] <= mine
    return flags
