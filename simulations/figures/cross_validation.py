"""Repeated cross-validation of trainers on the benchmark tables, a split at a time."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Final

import numpy as np
import pandas as pd
from sklearn.model_selection import StratifiedKFold

from ldp_aggregator import NaiveBayes
from ldp_aggregator.trainers import PrivacyWarning
from ldp_aggregator.trainers.base import PrivateNaiveBayes
from simulations.figures.figure import Execution, mean_accuracies
from simulations.studies.trials import accuracy, majority
from simulations.tables.frames import Table
from simulations.tables.uci import draft_of, people_of

FOLDS: Final = 10
REPEATS: Final = 5
NUMERIC: Final = "-numeric"
"""Behind the name of a table: without its categorical features."""

NON_PRIVATE: Final = "non-private"
MAJORITY: Final = "majority"
REFERENCES: Final = (NON_PRIVATE, MAJORITY)
NON_PRIVATE_FLOOR: Final = 1e-4

KEYS: Final = ("data", "trainer", "epsilon", "guaranteed_epsilon")
SEEDS_OF_A_SPLIT: Final = 100_000
"""More than a split has fits: each fit's noise has a seed of its own."""

Row = dict[str, Any]


@dataclass(frozen=True)
class Data:
    """A benchmark table with its public schema."""

    name: str
    schema: Mapping[str, Any]
    people: Table

    @property
    def is_numeric(self) -> bool:
        """Tell whether all features are numbers."""
        return all(feature["kind"] == "continuous" for feature in self.schema["features"])

    @property
    def has_numbers(self) -> bool:
        """Tell whether any feature is a number."""
        return any(feature["kind"] == "continuous" for feature in self.schema["features"])


@dataclass(frozen=True)
class Split:
    """One part of the people held out, the others to learn from; ``number`` counts through all repeats."""

    data: Data
    number: int
    training: Table
    held_out: Table

    def fit(self, trainer: PrivateNaiveBayes, /, **keys: Any) -> Row:
        """A row: what the trainer reaches on the people held out, and the epsilon that it really guarantees."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyWarning)
            trainer.fit(self.training.frame, self.training.labels)
        guaranteed = trainer.guarantee_.epsilon
        return self.row(
            accuracy(trainer, self.held_out), guaranteed_epsilon=np.nan if guaranteed is None else guaranteed, **keys
        )

    def row(self, found: float, **keys: Any) -> Row:
        """A row of results; what is not among the keys is empty."""
        return {**dict.fromkeys(KEYS, np.nan), "data": self.data.name, **keys, "split": self.number, "accuracy": found}

    def seed(self, fit: int) -> int:
        """The seed of the noise of this split's ``fit``-th fit."""
        return self.number * SEEDS_OF_A_SPLIT + fit

    def references(self) -> list[Row]:
        """Naive Bayes without noise, and always the most frequent class."""
        plain = NaiveBayes(self.data.schema, variance_floor=NON_PRIVATE_FLOOR)
        plain.fit(self.training.frame, self.training.labels)
        return [
            self.row(accuracy(plain, self.held_out), trainer=NON_PRIVATE),
            self.row(majority(self.training, self.held_out), trainer=MAJORITY),
        ]


@cache
def data_of(name: str) -> Data:
    """A benchmark table, read once in each process; its name may end in :data:`NUMERIC`."""
    source = name.removesuffix(NUMERIC)
    draft = draft_of(source)
    if name != source:
        draft["features"] = [feature for feature in draft["features"] if feature["kind"] == "continuous"]
    people = people_of(source, draft)
    # As categories, a fit looks every text up once, not once for each row; what comes out is the same.
    texts = {feature["name"]: "category" for feature in draft["features"] if feature["kind"] == "categorical"}
    schema = {"label": draft["label"], "features": draft["features"]}
    return Data(name, schema, Table(people.frame.astype(texts), people.labels))


def split_of(data: Data, number: int, folds: int = FOLDS) -> Split:
    """The ``number``-th split of repeated stratified cross-validation; every repeat shuffles anew."""
    repeat, fold = divmod(number, folds)
    splitter = StratifiedKFold(folds, shuffle=True, random_state=repeat)
    parts = list(splitter.split(np.zeros(len(data.people)), data.people.labels))
    training, held_out = (data.people.take(rows.astype(np.int64)) for rows in parts[fold])
    return Split(data, number, training, held_out)


def cross_validate(
    execution: Execution, names: Sequence[str], measure: Callable[[Split], list[Row]], *described: Any
) -> list[Row]:
    """The rows of ``measure`` on every split of every table; ``execution.runs`` counts the repeats.

    ``measure`` must be picklable; ``described`` says what it does, as JSON.
    """
    rows: list[Row] = []
    for name in names:
        data = data_of(name)
        trial = partial(_measure_split, name, measure)
        splits = execution.runs * FOLDS
        rows += execution.trials(trial, splits, data.people, data.schema, *described, description=name)
    return rows


def summarise(rows: Sequence[Row], *more_keys: str) -> pd.DataFrame:
    """Means and standard errors over the splits, in the order of the experiment."""
    return mean_accuracies(pd.DataFrame(rows), [*KEYS, *more_keys], "splits")


def _measure_split(name: str, measure: Callable[[Split], list[Row]], number: int) -> list[Row]:
    return measure(split_of(data_of(name), number))
