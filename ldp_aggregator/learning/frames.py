"""Columns of a DataFrame as the arrays a schema sees: value indices, clipped numbers, scaled numbers.

What a value means is decided by ``protocols.document.schema``, so that a table and a device agree on every value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from protocols.document.projection import Projection
from protocols.document.schema import CategoricalFeature, ContinuousFeature, Feature, Label, number_of

MISSING_INDEX = -1


def label_indices(label: Label, column: pd.Series[Any]) -> NDArray[np.int64]:
    """Class index per row; -1 where the class is not declared."""
    return _categorical_indices(label, column)


def feature_indices(feature: Feature, column: pd.Series[Any]) -> NDArray[np.int64]:
    """Value or bin index per row; -1 where a device would have no declared value."""
    if isinstance(feature, CategoricalFeature):
        return _categorical_indices(feature, column)
    return binned(feature, numbers(column))


def numbers(column: pd.Series[Any]) -> NDArray[np.float64]:
    """The column as doubles; NaN where a record would hold no number."""
    if pd.api.types.is_numeric_dtype(column.dtype) and not pd.api.types.is_bool_dtype(column.dtype):
        return column.to_numpy(dtype=np.float64, na_value=np.nan).copy()
    found = (number_of(value) for value in column.tolist())
    return np.array([np.nan if number is None else number for number in found], dtype=np.float64)


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
    """The feature's column; ValueError where the table has none."""
    if feature.name not in frame.columns:
        raise ValueError(f"the table has no column {feature.name!r}; it has {', '.join(map(str, frame.columns))}")
    column: pd.Series[Any] = frame[feature.name]
    return column


def _categorical_indices(domain: Label | CategoricalFeature, column: pd.Series[Any]) -> NDArray[np.int64]:
    """``domain.index_of`` of every value, asked once for each different one where equal values are the same."""
    if column.dtype == object:  # 1, 1.0 and True are equal and hash alike, but only the first is a whole number.
        codes, different = np.arange(len(column)), column.tolist()
    else:
        codes, uniques = pd.factorize(column)
        different = uniques.tolist()
    found = [domain.index_of(value) for value in [*different, None]]
    positions = np.array([MISSING_INDEX if index is None else index for index in found], dtype=np.int64)
    return positions[codes]
