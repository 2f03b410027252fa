"""A table as the devices of a campaign see it: from its columns to the items that they perturb.

As ``ldp_client.answering.encode`` does it, on arrays: the agreement with the device is exact, down to the fixed-point
integers. A missing or undeclared value is -1 in an index column and NaN in a number column until it is given its cell,
or is replaced at random where a feature is called complete.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ldp_aggregator.learning.frames import (
    MISSING_INDEX,
    as_column,
    binned,
    declared_indices,
    feature_indices,
    numbers,
    project,
    rescaled,
)
from ldp_aggregator.learning.naive_bayes import NaiveBayes
from ldp_aggregator.mechanisms.analysis import MomentBatch
from ldp_protocols import Campaign, Question, RecordError
from ldp_protocols.document.authored import Evaluation
from ldp_protocols.document.questions import INDEX, JOINT, LABEL, MOMENT, PRODUCT, RIGHT, SCORE, VALUE, signs_of
from ldp_protocols.document.schema import Label
from ldp_protocols.features import Feature
from ldp_protocols.mechanisms import VALUE_BITS

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

UNIT: Final = 1 << VALUE_BITS
"""A value in [-1, 1] is an integer V and means V / UNIT."""

Items = Integers | MomentBatch


@dataclass(frozen=True)
class Columns:
    """A table as a campaign sees it: class indices, and per declared feature either indices or numbers."""

    campaign: Campaign
    classes: Integers
    features: Mapping[str, Integers | Floats]

    @classmethod
    def of(cls, campaign: Campaign, frame: pd.DataFrame, labels: Iterable[object]) -> Columns:
        """Read ``frame`` and ``labels``. Raises RecordError for an undeclared label, as a device does."""
        classes = class_indices(campaign.label, as_column(labels))
        if len(classes) != len(frame):
            raise ValueError(f"{len(frame)} rows have {len(classes)} labels; every row needs one")
        absent = pd.Series(np.nan, index=frame.index)
        return cls(campaign, classes, {f.name: _column(f, frame.get(f.name, absent)) for f in campaign.features})

    def __len__(self) -> int:
        return len(self.classes)

    @property
    def class_count(self) -> int:
        """Number of classes, `k`."""
        return len(self.campaign.label.classes)

    def items(self, question: Question, rows: Integers, rng: np.random.Generator) -> Items:
        """The items that the devices of ``rows`` perturb when asked ``question``."""
        if question.encoding == INDEX:
            return self.indices(question, rows, rng)
        moments = self.moments(question, rows, rng)
        if question.encoding == MOMENT:
            return moments
        stochastic = rng.integers(0, 2 * UNIT, size=len(rows)) < moments.values + UNIT
        bits = np.where(moments.missing, 2, stochastic.astype(np.int64))
        return signs_of(question, self.class_count) * moments.cells + bits

    def indices(self, question: Question, rows: Integers, rng: np.random.Generator) -> Integers:
        """Items of an index question: ``value * k + class``, the class alone, or an evaluation round's answer."""
        classes = self.classes[rows]
        if question.kind == LABEL:
            return classes
        if question.kind in (RIGHT, SCORE):
            return self.of_the_model(question)[rows]
        indices = self._indices(self.campaign.feature(question.feature), rows, rng)
        if question.kind == JOINT:
            other = self.campaign.feature(question.other)
            return indices * other.cells + self._indices(other, rows, rng)
        return indices * self.class_count + classes

    def of_the_model(self, question: Question) -> Integers:
        """Each row's item about a model under evaluation: right (1), wrong (0), or its score's place with the class."""
        scores, edges = self._scores, self._evaluation.edges
        if question.kind == RIGHT:
            right: Integers = (scores.argmax(axis=1) == self.classes).astype(np.int64)
            return right
        if edges is None:
            places = scores.argmax(axis=1)
        else:
            places = np.searchsorted(np.array(edges), scores[:, 1] - scores[:, 0], side="left")
        cells: Integers = places * self.class_count + self.classes
        return cells

    @property
    def _evaluation(self) -> Evaluation:
        if self.campaign.evaluation is None:
            raise ValueError(f"campaign {self.campaign.id} is no evaluation round")
        return self.campaign.evaluation

    @cached_property
    def _scores(self) -> Floats:
        """The joint log likelihoods under an evaluation round's model, shape (rows, k)."""
        model = self._evaluation.model
        columns: dict[str, Any] = {}
        for feature in self.campaign.features:
            column: NDArray[Any] = self.features[feature.name]
            if feature.number is None:
                texts = np.array([*feature.names, None], dtype=object)
                column = texts[column.astype(np.int64)]
            columns[feature.name] = column
        return NaiveBayes.from_model(model).scores(pd.DataFrame(columns))

    def moments(self, question: Question, rows: Integers, rng: np.random.Generator) -> MomentBatch:
        """The quantities behind any other question, before ``sign`` makes bits of them."""
        classes = self.classes[rows]
        t = self._scaled(self.campaign.feature(question.feature), rows, rng)
        if question.kind == PRODUCT and question.other != question.feature:
            quantity = t * self._scaled(self.campaign.feature(question.other), rows, rng)
        else:
            quantity = t if question.kind == VALUE else 2 * (t * t) - 1
        missing = np.isnan(quantity)
        # In units of 2**-52, truncated towards zero, as the device does.
        values = (np.where(missing, 0.0, quantity) * UNIT).astype(np.int64)
        return MomentBatch(np.zeros_like(classes) if question.kind == PRODUCT else classes, values, missing)

    def incomplete(self, question: Question) -> NDArray[np.bool_]:
        """The rows where something that ``question`` looks at is missing, and is replaced at random."""
        replaced = np.zeros(len(self), dtype=np.bool_)
        for name in filter(None, (question.feature, question.other)):
            sources = self._sources(name)
            absent = [self._absent(source.name) for source in sources]
            if not self.campaign.feature(name).missing:
                replaced |= np.logical_and.reduce(absent)
            if self.is_projected(name):
                for source, missing in zip(sources, absent, strict=True):
                    if not source.missing:
                        replaced |= missing
        return replaced

    def _absent(self, name: str) -> NDArray[np.bool_]:
        column = self.features[name]
        return np.isnan(column) if column.dtype.kind == "f" else column == MISSING_INDEX

    def is_projected(self, name: str | None) -> bool:
        """Tell whether an asked feature is an output of the campaign's projection."""
        projection = self.campaign.projection
        return projection is not None and name in projection.output_positions

    def value_indices(self, name: str | None) -> Integers:
        """The value or bin index of every row for a declared discrete feature, -1 where it is missing."""
        feature = self.campaign.feature(name)
        return _cells_of(feature, self.features[feature.name])

    def _sources(self, name: str) -> tuple[Feature, ...]:
        """The declared features behind an asked one: a projection's inputs, or itself."""
        projection = self.campaign.projection
        if projection is None or not self.is_projected(name):
            return (self.campaign.feature(name),)
        return projection.inputs

    def _indices(self, feature: Feature, rows: Integers, rng: np.random.Generator) -> Integers:
        """Value or bin indices; missing ones after the last, or at random where there are to be none."""
        indices = _cells_of(feature, self._held(feature, rows, rng))
        missing = indices == MISSING_INDEX
        indices[missing] = feature.size if feature.missing else rng.integers(0, feature.size, size=int(missing.sum()))
        return indices

    def _scaled(self, feature: Feature, rows: Integers, rng: np.random.Generator) -> Floats:
        """`t` in [-1, 1]; missing ones NaN, or at random where there are to be none."""
        if feature.number is None:
            raise TypeError(f"the values of feature {feature.name} are no numbers")
        t = rescaled(feature.number, self._held(feature, rows, rng).astype(np.float64))
        if not feature.missing:
            missing = np.isnan(t)
            t[missing] = _random_t(int(missing.sum()), rng)
        return t

    def _held(self, feature: Feature, rows: Integers, rng: np.random.Generator) -> Integers | Floats:
        """The feature's column in these rows; a projection's missing input is at its mean, or random if complete."""
        projection = self.campaign.projection
        if projection is None or not self.is_projected(feature.name):
            return self.features[feature.name][rows]
        inputs = [self.features[one.name][rows].astype(np.float64) for one in projection.inputs]
        absent = np.isnan(inputs).all(axis=0)
        for one, mean, values in zip(projection.inputs, projection.mean, inputs, strict=True):
            missing = np.isnan(values)
            half = (one.high - one.low) / 2
            values[missing] = mean if one.missing else one.low + (_random_t(int(missing.sum()), rng) + 1) * half
        outputs: Floats = project(projection, projection.output_positions[feature.name], inputs)
        return np.where(absent, np.nan, outputs)


def class_indices(label: Label, labels: pd.Series[Any]) -> Integers:
    """The class index of every row. Raises RecordError, naming the row, for a label that is not declared."""
    indices = declared_indices(label, labels)
    unknown = np.flatnonzero(indices == MISSING_INDEX)
    if unknown.size:
        row = int(unknown[0])
        raise RecordError(f"row {row + 1}: {label.name} is {labels.iloc[row]!r}; it must be {label.wanted}")
    return indices


def _cells_of(feature: Feature, values: Integers | Floats) -> Integers:
    return values.astype(np.int64) if feature.number is None else binned(feature.number, values.astype(np.float64))


def _column(feature: Feature, values: pd.Series[Any]) -> Integers | Floats:
    return numbers(values) if feature.number else feature_indices(feature, values)


def _random_t(count: int, rng: np.random.Generator) -> Floats:
    """Uniformly random multiples of 2**-52 in [-1, 1]."""
    return rng.integers(-UNIT, UNIT, size=count, endpoint=True) / UNIT
