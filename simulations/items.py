"""From the columns of a table to the items that its devices perturb: ``protocols.encoding.encode`` on arrays.

The agreement with the device is exact, down to the fixed-point integers. A missing or undeclared value is -1 in an
index column and NaN in a number column until it is replaced at random.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ldp_aggregator.frames import MISSING_INDEX, binned, feature_indices, label_indices, numbers, project, rescaled
from protocols import Campaign, Question, RecordError
from protocols.mechanisms import VALUE_BITS
from protocols.questions import LABEL, MOMENT, PAIR, PRODUCT, VALUE
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
    """A table as a campaign sees it: class indices, and per declared feature either indices or numbers."""

    campaign: Campaign
    classes: Integers
    features: Mapping[str, Integers | Floats]

    @classmethod
    def of(cls, campaign: Campaign, frame: pd.DataFrame, labels: Iterable[object]) -> Columns:
        """Read ``frame`` and ``labels``. Raises RecordError for an undeclared label, as a device does."""
        classes = class_indices(campaign.label, pd.Series(labels))
        if len(classes) != len(frame):
            raise ValueError(f"{len(frame)} rows have {len(classes)} labels; every row needs one")
        absent = pd.Series([None] * len(frame), dtype=object)
        return cls(campaign, classes, {f.name: _column(f, frame.get(f.name, absent)) for f in campaign.features})

    def __len__(self) -> int:
        return len(self.classes)

    def items(self, question: Question, rows: Integers, rng: np.random.Generator) -> Items:
        """What the devices of ``rows`` perturb when asked ``question``."""
        classes = self.classes[rows]
        if question.kind == LABEL:
            return classes
        feature = self.campaign.feature(question.feature)
        if question.kind == PAIR:
            return self._indices(feature, rows, rng) * len(self.campaign.label.classes) + classes
        t = self._scaled(feature, rows, rng)
        if question.kind == PRODUCT and question.other != question.feature:
            values = fixed_points(t * self._scaled(self.campaign.feature(question.other), rows, rng))
        else:
            values = fixed_points(t if question.kind == VALUE else centred_squares(t))
        cells = np.zeros_like(classes) if question.kind == PRODUCT else classes
        if question.encoding == MOMENT:
            return Moments(cells, values)
        bits = rng.integers(0, 2 * _UNIT, size=len(values)) < values + _UNIT
        return 2 * cells + bits

    def _indices(self, feature: Feature, rows: Integers, rng: np.random.Generator) -> Integers:
        """Value or bin indices, missing ones at random."""
        if isinstance(feature, ContinuousFeature):
            indices = binned(feature, self._numbers(feature, rows, rng))
        else:
            indices = self.features[feature.name][rows].astype(np.int64)
        missing = indices == MISSING_INDEX
        indices[missing] = rng.integers(0, feature.size, size=int(missing.sum()))
        return indices

    def _scaled(self, feature: Feature, rows: Integers, rng: np.random.Generator) -> Floats:
        """T in [-1, 1], missing ones at random."""
        if not isinstance(feature, ContinuousFeature):
            raise TypeError(f"feature {feature.name} is not continuous")
        t = rescaled(feature, self._numbers(feature, rows, rng))
        missing = np.isnan(t)
        t[missing] = _random_t(int(missing.sum()), rng)
        return t

    def _numbers(self, feature: ContinuousFeature, rows: Integers, rng: np.random.Generator) -> Floats:
        """The feature's numbers, NaN where missing; a projection's output is computed, missing inputs at random."""
        projection = self.campaign.projection
        if projection is None or feature.name not in projection.output_positions:
            return self.features[feature.name][rows].astype(np.float64)
        inputs = []
        for one in projection.inputs:
            values = self.features[one.name][rows].astype(np.float64)
            missing = np.isnan(values)
            values[missing] = one.low + (_random_t(int(missing.sum()), rng) + 1) * ((one.high - one.low) / 2)
            inputs.append(values)
        return project(projection, projection.output_positions[feature.name], inputs)


def class_indices(label: Label, labels: pd.Series[Any]) -> Integers:
    """The class index of every row. Raises RecordError, naming the row, for a label that is not declared."""
    indices = label_indices(label, labels)
    unknown = np.flatnonzero(indices == MISSING_INDEX)
    if unknown.size:
        row = int(unknown[0])
        known = ", ".join(label.classes)
        raise RecordError(f"row {row + 1}: {label.name} is {labels.iloc[row]!r}; it must be one of {known}")
    return indices


def fixed_points(quantity: Floats) -> Integers:
    """A quantity in [-1, 1] in units of 2**-52 (truncated towards zero, as the device does)."""
    return (quantity * _UNIT).astype(np.int64)


def centred_squares(t: Floats) -> Floats:
    """``protocols.encoding.centred_square`` on arrays."""
    return 2 * (t * t) - 1


def _column(feature: Feature, values: pd.Series[Any]) -> Integers | Floats:
    return numbers(values) if isinstance(feature, ContinuousFeature) else feature_indices(feature, values)


def _random_t(count: int, rng: np.random.Generator) -> Floats:
    """Uniformly random multiples of 2**-52 in [-1, 1]."""
    return rng.integers(-_UNIT, _UNIT, size=count, endpoint=True) / _UNIT
