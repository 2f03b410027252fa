"""The public knowledge of a trainer: the classes, the values, the bounds. Read from a draft, never from the table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ldp_aggregator.learning.frames import as_column, declared_indices, texts_of, with_outputs
from ldp_aggregator.learning.naive_bayes import read_schema
from protocols.document.campaign import Campaign
from protocols.document.schema import (
    CategoricalFeature,
    ContinuousFeature,
    Feature,
    Label,
    Projection,
    is_gaussian,
)


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
    def gaussians(self) -> tuple[ContinuousFeature, ...]:
        """The features that are modelled by a mean and a variance."""
        return tuple(f for f in self.features if is_gaussian(f))

    @property
    def tables(self) -> tuple[Feature, ...]:
        """The features that are counted value by value."""
        return tuple(feature for feature in self.features if feature not in self.gaussians)

    @property
    def input_names(self) -> tuple[str, ...]:
        """The columns that a table must have."""
        if self.projection is None:
            return tuple(feature.name for feature in self.features)
        outputs = self.projection.output_positions
        kept = [feature.name for feature in self.features if feature.name not in outputs]
        return (*kept, *(feature.name for feature in self.projection.inputs))

    def prepare(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The table with the columns of a projection's outputs."""
        return with_outputs(self.projection, frame)

    def classes_of(self, labels: Sequence[object] | NDArray[Any] | pd.Series[Any], rows: int) -> NDArray[np.int64]:
        """Class index per row; -1 for a label that is not declared. Raises ValueError where the length is wrong.

        An error about a label would tell of its row, and so does not follow from any.
        """
        column = as_column(labels)
        if len(column) != rows:
            raise ValueError(f"X has {rows} rows and y has {len(column)}; they must be equal")
        return declared_indices(self.label, column)


def schema_of_table(frame: pd.DataFrame, class_count: int) -> Schema:
    """Bounds and values as the table has them: convenient for tables that are public, a leak for all others."""
    features: list[Feature] = []
    for name in frame.columns:
        column = frame[name]
        if pd.api.types.is_numeric_dtype(column.dtype) and not pd.api.types.is_bool_dtype(column.dtype):
            known = column[np.isfinite(column)]
            low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
            features.append(ContinuousFeature(str(name), low, high if high > low else low + max(1.0, abs(low))))
        else:
            features.append(CategoricalFeature(str(name), tuple(sorted(texts_of(column)))))
    return Schema(Label("class", tuple(map(str, range(class_count)))), tuple(features))
