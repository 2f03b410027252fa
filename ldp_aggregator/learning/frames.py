"""Columns of a DataFrame as the arrays a schema sees: value indices, clipped numbers, scaled numbers.

Row by row what a device makes of the cell; see :mod:`ldp_aggregator.learning.columns`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ldp_aggregator.learning.columns import MISSING_INDEX as MISSING_INDEX
from ldp_aggregator.learning.columns import declared_indices
from ldp_aggregator.learning.columns import numbers as numbers
from protocols.document.projection import Projection
from protocols.document.schema import CategoricalFeature, ContinuousFeature, Feature, Label


def label_indices(label: Label, column: pd.Series[Any]) -> NDArray[np.int64]:
    """Class index per row; -1 where the class is not declared."""
    return declared_indices(label, column)


def feature_indices(feature: Feature, column: pd.Series[Any]) -> NDArray[np.int64]:
    """Value or bin index per row; -1 where a device would have no declared value."""
    if isinstance(feature, CategoricalFeature):
        return declared_indices(feature, column)
    return binned(feature, numbers(column))


def clipped(feature: ContinuousFeature, column: pd.Series[Any]) -> NDArray[np.float64]:
    """The column's numbers, clipped to the feature's bounds; NaN where missing."""
    return np.clip(numbers(column), float(feature.low), float(feature.high))


def scaled(feature: ContinuousFeature, column: pd.Series[Any]) -> NDArray[np.float64]:
    """The column as t in [-1, 1]; see :func:`rescaled`."""
    return rescaled(feature, numbers(column))


def with_outputs(projection: Projection | None, frame: pd.DataFrame) -> pd.DataFrame:
    """The table with a projection's outputs as columns.

    Where a row has no number for an input, the input's mean stands in; a row without any input has no output.
    """
    if projection is None:
        return frame
    inputs = [numbers(column_of(frame, feature)) for feature in projection.inputs]
    absent = np.isnan(inputs).all(axis=0)
    for values, mean in zip(inputs, projection.mean, strict=True):
        values[np.isnan(values)] = mean
    outputs = {
        output.name: np.where(absent, np.nan, project(projection, position, inputs))
        for position, output in enumerate(projection.outputs)
    }
    return frame.assign(**outputs)


def project(projection: Projection, position: int, inputs: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """``Projection.output`` on arrays, in the device's own order of operations."""
    total = np.zeros(len(inputs[0]))
    for feature, mean, scale, factor, values in zip(
        projection.inputs, projection.mean, projection.scale, projection.matrix[position], inputs, strict=True
    ):
        total += factor * ((np.clip(values, float(feature.low), float(feature.high)) - mean) / scale)
    return total


def rescaled(feature: ContinuousFeature, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """``ContinuousFeature.scaled`` on arrays: t = 2 (x - low) / (high - low) - 1, x clipped first; NaN stays."""
    low, high = float(feature.low), float(feature.high)
    return np.clip(2 * ((np.clip(values, low, high) - low) / (high - low)) - 1, -1.0, 1.0)


def binned(feature: ContinuousFeature, values: NDArray[np.float64]) -> NDArray[np.int64]:
    """``ContinuousFeature.index_of`` on arrays; -1 for NaN."""
    bins = np.searchsorted(np.array(feature.inner_edges), values, side="right")
    return np.where(np.isnan(values), MISSING_INDEX, bins)


def column_of(frame: pd.DataFrame, feature: Feature) -> pd.Series[Any]:
    """The feature's column; ValueError where the table has none, or two of that name."""
    if feature.name not in frame.columns:
        raise ValueError(f"the table has no column {feature.name!r}; it has {', '.join(map(str, frame.columns))}")
    column = frame[feature.name]
    if not isinstance(column, pd.Series):
        raise ValueError(f"the table has {column.shape[1]} columns {feature.name!r}; names must be different")
    return column
