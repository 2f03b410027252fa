"""The public knowledge of a trainer: the classes, the values, the bounds. Read from a draft, never from the table.

CSV tables, whole or in pieces, are read by it (:mod:`ldp_aggregator.trainers.reading`): no cell decides how another is
read, and what is an error follows from the header, which is public, and not from any row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ldp_aggregator.learning.frames import as_column, declared_indices, features_of, with_outputs
from ldp_aggregator.learning.naive_bayes import inputs_of, read_schema
from ldp_aggregator.trainers.reading import AS_WRITTEN, Reading, Seen, read_pieces
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
    def inputs(self) -> tuple[Feature, ...]:
        """The features that a table must hold beside the label: inputs of a projection stand in for its outputs."""
        return inputs_of(self.features, self.projection)

    @property
    def input_names(self) -> tuple[str, ...]:
        """The columns that a table must have."""
        return tuple(feature.name for feature in self.inputs)

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


def read_table(path: Path, schema: Schema, reading: Reading = AS_WRITTEN) -> tuple[pd.DataFrame, pd.Series[Any]]:
    """The feature columns and the label column of a CSV file with a header row."""
    return joined(read_chunks(path, schema, reading=reading))


def joined(pieces: Iterable[tuple[pd.DataFrame, pd.Series[Any]]]) -> tuple[pd.DataFrame, pd.Series[Any]]:
    """The pieces of a table as one, at least one piece."""
    frames, labels = zip(*pieces, strict=True)
    return pd.concat(frames, ignore_index=True), pd.concat(labels, ignore_index=True)


def read_chunks(
    path: Path,
    schema: Schema,
    rows: int = CHUNK_ROWS,
    reading: Reading = AS_WRITTEN,
    seen: Seen | None = None,
) -> Iterator[tuple[pd.DataFrame, pd.Series[Any]]]:
    """The same, ``rows`` at a time, at least one piece, each shown to ``seen``. Raises TableError for a missing
    column.
    """
    return read_pieces(path, schema.label, schema.inputs, rows, reading, seen)
