"""Tables from files: categorical columns as the text in the file, continuous ones as numbers.

``?`` and an empty text stay values like any other in a categorical column; an empty field of a continuous column is
missing (NaN).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ldp_aggregator.learning.frames import numbers
from protocols.document.schema import CategoricalFeature, ContinuousFeature, Feature, Label


class TableError(ValueError):
    """A table that cannot be used. The message is one line: which file and column, what is wrong, what is right."""


@dataclass(frozen=True)
class Table:
    """People: a row of ``frame`` and a class of ``labels`` each."""

    frame: pd.DataFrame
    labels: pd.Series[str]

    def __len__(self) -> int:
        return len(self.frame)

    def take(self, rows: NDArray[np.int64]) -> Table:
        """The people at these positions, in this order; a position may stand there more than once."""
        return Table(self.frame.iloc[rows].reset_index(drop=True), self.labels.iloc[rows].reset_index(drop=True))

    def split(self, train_fraction: float, rng: np.random.Generator) -> tuple[Table, Table]:
        """People to learn from, and people held out, at random; at least one of each."""
        order = rng.permutation(len(self))
        cut = min(max(1, round(train_fraction * len(self))), len(self) - 1)
        return self.take(order[:cut]), self.take(order[cut:])

    def draw(self, devices: int, rng: np.random.Generator) -> Table:
        """One person per device: all different while there are enough, else drawn with replacement."""
        return self.take(rng.choice(len(self), size=devices, replace=devices > len(self)))


def first_line(error: Exception) -> str:
    """What a line can tell of an error."""
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def read_csv(path: Path | str) -> pd.DataFrame:
    """Every column as the text in the file (CSV with a header row, gzip-compressed where the name ends in ``.gz``)."""
    try:
        frame = pd.read_csv(path, dtype=str, keep_default_na=False, na_filter=False)
    except FileNotFoundError:
        raise TableError(f"{path}: no such file") from None
    except (OSError, EOFError, ValueError) as error:
        raise TableError(f"{path}: not a CSV table with a header row ({first_line(error)})") from None
    if frame.empty:
        raise TableError(f"{path}: holds no rows; a table has a header row and at least one more")
    return frame


def typed(table: pd.DataFrame, features: Sequence[Feature], label: Label, source: str) -> Table:
    """The feature columns and the label column of a table of texts, typed as the schema says; others are left out.

    Raises TableError for a column that is not there and for text where a number should be.
    """
    for name in (label.name, *(feature.name for feature in features)):
        require_column(table, name, source)
    columns = {
        feature.name: table[feature.name]
        if isinstance(feature, CategoricalFeature)
        else as_numbers(table[feature.name], source)
        for feature in features
    }
    return Table(pd.DataFrame(columns), table[label.name])


def categories_in_order(column: pd.Series[Any]) -> list[Any]:
    """The categories of an ordered Categorical; none of any other column."""
    if not isinstance(column.dtype, pd.CategoricalDtype) or not column.dtype.ordered:
        return []
    return list(column.dtype.categories)


def require_column(table: pd.DataFrame, name: str, source: str) -> None:
    """Raise TableError, naming the columns that there are, unless ``name`` is one of them."""
    if name not in table.columns:
        raise TableError(f"{source}: no column {name!r}; the columns are {', '.join(map(str, table.columns))}")


def as_numbers(column: pd.Series, source: str) -> pd.Series:
    """Texts as the doubles that a device reads in them; empty ones as NaN."""
    texts, parsed = column.tolist(), numbers(column)
    wrong = [row for row in np.flatnonzero(np.isnan(parsed)) if texts[row].strip()]
    if wrong:
        row = int(wrong[0])
        raise TableError(
            f"{source}: column {column.name!r}, row {row + 1}: {texts[row]!r} is not a number; "
            "declare the feature categorical or correct the row"
        )
    return pd.Series(parsed, index=column.index, name=column.name, dtype=np.float64)


def check_declared(table: Table, features: Sequence[Feature], label: Label, source: str) -> None:
    """Raise TableError for the first label or categorical value that the schema does not declare.

    A device would answer an undeclared value as a missing one, which is right in the field and a mistake in an
    experiment; an empty text is missing where that may be. Numbers beyond the bounds are clipped, as on the device.
    """
    declared: list[tuple[pd.Series, Label | CategoricalFeature, tuple[str, ...]]] = [
        (table.labels, label, label.classes)
    ]
    declared += [(table.frame[f.name], f, f.values) for f in features if isinstance(f, CategoricalFeature)]
    for column, schema, known in declared:
        may_be_missing = isinstance(schema, CategoricalFeature) and schema.missing
        for value in column.unique().tolist():
            if schema.index_of(value) is None and not (may_be_missing and value == ""):
                row = int(np.flatnonzero((column == value).to_numpy())[0]) + 1
                shown = ", ".join(known[:12]) + (", ..." if len(known) > 12 else "")
                raise TableError(
                    f"{source}: column {schema.name!r}, row {row}: {value!r} is not declared; the schema has {shown}"
                )


def clipped_share(frame: pd.DataFrame, features: Sequence[Feature]) -> dict[str, float]:
    """Feature name to the share of its numbers beyond the declared bounds, for the features that have any."""
    shares = {
        feature.name: float(((frame[feature.name] < feature.low) | (frame[feature.name] > feature.high)).mean())
        for feature in features
        if isinstance(feature, ContinuousFeature)
    }
    return {name: share for name, share in shares.items() if share}


def records(frame: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """The rows as what an app would hand to the client: Python values by name, None for what is missing."""
    names = list(frame.columns)
    columns = [python_values(frame[name]) for name in names]
    for row in zip(*columns, strict=True):
        yield dict(zip(names, row, strict=True))


def python_values(column: pd.Series) -> list[Any]:
    """A column as plain Python values, None where it is missing."""
    return [None if missing else value for value, missing in zip(column.tolist(), column.isna(), strict=True)]
