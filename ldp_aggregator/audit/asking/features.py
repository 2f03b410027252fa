"""Kinds of features as an audit sees them: by a document alone, and by nothing that a client is made of.

Whom to ask takes the ends of a feature, what lies between and far outside them, and values of its cells; what an answer
says, where that needs no convention, takes the index of a declared text, and of a number at one of its ends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar

import numpy as np

T = TypeVar("T")

RANGES: Final = 8
"""Equal parts of a number's range, of which each is a cell."""

_BETWEEN: Final = 14
_FAR: Final = 20
"""A number far outside lies so many ranges beyond the bounds."""


class AskedFeature:
    """A feature as a document, or a model, declares it: a list of texts, or what its own kind makes of that.

    ``ends`` are its first and its last value; in ``cells``, values or ranges of them, people are drawn; ``size`` values
    are answered, None where it is asked as moments.
    """

    ends: tuple[Any, Any]
    cells: int
    size: int | None

    def __init__(self, declared: Mapping[str, Any]) -> None:
        self.name: str = declared["name"]
        self._values: list[str] = declared["values"]
        self.ends = self._values[0], self._values[-1]
        self.cells = self.size = len(self._values)

    def between(self, rng: np.random.Generator) -> list[object]:
        """Up to 14 values between the ends. Where there are more, a lot draws which."""
        return _some(self._values[1:-1], rng)

    def far(self, sign: int) -> object:
        """A value far outside on one side, which no declared one is."""
        return sign * 1e300

    def cell_of(self, value: object) -> int | None:
        """The cell of a value; None where it is odd."""
        return self._values.index(value) if isinstance(value, str) and value in self._values else None

    def drawn(self, cell: int, rng: np.random.Generator) -> object:
        """A value of a cell."""
        return self._values[cell]

    def index_of(self, value: object) -> int | None:
        """The place of a value among those that are answered; None where that is a convention."""
        return self.cell_of(value)

    def end_of(self, value: object) -> int | None:
        """0 or 1 for a number at its lower or upper end; None for any other value."""
        return None


class Numbers(AskedFeature):
    """Numbers between bounds, asked in bins or as they are."""

    cells = RANGES

    def __init__(self, declared: Mapping[str, Any]) -> None:
        self.name, self.size = declared["name"], declared.get("bins")
        self.ends = self.low, self.high = declared["low"], declared["high"]
        self._edges = declared.get("edges")

    def between(self, rng: np.random.Generator) -> list[object]:
        """The middles of bins, or three numbers."""
        bins, edges, shares = self.size, self._edges, [0.25, 0.5, 0.75]
        if bins is not None:
            cells = _some(range(1, bins - 1), rng)
            if edges is not None:
                return [(edges[cell] + edges[cell + 1]) / 2 for cell in cells]
            shares = [(cell + 0.5) / bins for cell in cells]
        return [self.low + (self.high - self.low) * share for share in shares]

    def far(self, sign: int) -> object:
        width = self.high - self.low
        return self.high + _FAR * width if sign > 0 else self.low - _FAR * width

    def cell_of(self, value: object) -> int | None:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not self.low <= value <= self.high:
            return None
        return min(RANGES - 1, int(RANGES * ((value - self.low) / (self.high - self.low))))

    def drawn(self, cell: int, rng: np.random.Generator) -> object:
        return float(self.low + (self.high - self.low) * (cell + rng.random()) / RANGES)

    def index_of(self, value: object) -> int | None:
        end = self.end_of(value)
        return None if end is None or self.size is None else end * (self.size - 1)

    def end_of(self, value: object) -> int | None:
        return None if isinstance(value, bool) or value not in self.ends else int(value == self.high)


KINDS: Final[dict[str, type[AskedFeature]]] = {"categorical": AskedFeature, "continuous": Numbers, "gaussian": Numbers}
"""By the names in documents and in models."""


def classes_of(document: Mapping[str, Any]) -> list[Any]:
    """The classes that a document declares; None alone where it has no label."""
    label = document.get("label")
    return [None] if label is None else list(label["classes"])


def feature_of(declared: Mapping[str, Any]) -> AskedFeature:
    """A declared feature as it is asked. Raises ValueError for one of a kind that is not in the table."""
    kind = declared["kind"]
    if kind not in KINDS:
        raise ValueError(f"feature {declared['name']} is {kind}; an audit asks about {', '.join(KINDS)}")
    return KINDS[kind](declared)


def _some(values: Sequence[T], rng: np.random.Generator) -> list[T]:
    return [values[place] for place in sorted(rng.permutation(len(values))[:_BETWEEN])]
