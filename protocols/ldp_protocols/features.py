"""Kinds of features: all that the code asks of what a campaign knows of people by one name, and their one table.

A feature is asked as *cells*, one of its values with the class, or as *moments*, a number in [-1, 1] and its square at
the class. Nobody else knows a kind by its name: a new one is a class here, or beside an app, and a row of
:data:`KINDS`. All of a feature is public knowledge. A value list or a bound is never read off the data.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final

from ldp_protocols.fields import Fields, Refusal, describe, read_bounds, shorten
from ldp_protocols.values import composed, number_of, position_of, positions_of, text_of

if TYPE_CHECKING:
    from typing import Self

MISSING: Final = "missing"
"""A feature that lists this value answers with it where the record has no declared value, and models take it for a
value like any other."""

MOST_VALUES: Final = 1 << 14
MOST_CELLS: Final = 1 << 16
"""Cells of one question."""

MOST_WEIGHT: Final = 1 << 16

GAUSSIAN: Final = "gaussian"
"""The kind under which a model has a feature that is asked as moments: bounds, means and variances are all of it."""

EXAMPLE: Final = '[{"name": "age", "kind": "categorical", "values": ["young", "old"]}]'
"""The answer to an author who declared none."""


class Feature(ABC):
    """A feature ``name`` of records, asked by ``weight`` beside the others; a record may lack it where ``missing``."""

    kind: ClassVar[str]
    """The kind's name in documents."""

    sized_by: ClassVar[str]
    """The key of a description that says how many values there are."""

    name: str
    weight: int
    missing: bool

    @classmethod
    @abstractmethod
    def read(cls, fields: Fields, name: str, weight: int) -> Self:
        """The feature of a draft or a document, of which everything but name and weight is still to be read."""

    @classmethod
    @abstractmethod
    def read_modelled(cls, fields: Fields, name: str) -> Self:
        """The feature of a model that has a table of it."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """The description in a document, the inverse of :meth:`read`."""

    def to_model_json(self) -> dict[str, Any]:
        """The feature in a model, without weight, missing and order, on which no classification depends."""
        left_out = "weight", "missing", "ordered"
        return {key: value for key, value in self.to_json().items() if key not in left_out}

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """The values, by index, in words; each means its value, except where they are ranges of a number."""

    @property
    def size(self) -> int:
        """Number of values; 2, the ends, where it is asked as moments."""
        return len(self.names)

    @property
    def cells(self) -> int:
        """Count what there is to answer: the values, and after them that there is none where that may be."""
        return self.size + self.missing

    @property
    def cell_names(self) -> tuple[str, ...]:
        """The names of what there is to answer."""
        return *self.names, *[MISSING] * self.missing

    @property
    def ordered(self) -> bool:
        """True where values are in order: an estimator may liken neighbours. No answer of a device depends on it."""
        return False

    @abstractmethod
    def index_of(self, value: object) -> int | None:
        """The index of what a record holds; None where that is no value. Raises nothing."""

    @property
    def number(self) -> NumericFeature | None:
        """The feature itself where its values are numbers: a projection takes it, and its products can be asked."""
        return None

    @property
    def moments(self) -> NumericFeature | None:
        """The feature itself where it is asked as moments and modelled as Gaussian, None where it is asked as cells."""
        return None

    @abstractmethod
    def wanted(self, most: int | None = None) -> str:
        """Tell people what a value is: one of some, of which at most so many are named, or a number."""

    @abstractmethod
    def wrong_with(self, value: object) -> str | None:
        """Tell a developer what is wrong with a value that is there, behind the value itself; None where nothing is."""


@dataclass(frozen=True)
class CategoricalFeature(Feature):
    """One of ``values``, or ``missing`` where the author does not call it complete."""

    kind: ClassVar[str] = "categorical"
    sized_by: ClassVar[str] = "values"

    name: str
    values: tuple[str, ...]
    weight: int = 1
    missing: bool = True
    ordered: bool = False

    @classmethod
    def read(cls, fields: Fields, name: str, weight: int) -> Self:
        values = declared_texts(fields, "values", MOST_VALUES)
        missing = read_missing(fields, values)
        ordered = fields.switch("ordered") is True
        if ordered and MISSING in values:
            raise fields.error(
                "ordered",
                f"{MISSING!r} has no place in an order; leave it out: those without a value have a cell of their own",
            )
        return cls(name, values, weight, missing, ordered)

    @classmethod
    def read_modelled(cls, fields: Fields, name: str) -> Self:
        values = fields.texts("values", least=1, most=MOST_VALUES)
        return cls(name, values, missing=MISSING not in values)

    def to_json(self) -> dict[str, Any]:
        ordered = {"ordered": True} if self.ordered else {}
        said = {"weight": self.weight, "missing": self.missing, **ordered}
        return describe_values(self.name, self.values, kind=self.kind, **said)

    @property
    def names(self) -> tuple[str, ...]:
        return self.values

    def index_of(self, value: object) -> int | None:
        """The value's index; for a missing or undeclared one that of ``missing`` where it is declared, else None."""
        position = position_of(value, self._positions)
        return self._positions.get(MISSING) if position is None else position

    @cached_property
    def _positions(self) -> Mapping[str, int]:
        return positions_of(self.values)

    def wanted(self, most: int | None = None) -> str:
        if most is None or len(self.values) <= most:
            return f"one of {', '.join(self.values)}"
        return f"one of {', '.join(map(shorten, self.values[:most]))}, ..."

    def wrong_with(self, value: object) -> str | None:
        text = text_of(value)
        if text is None:
            return "is neither a text nor a number"
        if text in self._positions:
            return None
        return "is not declared" if isinstance(value, str) else f"is not declared (it reads as {describe(text)})"


@dataclass(frozen=True)
class NumericFeature(Feature):
    """A number, clipped to [low, high]; perhaps ``missing``. It is discretised by ``bins``, of equal width or between
    ``edges`` (the ends are two of them), else asked as moments.
    """

    kind: ClassVar[str] = "continuous"
    sized_by: ClassVar[str] = "bins"

    name: str
    low: float
    high: float
    bins: int | None = None
    weight: int = 1
    missing: bool = True
    edges: tuple[float, ...] | None = None

    @classmethod
    def read(cls, fields: Fields, name: str, weight: int) -> Self:
        low, high = read_bounds(fields)
        bins = fields.integer("bins", least=2, most=MOST_VALUES) if fields.has("bins") else None
        feature = cls(name, low, high, bins, weight, read_missing(fields), _read_edges(fields, low, high, bins))
        # Every edge is rounded by less than two such steps, so that all of them stay apart.
        if bins is not None and (float(high) - float(low)) / bins < 4 * math.ulp(max(abs(low), abs(high))):
            raise fields.error("bins", f"{bins} bins between {low} and {high} are narrower than a double resolves")
        return feature

    @classmethod
    def read_modelled(cls, fields: Fields, name: str) -> Self:
        low, high = read_bounds(fields)
        bins = fields.integer("bins", least=2, most=MOST_VALUES)
        return cls(name, low, high, bins, edges=_read_edges(fields, low, high, bins))

    def to_json(self) -> dict[str, Any]:
        edges = {} if self.edges is None else {"edges": list(self.edges)}
        said = {"bins": self.bins, **edges, "weight": self.weight, "missing": self.missing}
        return describe_number(self.name, self.low, self.high, kind=self.kind, **said)

    def to_model_json(self) -> dict[str, Any]:
        if self.moments is None:
            return super().to_model_json()
        return {"name": self.name, "kind": GAUSSIAN, "low": self.low, "high": self.high}

    @property
    def names(self) -> tuple[str, ...]:
        edges = [self.low, *self.inner_edges, self.high]
        closing = [")"] * (self.size - 1) + ["]"]
        return tuple(f"[{low:g}, {high:g}{end}" for low, high, end in zip(edges, edges[1:], closing, strict=False))

    @property
    def size(self) -> int:
        return self.bins or 2

    @property
    def ordered(self) -> bool:
        """True where it has values in an order: bins are."""
        return self.moments is None

    def index_of(self, value: object) -> int | None:
        """The bin of a number (half-open, the last one closed; clipped), or None for anything else."""
        number = number_of(value)
        return None if number is None else bisect_right(self.inner_edges, number)

    @property
    def number(self) -> NumericFeature:
        return self

    @property
    def moments(self) -> NumericFeature | None:
        return self if self.bins is None else None

    def clip(self, number: float) -> float:
        """The nearest number in [low, high]."""
        return min(max(number, float(self.low)), float(self.high))

    def scaled(self, number: float) -> float:
        """`t = 2 (x - low) / (high - low) - 1` in [-1, 1], x clipped first."""
        low, high = float(self.low), float(self.high)
        return min(max(2 * ((self.clip(number) - low) / (high - low)) - 1, -1.0), 1.0)

    @cached_property
    def inner_edges(self) -> tuple[float, ...]:
        """The edges between bins: those that are said, else low + (high - low) i / bins, in double arithmetic."""
        if self.edges is not None:
            return self.edges[1:-1]
        low, span = float(self.low), float(self.high) - float(self.low)
        return tuple(low + span * i / self.size for i in range(1, self.size))

    def wanted(self, most: int | None = None) -> str:
        return f"a number from {self.low} to {self.high}"

    def wrong_with(self, value: object) -> str | None:
        return "is no number" if number_of(value) is None else None


KINDS: Final[dict[str, type[Feature]]] = {kind.kind: kind for kind in (CategoricalFeature, NumericFeature)}
"""The kinds of features that a document may declare."""


def read_feature(value: Any, path: str, classes: int, refuse: Refusal) -> Feature:
    """One declared feature; ``path`` names its place in messages."""
    fields = Fields(value, path, refuse)
    name = fields.text("name")
    kind = KINDS[fields.choice("kind", KINDS)]
    feature = kind.read(fields, name, fields.integer("weight", least=1, most=MOST_WEIGHT, default=1))
    fields.finish()
    cells = feature.cells * classes
    if cells > MOST_CELLS:
        raise fields.error(kind.sized_by, f"values times classes must be at most {MOST_CELLS}, not {cells}")
    return feature


def _read_edges(fields: Fields, low: float, high: float, bins: int | None) -> tuple[float, ...] | None:
    if not fields.has("edges"):
        return None
    if bins is None:
        raise fields.error("bins", "is missing; edges are those of bins, one more than these")
    edges = fields.row("edges", fields.raw("edges"), bins + 1)
    if (edges[0], edges[-1]) != (low, high) or list(edges) != sorted(set(edges)):
        raise fields.error("edges", f"must rise from low, {low}, to high, {high}")
    return edges


def read_missing(fields: Fields, values: Sequence[str] = ()) -> bool:
    """True if a value may be missing: unless the author says false, or lists ``missing`` as a value itself."""
    may_be = fields.switch("missing") is not False
    if MISSING in values and fields.has("missing") and may_be:
        raise fields.error("missing", f"{MISSING!r} is one of the values, so that no value is missing; leave this out")
    return may_be and MISSING not in values


def declared_texts(fields: Fields, name: str, most: int) -> tuple[str, ...]:
    """The classes or the values: texts that stay different when accents are written in one way."""
    texts = fields.texts(name, least=2, most=most)
    if len({composed(text) for text in texts}) != len(texts):
        raise fields.error(name, "two entries are one text in Unicode's form NFC; every entry must be different")
    return texts


def describe_values(name: str, values: Sequence[str], **said: Any) -> dict[str, Any]:
    """The description of a feature that is one of some values, as a draft has it; ``said`` are further keys."""
    return {"name": name, "kind": CategoricalFeature.kind, "values": list(values), **said}


def describe_number(name: str, low: float, high: float, **said: Any) -> dict[str, Any]:
    """The description of a feature that is a number, as a draft has it; ``said`` are further keys."""
    return {"name": name, "kind": NumericFeature.kind, "low": low, "high": high, **said}
