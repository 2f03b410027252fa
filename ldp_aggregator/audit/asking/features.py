"""Kinds of features as an audit sees them: by a document alone, and by nothing that a client is made of.

Whom to ask takes the ends of a feature, what lies between and far outside them, and values of its cells; what an answer
says, where that needs no convention, takes the index of a declared text, and of a number at one of its ends.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar

import numpy as np

T = TypeVar("T")

RANGES: Final = 8
"""Equal parts of a number's range, of which each is a cell."""

_BETWEEN: Final = 14
_FAR: Final = 20
"""A number far outside lies so many ranges beyond the bounds."""


class AskedFeature(ABC):
    """A feature as a document, or a model, ``declared`` it."""

    def __init__(self, declared: Mapping[str, Any]) -> None:
        self.name: str = declared["name"]

    @property
    @abstractmethod
    def ends(self) -> tuple[object, object]:
        """The first and the last value."""

    @abstractmethod
    def between(self, rng: np.random.Generator) -> list[object]:
        """Up to 14 values between the ends. Where there are more, a lot draws which."""

    @abstractmethod
    def far(self, sign: int) -> object:
        """A value far outside on one side, which no declared one is."""

    @property
    @abstractmethod
    def cells(self) -> int:
        """Cells in which people are drawn: values, or ranges of them."""

    @abstractmethod
    def cell_of(self, value: object) -> int | None:
        """The cell of a value; None where it is odd."""

    @abstractmethod
    def drawn(self, cell: int, rng: np.random.Generator) -> object:
        """A value of a cell."""

    @property
    def size(self) -> int | None:
        """Number of values that are answered; None where it is asked as moments."""
        return self.cells

    def index_of(self, value: object) -> int | None:
        """The place of a value among those that are answered; None where that is a convention."""
        return self.cell_of(value)

    def end_of(self, value: object) -> int | None:
        """0 or 1 for a number at its lower or upper end; None for any other value."""
        return None


class Values(AskedFeature):
    """Declared texts."""

    def __init__(self, declared: Mapping[str, Any]) -> None:
        super().__init__(declared)
        self._values: list[str] = declared["values"]

    @property
    def ends(self) -> tuple[object, object]:
        return self._values[0], self._values[-1]

    def between(self, rng: np.random.Generator) -> list[object]:
        return _some(self._values[1:-1], rng)

    def far(self, sign: int) -> object:
        return sign * 1e300

    @property
    def cells(self) -> int:
        return len(self._values)

    def cell_of(self, value: object) -> int | None:
        return self._values.index(value) if isinstance(value, str) and value in self._values else None

    def drawn(self, cell: int, rng: np.random.Generator) -> object:
        return self._values[cell]


class Numbers(AskedFeature):
    """Numbers between bounds, asked in bins or as they are."""

    low: float
    high: float
    bins: int | None

    def __init__(self, declared: Mapping[str, Any]) -> None:
        super().__init__(declared)
        self.low, self.high, self.bins = declared["low"], declared["high"], declared.get("bins")

    @property
    def ends(self) -> tuple[object, object]:
        return self.low, self.high

    def between(self, rng: np.random.Generator) -> list[object]:
        """The middles of bins, or three numbers."""
        bins, shares = self.bins, [0.25, 0.5, 0.75]
        if bins is not None:
            shares = [(cell + 0.5) / bins for cell in _some(range(1, bins - 1), rng)]
        return [self.low + (self.high - self.low) * share for share in shares]

    def far(self, sign: int) -> object:
        width = self.high - self.low
        return self.high + _FAR * width if sign > 0 else self.low - _FAR * width

    @property
    def cells(self) -> int:
        return RANGES

    def cell_of(self, value: object) -> int | None:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not self.low <= value <= self.high:
            return None
        return min(RANGES - 1, int(RANGES * ((value - self.low) / (self.high - self.low))))

    def drawn(self, cell: int, rng: np.random.Generator) -> object:
        return float(self.low + (self.high - self.low) * (cell + rng.random()) / RANGES)

    @property
    def size(self) -> int | None:
        return self.bins

    def index_of(self, value: object) -> int | None:
        end = self.end_of(value)
        return None if end is None or self.bins is None else end * (self.bins - 1)

    def end_of(self, value: object) -> int | None:
        return None if isinstance(value, bool) or value not in self.ends else int(value == self.high)


KINDS: Final[dict[str, type[AskedFeature]]] = {"categorical": Values, "continuous": Numbers, "gaussian": Numbers}
"""By the names in documents and in models."""


def feature_of(declared: Mapping[str, Any]) -> AskedFeature:
    """A declared feature as it is asked. Raises ValueError for one of a kind that is not in the table."""
    kind = declared["kind"]
    if kind not in KINDS:
        raise ValueError(f"feature {declared['name']} is {kind}; an audit asks about {', '.join(KINDS)}")
    return KINDS[kind](declared)


def _some(values: Sequence[T], rng: np.random.Generator) -> list[T]:
    return [values[place] for place in sorted(rng.permutation(len(values))[:_BETWEEN])]
