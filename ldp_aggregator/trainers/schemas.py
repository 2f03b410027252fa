"""The public knowledge of a trainer: the classes, the values, the bounds. Read from a draft, never from the table.

Of CSV tables, whole or in pieces, every cell is the text in the file; :mod:`ldp_protocols.values` says what it means.
A row changes nothing but itself. Cells are texts, so that no cell decides how a column is read; a row that is too short
ends in missing cells, what is beyond the header is left out, and bytes that are no UTF-8 make an undeclared text. What
is an error follows from the header, which is public, and not from any row.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ldp_aggregator.learning.frames import as_column, declared_indices, features_of, with_outputs
from ldp_aggregator.learning.naive_bayes import input_names, read_schema
from ldp_protocols.campaign import Campaign
from ldp_protocols.document.schema import Label, Projection
from ldp_protocols.features import Feature, NumericFeature


@dataclass(frozen=True)
class Schema:
    """``features`` are those that the model is about: a projection's inputs are replaced by its outputs."""

    label: Label
    features: tuple[Feature, ...]
    projection: Projection | None = None

    @classmethod
    def read(cls, draft: Mapping[str, Any]) -> Schema:
        """The ``label``, ``features`` and ``projection`` of a draft. Raises DraftError, which names the field."""
        return cls(*read_schema(draft))

    @classmethod
    def of_campaign(cls, campaign: Campaign) -> Schema:
        return cls(campaign.label, campaign.asked, campaign.projection)

    @property
    def class_count(self) -> int:
        return len(self.label.classes)

    @property
    def gaussians(self) -> tuple[NumericFeature, ...]:
        """The features that are modelled by a mean and a variance."""
        return tuple(f.moments for f in self.features if f.moments)

    @property
    def tables(self) -> tuple[Feature, ...]:
        """The features that are counted value by value."""
        return tuple(feature for feature in self.features if feature.moments is None)

    @property
    def input_names(self) -> tuple[str, ...]:
        """The columns that a table must have."""
        return input_names(self.features, self.projection)

    def prepare(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The table with the columns of a projection's outputs."""
        return with_outputs(self.projection, frame)

    def classes_of(self, labels: Sequence[object] | NDArray[Any] | pd.Series[Any], rows: int) -> NDArray[np.int64]:
        """Class index per row, -1 for an undeclared label: an error would tell of it. ValueError for a wrong length."""
        column = as_column(labels)
        if len(column) != rows:
            raise ValueError(f"X has {rows} rows and y has {len(column)}; they must be equal")
        return declared_indices(self.label, column)


def schema_of_table(frame: pd.DataFrame, class_count: int) -> Schema:
    """Bounds and values as the table has them: convenient for tables that are public, a leak for all others."""
    return Schema(Label("class", tuple(map(str, range(class_count)))), features_of(frame))


CHUNK_ROWS: Final = 100_000

_LONGEST_CELL: Final = 2**31 - 1
"""Characters. The csv module would refuse a table for one long cell; this is the most that it takes everywhere."""


class TableError(ValueError):
    """A table that cannot be read; the message says which file and why."""


def read_table(path: Path, schema: Schema) -> tuple[pd.DataFrame, pd.Series[Any]]:
    """The feature columns and the label column of a CSV file with a header row."""
    pieces = list(read_chunks(path, schema))
    frames, labels = zip(*pieces, strict=True)
    return pd.concat(frames, ignore_index=True), pd.concat(labels, ignore_index=True)


def read_chunks(path: Path, schema: Schema, rows: int = CHUNK_ROWS) -> Iterator[tuple[pd.DataFrame, pd.Series[Any]]]:
    """The same, ``rows`` at a time, at least one piece. Raises TableError for a missing column."""
    csv.field_size_limit(_LONGEST_CELL)
    opened = gzip.open if path.suffix == ".gz" else open
    try:
        with opened(path, "rt", encoding="utf-8-sig", errors="replace", newline="") as file:
            lines = csv.reader(line.replace("\0", "\ufffd") for line in file)  # an error before Python 3.11
            header = next(lines, [])
            places = {name: _place(path, header, name) for name in (*schema.input_names, schema.label.name)}
            filled = (line for line in lines if line)
            piece = list(islice(filled, rows))
            while True:
                yield _typed(piece, places, schema.label.name)
                piece = list(islice(filled, rows))
                if not piece:
                    break
    except (OSError, EOFError) as error:
        raise TableError(f"{path}: {getattr(error, 'strerror', None) or error}") from None


def _place(path: Path, header: list[str], name: str) -> int:
    if header.count(name) != 1:
        problem = f"{header.count(name)} columns" if name in header else "no column"
        raise TableError(f"{path}: {problem} {name!r}; the columns are {', '.join(header)}")
    return header.index(name)


def _typed(lines: list[list[str]], places: dict[str, int], label: str) -> tuple[pd.DataFrame, pd.Series[Any]]:
    cells = {
        name: pd.Series([line[place] if place < len(line) else None for line in lines], dtype=object)
        for name, place in places.items()
    }
    labels = cells.pop(label)
    return pd.DataFrame(cells), labels
