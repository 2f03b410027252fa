"""Trainers that hold the table: global sensitivity, smooth sensitivity and noisy sums, as published and sound.

Vaidya, Shafiq, Basu, Hong 2013, figure 3, and Zafarani, Clifton 2020, figures 4 to 12, on those of their tables that
there are: accuracy over epsilon, and (figure 10) on adult over the part of epsilon that the moments of the numbers get.
Published curves stand over the epsilon that the papers claim; ``guaranteed_epsilon`` is the one that holds.

diffprivlib's GaussianNB takes part on the same splits, in an environment of its own: nothing of it is imported here.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ldp_aggregator.trainers import GlobalSensitivityNB, SmoothSensitivityNB, SufficientStatisticsNB
from ldp_aggregator.trainers.base import PrivateNaiveBayes
from simulations.figures.cross_validation import FOLDS, REPEATS, Row, Split, cross_validate, summarise
from simulations.figures.figure import Execution, Figure, Plot
from simulations.tables.frames import TableError

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
        told = (error.stderr or "").strip().splitlines() if isinstance(error, subprocess.CalledProcessError) else []
        problem = told[-1] if told else getattr(error, "strerror", None) or str(error)
        raise TableError(
            f"--peer {python}: cannot import diffprivlib ({problem}); "
            "make an environment with python -m venv F; F/bin/pip install diffprivlib"
        ) from None
    return Peer(python, version)


def _output(python: str, *arguments: str) -> str:
    done = subprocess.run([python, *arguments], capture_output=True, check=True, text=True)  # noqa: S603 (the user names it)
    return done.stdout


def measure(execution: Execution) -> pd.DataFrame:
    """Mean accuracies: a row for every table, trainer and epsilon, and on adult for every share."""
    peer = find_peer(execution.peer) if execution.peer else None
    shared = [list(TRAINERS), EPSILONS, peer.version if peer else None]
    curves = cross_validate(execution, DATA, partial(measure_curves, peer), *shared)
    budget = cross_validate(execution, [BUDGET_DATA], measure_budget, [DIVIDED, BUDGET_EPSILONS, SHARES])
    return summarise([{SHARE: np.nan, **row} for row in (*curves, *budget)], SHARE)


def measure_curves(peer: Peer | None, split: Split) -> list[Row]:
    """A row for every trainer and epsilon, and the references."""
    rows = split.references()
    for fit, (name, epsilon) in enumerate(product(TRAINERS, EPSILONS)):
        make, parameters = TRAINERS[name]
        trainer = make(split.data.schema, epsilon=epsilon, random_state=split.seed(fit), **parameters)
        rows.append(split.fit(trainer, trainer=name, epsilon=epsilon))
    if peer and split.data.is_numeric:
        for epsilon, found in zip(EPSILONS, peer.accuracies(split, EPSILONS), strict=True):
            rows.append(split.row(found, trainer=peer.name, epsilon=epsilon))
    return rows


def measure_budget(split: Split) -> list[Row]:
    """A row for every trainer, epsilon and share."""
    rows = []
    first = len(TRAINERS) * len(EPSILONS)
    for fit, (name, epsilon, share) in enumerate(product(DIVIDED, BUDGET_EPSILONS, SHARES), start=first):
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


FIGURE: Final = Figure(
    name="global-and-smooth-figures",
    about="Vaidya et al., figure 3; Zafarani and Clifton, figures 4 to 12: who holds the table",
    runs=REPEATS,
    of_runs=f"times {FOLDS} folds",
    measure=measure,
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
