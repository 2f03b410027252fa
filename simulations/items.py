"""From a column of a table to the items that its devices perturb: ``protocols.questions.encode`` on arrays.

The agreement with the device is exact, down to the fixed-point integers. A missing or undeclared value is -1 in an
index column and NaN in a number column until it is replaced at random.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ldp_aggregator.frames import MISSING_INDEX, feature_indices, label_indices, scaled
from protocols import Campaign, Question, RecordError
from protocols.mechanisms import VALUE_BITS
from protocols.questions import MOMENT, PAIR, VALUE
from protocols.schema import ContinuousFeature, Feature, Label

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

_UNIT: Final = 1 << VALUE_BITS


@dataclass(frozen=True)
class Moments:
    """Many :class:`protocols.mechanisms.Moment`: the cell of each, and its value in units of 2**-52."""

    cells: Integers
    values: Integers

    def __len__(self) -> int:
        return len(self.cells)

    def __getitem__(self, rows: slice) -> Moments:
        return Moments(self.cells[rows], self.values[rows])


Items = Integers | Moments


@dataclass(frozen=True)
class Columns:
    """A table as a campaign sees it: class indices, and per feature either indices or numbers, one entry per row."""

    campaign: Campaign
    classes: Integers
    features: tuple[Integers | Floats, ...]

    @classmethod
    def of(cls, campaign: Campaign, frame: pd.DataFrame, labels: Iterable[object]) -> Columns:
        """Read ``frame`` and ``labels``. Raises RecordError for an undeclared label, as a device does."""
        classes = class_indices(campaign.label, pd.Series(labels))
        if len(classes) != len(frame):
            raise ValueError(f"{len(frame)} rows have {len(classes)} labels; every row needs one")
        absent = pd.Series([None] * len(frame), dtype=object)
        features = tuple(_column(f, frame.get(f.name, absent)) for f in campaign.features)
        return cls(campaign, classes, features)

    def __len__(self) -> int:
        return len(self.classes)

    def items(self, question: Question, rows: Integers, rng: np.random.Generator) -> Items:
        """What the devices of ``rows`` perturb when asked ``question``."""
        classes = self.classes[rows]
        if not question.group:
            return classes
        feature = self.campaign.features[question.group - 1]
        column = self.features[question.group - 1][rows]
        if question.kind == PAIR:
            return (
                _fill_indices(column.astype(np.int64), feature.size, rng) * len(self.campaign.label.classes) + classes
            )
        values = fixed_points(_fill_numbers(column.astype(np.float64), rng), question.kind)
        if question.encoding == MOMENT:
            return Moments(classes, values)
        bits = rng.integers(0, 2 * _UNIT, size=len(values)) < values + _UNIT
        return 2 * classes + bits


def class_indices(label: Label, labels: pd.Series[Any]) -> Integers:
    """The class index of every row. Raises RecordError, naming the row, for a label that is not declared."""
    indices = label_indices(label, labels)
    unknown = np.flatnonzero(indices == MISSING_INDEX)
    if unknown.size:
        row = int(unknown[0])
        known = ", ".join(label.classes)
        raise RecordError(f"row {row + 1}: {label.name} is {labels.iloc[row]!r}; it must be one of {known}")
    return indices


def fixed_points(t: Floats, kind: str) -> Integers:
    """The asked quantity, t or 2 t^2 - 1, in units of 2**-52 (truncated towards zero, as the device does)."""
    return ((t if kind == VALUE else 2 * (t * t) - 1) * _UNIT).astype(np.int64)


def _column(feature: Feature, values: pd.Series[Any]) -> Integers | Floats:
    if isinstance(feature, ContinuousFeature) and feature.bins is None:
        return scaled(feature, values)
    return feature_indices(feature, values)


def _fill_indices(indices: Integers, size: int, rng: np.random.Generator) -> Integers:
    missing = indices == MISSING_INDEX
    indices[missing] = rng.integers(0, size, size=int(missing.sum()))
    return indices


def _fill_numbers(t: Floats, rng: np.random.Generator) -> Floats:
    missing = np.isnan(t)
    t[missing] = rng.integers(-_UNIT, _UNIT, size=int(missing.sum()), endpoint=True) / _UNIT
    return t
