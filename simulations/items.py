"""From a column of a table to the items that its devices perturb: ``protocols.questions.encode`` on arrays.

The agreement with the device is exact: the same edges, the same double arithmetic, the same fixed-point integers. A
missing or undeclared value is -1 in an index column and NaN in a number column until it is replaced at random.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from protocols import Campaign, Question, RecordError
from protocols.mechanisms import VALUE_BITS
from protocols.questions import MOMENT, PAIR, VALUE
from protocols.schema import CategoricalFeature, ContinuousFeature, Feature, Label, number_of

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

MISSING_INDEX: Final = -1
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
        classes = class_indices(campaign.label, labels)
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


def class_indices(label: Label, labels: Iterable[object]) -> Integers:
    """The class index of every row. Raises RecordError, naming the row, for a label that is not declared."""
    series = pd.Series(labels)
    indices = _indices(label, series)
    unknown = np.flatnonzero(indices == MISSING_INDEX)
    if unknown.size:
        row = int(unknown[0])
        known = ", ".join(label.classes)
        raise RecordError(f"row {row + 1}: {label.name} is {series.iloc[row]!r}; it must be one of {known}")
    return indices


def value_indices(feature: Feature, values: pd.Series) -> Integers:
    """``feature.index_of`` of every value of a discrete feature, -1 where that is None."""
    if isinstance(feature, CategoricalFeature):
        return _indices(feature, values)
    found = numbers(values)
    bins = np.searchsorted(np.asarray(feature.inner_edges), found, side="right")
    return np.where(np.isnan(found), MISSING_INDEX, bins)


def numbers(values: pd.Series) -> Floats:
    """``number_of`` every value, NaN where that is None."""
    if values.dtype.kind in "iuf":
        return values.to_numpy(dtype=np.float64)
    found = (number_of(value) for value in values.tolist())
    return np.array([np.nan if number is None else number for number in found], dtype=np.float64)


def scaled(feature: ContinuousFeature, found: Floats) -> Floats:
    """``feature.scaled`` of every number; NaN stays."""
    low, high = float(feature.low), float(feature.high)
    return np.clip(2 * ((np.clip(found, low, high) - low) / (high - low)) - 1, -1.0, 1.0)


def fixed_points(t: Floats, kind: str) -> Integers:
    """The asked quantity, t or 2 t^2 - 1, in units of 2**-52 (truncated towards zero, as the device does)."""
    return ((t if kind == VALUE else 2 * (t * t) - 1) * _UNIT).astype(np.int64)


def _column(feature: Feature, values: pd.Series) -> Integers | Floats:
    if isinstance(feature, ContinuousFeature) and feature.bins is None:
        return scaled(feature, numbers(values))
    return value_indices(feature, values)


def _indices(declared: Label | CategoricalFeature, values: pd.Series) -> Integers:
    """``declared.index_of`` of every value; asked once for each different one where equal values are the same."""
    if values.dtype == object:  # 1, 1.0 and True are equal and hash alike, but only the first is a whole number.
        codes, different = np.arange(len(values)), values.tolist()
    else:
        codes, unique = pd.factorize(values)
        different = unique.tolist()
    table = [declared.index_of(value) for value in [*different, None]]
    lookup = np.array([MISSING_INDEX if index is None else index for index in table], dtype=np.int64)
    return lookup[codes]


def _fill_indices(indices: Integers, size: int, rng: np.random.Generator) -> Integers:
    missing = indices == MISSING_INDEX
    indices[missing] = rng.integers(0, size, size=int(missing.sum()))
    return indices


def _fill_numbers(t: Floats, rng: np.random.Generator) -> Floats:
    missing = np.isnan(t)
    t[missing] = rng.integers(-_UNIT, _UNIT, size=int(missing.sum()), endpoint=True) / _UNIT
    return t
