"""Columns of a DataFrame as the arrays a schema sees: value indices, clipped numbers, scaled numbers.

What a value means is decided by ``protocols.schema``, so that a table and a device agree on every value.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from protocols.schema import CategoricalFeature, ContinuousFeature, Feature, Label, number_of

MISSING_INDEX = -1


def label_indices(label: Label, column: pd.Series[Any]) -> NDArray[np.int64]:
    """Class index per row; -1 where the class is not declared."""
    return _categorical_indices(label, column)


def feature_indices(feature: Feature, column: pd.Series[Any]) -> NDArray[np.int64]:
    """Value or bin index per row; -1 where a device would have no declared value."""
    if isinstance(feature, CategoricalFeature):
        return _categorical_indices(feature, column)
    values = numbers(column)
    bins = np.searchsorted(np.array(feature.inner_edges), values, side="right")
    return np.where(np.isnan(values), MISSING_INDEX, bins)


def numbers(column: pd.Series[Any]) -> NDArray[np.float64]:
    """The column as doubles; NaN where a record would hold no number."""
    if pd.api.types.is_numeric_dtype(column.dtype) and not pd.api.types.is_bool_dtype(column.dtype):
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    found = (number_of(_plain(value)) for value in column)
    return np.array([np.nan if number is None else number for number in found], dtype=np.float64)


def clipped(feature: ContinuousFeature, column: pd.Series[Any]) -> NDArray[np.float64]:
    """The column's numbers, clipped to the feature's bounds; NaN where missing."""
    return np.clip(numbers(column), float(feature.low), float(feature.high))


def scaled(feature: ContinuousFeature, column: pd.Series[Any]) -> NDArray[np.float64]:
    """T = 2 (x - low) / (high - low) - 1, the very double arithmetic of ``ContinuousFeature.scaled``."""
    low, high = float(feature.low), float(feature.high)
    return np.clip(2 * ((clipped(feature, column) - low) / (high - low)) - 1, -1.0, 1.0)


def _categorical_indices(domain: Label | CategoricalFeature, column: pd.Series[Any]) -> NDArray[np.int64]:
    codes, uniques = pd.factorize(column, use_na_sentinel=False)
    found = [domain.index_of(_plain(value)) for value in uniques]
    positions = np.array([MISSING_INDEX if index is None else index for index in found], dtype=np.int64)
    return positions[codes] if len(positions) else np.zeros(0, dtype=np.int64)


def _plain(value: object) -> object:
    """A Python value: numpy scalars compare like the int, float or str they hold."""
    return value.item() if isinstance(value, np.generic) else value
