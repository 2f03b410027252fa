"""Trainers that hold tables, by repeated cross-validation on the benchmark tables, as published and sound.

One holds the table: global sensitivity, smooth sensitivity and noisy sums. Vaidya, Shafiq, Basu, Hong 2013, figure 3,
and Zafarani, Clifton 2020, figures 4 to 12, on those of their tables that there are: accuracy over epsilon, and (figure
10) on adult over the part of epsilon that the moments of the numbers get. Published curves stand over the epsilon that
the papers claim; ``guaranteed_epsilon`` is the one that holds. diffprivlib's GaussianNB takes part on the same splits,
in an environment of its own: nothing of it is imported here.

Several hold it: federated Naive Bayes, accuracy over the epsilon of each node for 1, 10, 100 and 1000 nodes.
Marchioro, Giaretta, Markatos, Girdzijauskas 2022, figures 1 to 3. Rows are dealt to the nodes at random; where there
are fewer rows than nodes, some nodes have none and send noise like the others. On a table without numbers the published
algorithm is the sound one, and is not measured twice.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold

from ldp_aggregator import NaiveBayes
from ldp_aggregator.trainers import (
    FederatedNB,
    GlobalSensitivityNB,
    PrivacyWarning,
    SmoothSensitivityNB,
    SufficientStatisticsNB,
)
from ldp_aggregator.trainers.base import PUBLISHED, SOUND, PrivateNaiveBayes
from ldp_aggregator.trainers.reading import TableError
from ldp_simulations.benchmarks import draft_of, people_of
from ldp_simulations.figures.figure import Execution, Figure, Plot, mean_accuracies
from ldp_simulations.studies.trials import accuracy, majority
from ldp_simulations.tables import Table

FOLDS: Final = 10
REPEATS: Final = 5
NUMERIC: Final = "-numeric"
"""Behind the name of a table: without its features that are no numbers."""

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
        return all("low" in feature for feature in self.schema["features"])

    @property
    def has_numbers(self) -> bool:
        """Tell whether any feature is a number."""
        return any("low" in feature for feature in self.schema["features"])


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
        draft["features"] = [feature for feature in draft["features"] if "low" in feature]
    people = people_of(source, draft)
    # As categories, a fit looks every text up once, not once for each row; what comes out is the same.
    texts = {feature["name"]: "category" for feature in draft["features"] if "low" not in feature}
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
    """Rows of a picklable ``measure`` on every split of every table, repeated; ``described`` identifies it as JSON."""
    rows: list[Row] = []
    for name in execution.tables(names):
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


DATA: Final = ("adult", "mushroom", "skin", "seeds", "adult-numeric", "diabetes")
EPSILONS: Final = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)

BUDGET_DATA: Final = "adult"
BUDGET_EPSILONS: Final = (0.1, 1.0)
SHARES: Final = (0.1, 0.25, 0.5, 0.75, 0.9)
SHARE: Final = "numerical_share"
"""The part of epsilon that means and variances get; empty where every query gets the same."""

Maker = Callable[..., PrivateNaiveBayes]

TRAINERS: Final[Mapping[str, tuple[Maker, Mapping[str, Any]]]] = {
    "global, published": (GlobalSensitivityNB, {"variant": "published"}),
    "global, replace": (GlobalSensitivityNB, {"relation": "replace"}),
    "global, add-remove": (GlobalSensitivityNB, {}),
    "smooth, published": (SmoothSensitivityNB, {"variant": "published"}),
    "smooth, replace": (SmoothSensitivityNB, {"relation": "replace"}),
    "smooth, add-remove": (SmoothSensitivityNB, {}),
    "sums, replace": (SufficientStatisticsNB, {"relation": "replace"}),
    "sums, add-remove": (SufficientStatisticsNB, {}),
}
"""Curves of one relation compare: under ``replace`` the labels are public."""

DIVIDED: Final = ("global, replace", "smooth, published", "smooth, replace", "sums, replace")
"""Those of which the figure about dividing epsilon is drawn."""


PROGRAM: Final = Path(__file__).with_name("diffprivlib_program.py")


@dataclass(frozen=True)
class Peer:
    """An interpreter that has diffprivlib."""

    python: str
    version: str

    @property
    def name(self) -> str:
        """As it stands in tables and plots."""
        return f"diffprivlib {self.version}"

    def accuracies(self, split: Split, epsilons: Sequence[float]) -> list[float]:
        """The accuracy on the people held out for each epsilon; all features are numbers."""
        features = split.data.schema["features"]
        names = [feature["name"] for feature in features]
        classes = list(split.data.schema["label"]["classes"])
        arrays: dict[str, NDArray[Any]] = {
            bound: np.array([feature[bound] for feature in features], dtype=np.float64) for bound in ("low", "high")
        }
        for name, table in (("train", split.training), ("test", split.held_out)):
            arrays[name] = table.frame[names].to_numpy(dtype=np.float64)
            arrays[f"{name}_classes"] = np.array([classes.index(label) for label in table.labels])
        arrays |= {"epsilons": np.array(epsilons), "seed": np.array(split.number)}
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "split.npz"
            np.savez(path, allow_pickle=False, **arrays)
            found: list[float] = json.loads(_output(self.python, str(PROGRAM), str(path)))
        return found


def find_peer(python: str) -> Peer:
    """Check the interpreter. Raises TableError, saying how to make one, where it lacks diffprivlib."""
    try:
        version = _output(python, "-c", "import diffprivlib; print(diffprivlib.__version__)").strip()
    except (OSError, subprocess.CalledProcessError) as error:
        lines = (error.stderr or "").strip().splitlines() if isinstance(error, subprocess.CalledProcessError) else []
        problem = lines[-1] if lines else getattr(error, "strerror", None) or str(error)
        raise TableError(
            f"--peer {python}: cannot import diffprivlib ({problem}); "
            "make an environment with python -m venv F; F/bin/pip install diffprivlib 'scikit-learn<1.7'"
        ) from None
    return Peer(python, version)


def _output(python: str, *arguments: str) -> str:
    done = subprocess.run([python, *arguments], capture_output=True, check=True, text=True)  # noqa: S603 (the user names it)
    return done.stdout


def measure_central(execution: Execution) -> pd.DataFrame:
    """Mean accuracies: a row for every table, trainer and epsilon, and on adult for every share."""
    peer = find_peer(execution.peer) if execution.peer else None
    epsilons, divided = execution.epsilons(EPSILONS), execution.epsilons(BUDGET_EPSILONS)
    shared = [list(TRAINERS), epsilons, peer.version if peer else None]
    curves = cross_validate(execution, DATA, partial(measure_curves, peer, epsilons), *shared)
    budget = cross_validate(execution, [BUDGET_DATA], partial(measure_budget, divided), [DIVIDED, divided, SHARES])
    return summarise([{SHARE: np.nan, **row} for row in (*curves, *budget)], SHARE)


def measure_curves(peer: Peer | None, epsilons: Sequence[float], split: Split) -> list[Row]:
    """A row for every trainer and each of the ``epsilons``, and the references; a seed is that of the whole figure."""
    rows = split.references()
    for fit, (name, epsilon) in enumerate(product(TRAINERS, EPSILONS)):
        if epsilon not in epsilons:
            continue
        make, parameters = TRAINERS[name]
        trainer = make(split.data.schema, epsilon=epsilon, random_state=split.seed(fit), **parameters)
        rows.append(split.fit(trainer, trainer=name, epsilon=epsilon))
    if peer and split.data.is_numeric:
        for epsilon, found in zip(epsilons, peer.accuracies(split, epsilons), strict=True):
            rows.append(split.row(found, trainer=peer.name, epsilon=epsilon))
    return rows


def measure_budget(epsilons: Sequence[float], split: Split) -> list[Row]:
    """A row for every trainer, each of the ``epsilons`` and every share."""
    rows = []
    first = len(TRAINERS) * len(EPSILONS)
    for fit, (name, epsilon, share) in enumerate(product(DIVIDED, BUDGET_EPSILONS, SHARES), start=first):
        if epsilon not in epsilons:
            continue
        make, parameters = TRAINERS[name]
        seed = split.seed(fit)
        trainer = make(split.data.schema, epsilon=epsilon, numerical_share=share, random_state=seed, **parameters)
        rows.append({**split.fit(trainer, trainer=name, epsilon=epsilon), SHARE: share})
    return rows


def _of_relation(table: pd.DataFrame, endings: tuple[str, ...]) -> pd.DataFrame:
    curves = table[table[SHARE].isna()]
    return curves[curves["trainer"].str.endswith(endings) | curves["epsilon"].isna()]


def _divided(table: pd.DataFrame) -> pd.DataFrame:
    here = table[table["data"] == BUDGET_DATA]
    return here[here[SHARE].notna() | here["epsilon"].isna()]


CENTRAL: Final = Figure(
    name="global-and-smooth-figures",
    about="Vaidya et al., figure 3; Zafarani and Clifton, figures 4 to 12: who holds the table",
    runs=REPEATS,
    of_runs=f"times {FOLDS} folds",
    measure=measure_central,
    people=DATA,
    epsilons=EPSILONS,
    plots=(
        Plot(
            name="-add-remove",
            caption="Epsilon is the total; neighbours: one row more or less, class sizes are private. Bands of 95 %.",
            panels=("data",),
            curves=("trainer",),
            select=partial(_of_relation, endings=("add-remove", *"0123456789")),
        ),
        Plot(
            name="-replace",
            caption="Epsilon is the total; neighbours: the values of one row change, labels and class sizes are "
            "public. Published curves stand over the epsilon that the papers claim. Bands of 95 %.",
            panels=("data",),
            curves=("trainer",),
            select=partial(_of_relation, endings=("replace", "published")),
        ),
        Plot(
            name="-budget",
            caption=f"{BUDGET_DATA.capitalize()}, over the part of epsilon that means and variances get; labels are "
            "public. Bands of 95 %.",
            panels=("epsilon",),
            curves=("trainer",),
            x=SHARE,
            columns=2,
            select=_divided,
        ),
    ),
    takes_peer=True,
    least_runs=1,
)


FEDERATED_DATA: Final = ("adult", "mushroom", "skin", "accelerometer", "spect")
NODES: Final = (1, 10, 100, 1000)
NODE_EPSILONS: Final = (0.01, 0.1, 1.0, 10.0)
VARIANTS: Final = (SOUND, PUBLISHED)


def measure_federated(execution: Execution) -> pd.DataFrame:
    """Mean accuracies: a row for every table, variant, number of nodes and epsilon."""
    epsilons = execution.epsilons(NODE_EPSILONS)
    rows = cross_validate(execution, FEDERATED_DATA, partial(measure_nodes, epsilons), VARIANTS, NODES, epsilons)
    return summarise(rows, "nodes").astype({"nodes": "Int64"})


def measure_nodes(epsilons: Sequence[float], split: Split) -> list[Row]:
    """A row for every variant, number of nodes and each of the ``epsilons``, and the references."""
    rows = [{**row, "nodes": None} for row in split.references()]
    variants = VARIANTS if split.data.has_numbers else (SOUND,)
    for fit, (variant, nodes, epsilon) in enumerate(product(variants, NODES, NODE_EPSILONS)):
        if epsilon not in epsilons:
            continue
        seed = split.seed(fit)
        trainer = FederatedNB(split.data.schema, nodes=nodes, epsilon=epsilon, variant=variant, random_state=seed)
        rows.append({**split.fit(trainer, trainer=variant, epsilon=epsilon), "nodes": nodes})
    return rows


FEDERATED: Final = Figure(
    name="federated-figures-1-to-3",
    about="Federated Naive Bayes (Marchioro et al.), figures 1 to 3: 1 to 1000 nodes",
    runs=REPEATS,
    of_runs=f"times {FOLDS} folds",
    measure=measure_federated,
    people=FEDERATED_DATA,
    epsilons=NODE_EPSILONS,
    plots=(
        Plot(
            name="",
            caption="Sound or as published, and the number of nodes. Epsilon is the total of a row at its node; "
            "neighbours: one row more or less. Published noise follows a node's own largest value, which guarantees "
            "nothing. Bands of 95 %.",
            panels=("data",),
            curves=("trainer", "nodes"),
        ),
    ),
    least_runs=1,
)
