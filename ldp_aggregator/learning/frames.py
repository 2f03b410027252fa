"""Columns of a DataFrame as the arrays a schema sees: value indices, clipped numbers, scaled numbers.

Cell by cell what a device makes of it, by the rules of :mod:`ldp_protocols.values`, whatever the dtype. That is a fact
about all rows together, so that nothing may follow from it. Every shortcut here is one of speed, and gives what the
rules give.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ldp_protocols.document.schema import Label, Projection
from ldp_protocols.features import CategoricalFeature, Feature, NumericFeature
from ldp_protocols.fields import LONGEST_TEXT
from ldp_protocols.values import number_of, text_of

MISSING_INDEX: Final = -1

_NUMERIC_KINDS: Final = "iufb"
_MISSING_KINDS: Final = "mM"
"""Kinds of dtypes of which no value is a text or a number: time spans and dates."""

_ALIKE: Final = frozenset({str, bool, int, float, type(None)})
"""Types of which equal values mean the same. A type that nobody knows may equal anything."""

_NUMBERS: Final = frozenset({bool, int, float, type(None)})
_TEXTS: Final = frozenset({str, type(None)})
_NUMERIC: Final = frozenset("0123456789+-.eE \t")
"""Among texts of these characters alone, Python's float reads those that ``ldp_protocols.values.NUMERAL`` describes."""


def declared_indices(domain: Label | Feature, column: pd.Series[Any]) -> NDArray[np.int64]:
    """The index of every cell's class or value; -1 where it is not declared."""
    codes, different = _different(column)
    found = [domain.index_of(value) for value in [*different, None]]
    positions = np.array([MISSING_INDEX if index is None else index for index in found], dtype=np.int64)
    return positions[codes]


class EncodedLabelWarning(UserWarning):
    """Labels are integers and no declared class is one: they are taken as scikit-learn's wrappers encode classes."""


def classes_of(label: Label, labels: Any, rows: int) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """The index of each label's class, -1 for one that is not declared, and the classes in the type of the labels.

    Shapes (rows,) and (k,), the classes in the label's order. The type of the labels is taken to be public, as the
    schema is. Of whole numbers 0 to k - 1 where no class is a number, each stands for a class in sorted order.
    Raises ValueError where there are not as many labels as ``rows``.
    """
    column = as_column(labels)
    if len(column) != rows:
        raise ValueError(f"X has {rows} rows and y has {len(column)}; they must be equal")
    kind = np.asarray(labels).dtype.kind if isinstance(labels, list | tuple) else column.dtype.kind
    typed = [_typed(text, kind) for text in label.classes]
    if kind in _NUMERIC_KINDS and all(label.index_of(one) == place for place, one in enumerate(typed)):
        return declared_indices(label, column), np.array(typed)
    if kind in "iu" and not any(number_of(text) is not None for text in label.classes):
        order = np.argsort(np.array(label.classes))
        encoded = ", ".join(f"{code} is {label.classes[place]}" for code, place in enumerate(order.tolist()))
        warnings.warn(
            f"y holds integers, which no class is; they are taken as scikit-learn encodes classes: {encoded}",
            EncodedLabelWarning,
            stacklevel=3,
        )
        codes = numbers(column)
        valid = (codes >= 0) & (codes < len(order))
        found = np.full(len(codes), MISSING_INDEX, dtype=np.int64)
        found[valid] = order[codes[valid].astype(np.int64)]
        return found, np.argsort(order)
    return declared_indices(label, column), np.array(label.classes, dtype=object)


def _typed(text: str, kind: str) -> bool | int | float | None:
    """A class as a value of this kind of numbers; None where it is none."""
    try:
        if kind == "b":
            return {"true": True, "false": False}.get(text)
        return float(text) if kind == "f" else int(text)
    except ValueError:
        return None


def numbers(column: pd.Series[Any]) -> NDArray[np.float64]:
    """``number_of`` of every cell, an array of its own; NaN for None."""
    if column.dtype.kind in _NUMERIC_KINDS:
        return column.to_numpy(dtype=np.float64, na_value=np.nan).copy()
    if _is_object(column.dtype):
        return _numbers_of(_cells(column))
    codes, different = _different(column)
    return _numbers_of([*different, None])[codes]


def as_pandas(table: Any) -> Any:
    """A table or a column of another library by pandas, names and all; what is no such table as it is."""
    return table.to_pandas() if hasattr(table, "to_pandas") else table


def as_column(labels: Any) -> pd.Series[Any]:
    """Labels as a column, its cells unchanged (pandas lets one cell decide how others read). ValueError for several."""
    labels = as_pandas(labels)
    if getattr(labels, "ndim", 1) != 1:
        raise ValueError("y must be one column of labels")
    if not hasattr(labels, "dtype"):
        return pd.Series(list(labels), dtype=object)
    return pd.Series(labels, dtype=object if getattr(labels.dtype, "kind", "") in "OU" else None)


def without_sparse_columns(frame: pd.DataFrame) -> pd.DataFrame:
    """The same cells in columns from which rows can be taken: of some sparse ones pandas can take none."""
    sparse = [place for place, dtype in enumerate(frame.dtypes) if isinstance(dtype, pd.SparseDtype)]
    if not sparse:
        return frame
    columns = [frame.iloc[:, place] for place in range(frame.shape[1])]
    for place in sparse:
        columns[place] = pd.Series(_cells(columns[place]), index=frame.index, dtype=object)
    dense: pd.DataFrame = pd.concat(columns, axis=1, keys=range(len(columns)))
    dense.columns = frame.columns
    return dense


def texts_of(column: pd.Series[Any]) -> set[str]:
    """The texts by which the cells are compared: classes, or the values of a feature, where the column is public."""
    return {text for text in map(text_of, _different(column)[1]) if text is not None}


def _different(column: pd.Series[Any]) -> tuple[NDArray[np.int64], list[Any]]:
    """Values, and for each cell the position of a value that means the same; -1 for a cell without any."""
    dtype = column.dtype
    if dtype.kind in _MISSING_KINDS:
        return np.full(len(column), -1, dtype=np.int64), []
    if isinstance(dtype, pd.CategoricalDtype):
        return np.asarray(column.cat.codes, dtype=np.int64), dtype.categories.tolist()
    if _is_object(dtype):
        cells = _cells(column)
        if not _ALIKE.issuperset(map(type, cells)):
            return np.arange(len(cells)), cells
    elif isinstance(dtype, np.dtype) and dtype.kind == "f" and dtype != np.float64:
        column = column.astype(np.float64)  # pandas hashes no others
    try:
        places, different = pd.factorize(column)
        return places.astype(np.int64, copy=False), different.tolist()
    except Exception:  # a dtype whose values cannot be hashed, such as lists
        cells = _cells(column)
        return np.arange(len(cells)), cells


def _numbers_of(cells: Sequence[Any]) -> NDArray[np.float64]:
    """``number_of`` of each; in one go where all are of the plainest kinds."""
    types = set(map(type, cells))
    try:
        if types <= _NUMBERS:
            return np.array(cells, dtype=np.float64)
        if types <= _TEXTS:
            texts = [cell or "" for cell in cells]
            if max(map(len, texts)) <= LONGEST_TEXT and _NUMERIC.issuperset("".join(texts)):
                return np.array([float(text or "nan") for text in texts], dtype=np.float64)
    except (ValueError, OverflowError):  # a text that is no number, an integer beyond a double
        pass
    found = (number_of(cell) for cell in cells)
    return np.array([np.nan if number is None else number for number in found], dtype=np.float64)


def _is_object(dtype: Any) -> bool:
    return isinstance(dtype, np.dtype) and dtype.kind == "O"


def _cells(column: pd.Series[Any]) -> list[Any]:
    """The column as Python's values; None for what pandas cannot make one of, such as a date beyond its calendar."""
    try:
        return column.tolist()
    except Exception:
        return [_cell(column, row) for row in range(len(column))]


def _cell(column: pd.Series[Any], row: int) -> Any:
    try:
        return column.iloc[row]
    except Exception:
        return None


def feature_indices(feature: Feature, column: pd.Series[Any]) -> NDArray[np.int64]:
    """Value or bin index per row; -1 where a device would have no declared value."""
    number = feature.number
    return declared_indices(feature, column) if number is None else binned(number, numbers(column))


def clipped(feature: NumericFeature, column: pd.Series[Any]) -> NDArray[np.float64]:
    """The column's numbers, clipped to the feature's bounds; NaN where missing."""
    return np.clip(numbers(column), float(feature.low), float(feature.high))


def with_outputs(projection: Projection | None, frame: pd.DataFrame) -> pd.DataFrame:
    """The table with a projection's outputs as columns: missing inputs at their means, no output without any input."""
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


def rescaled(feature: NumericFeature, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """``NumericFeature.scaled`` on arrays: t = 2 (x - low) / (high - low) - 1, x clipped first; NaN stays."""
    low, high = float(feature.low), float(feature.high)
    return np.clip(2 * ((np.clip(values, low, high) - low) / (high - low)) - 1, -1.0, 1.0)


def binned(feature: NumericFeature, values: NDArray[np.float64]) -> NDArray[np.int64]:
    """``NumericFeature.index_of`` on arrays; -1 for NaN."""
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


def features_of(frame: pd.DataFrame) -> tuple[Feature, ...]:
    """The columns of a public table as features, with the values and bounds that they have; numbers without bins."""
    return tuple(_feature_of(str(name), frame[name]) for name in frame.columns)


def _feature_of(name: str, column: pd.Series[Any]) -> Feature:
    if not pd.api.types.is_numeric_dtype(column.dtype) or pd.api.types.is_bool_dtype(column.dtype):
        return CategoricalFeature(name, tuple(sorted(texts_of(column))))
    finite = column[np.isfinite(column)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
    return NumericFeature(name, low, high if high > low else low + max(1.0, abs(low)))
