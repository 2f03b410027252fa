"""Where each query stands in the vector of integers that a Naive Bayes model is made of.

In the order of the schema: one count per class; for a counted feature one cell per (value, class), index
value * k + class; for a Gaussian feature k sums of t and then k sums of 1 - t^2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from protocols.document.schema import ContinuousFeature, Feature, Label

CLASSES: Final = "classes"
TABLE: Final = "table"
SUM: Final = "sum"
SQUARE: Final = "square"


@dataclass(frozen=True)
class Part:
    """A query, or one half of a query for sum and square: its place in the vector.

    ``feature`` is None for the class counts.
    """

    kind: str
    feature: Feature | None
    start: int
    stop: int

    @property
    def query(self) -> str:
        """The query that it is (part of), as budgets list it."""
        if self.feature is None:
            return "class counts"
        return self.feature.name if self.kind == TABLE else f"{self.feature.name}: sum and square"


def parts_of(label: Label, features: Sequence[Feature]) -> tuple[Part, ...]:
    """The queries of a schema, in the order of the vector."""
    k = len(label.classes)
    parts = [Part(CLASSES, None, 0, k)]
    for feature in features:
        start = parts[-1].stop
        if isinstance(feature, ContinuousFeature) and feature.bins is None:
            parts += [Part(SUM, feature, start, start + k), Part(SQUARE, feature, start + k, start + 2 * k)]
        else:
            parts.append(Part(TABLE, feature, start, start + feature.size * k))
    return tuple(parts)
