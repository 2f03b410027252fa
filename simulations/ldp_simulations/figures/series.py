"""Errors of a population's frequencies over many windows, at one claimed loss for life; and what is truly lost."""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Any, Final

import pandas as pd

from ldp_simulations.figures.figure import Execution, Figure, Plot
from ldp_simulations.studies.series import CHANGES, SPLIT_SMOOTHED, run_series, summarise
from ldp_simulations.studies.trials import Journal, run_trials

DEVICES: Final = 100_000
WINDOWS: Final = (4, 12, 26, 52)
EPSILONS: Final = (1.0, 2.0, 4.0)
RUNS: Final = 20

ERROR: Final = "error in %"
COVERED: Final = "covered in %"
LOSS: Final = "loss"


def measure(execution: Execution) -> pd.DataFrame:
    """The means over the runs, a row for every setting; errors and coverages in per cent."""
    rows: list[dict[str, Any]] = []
    epsilons = execution.epsilons(EPSILONS)
    for population, windows in product(execution.tables(CHANGES), WINDOWS):
        described = f"series of {DEVICES} devices, {population}, {windows} windows, {epsilons}"
        trial = partial(run_series, population, windows, epsilons, DEVICES)
        journal = Journal(execution.journal, described)
        rows += run_trials(trial, range(execution.runs), journal, workers=execution.workers, description=described)
    means = summarise(rows)
    per_cent = ["error", "standard_error", "covered", "covered_error"]
    means[per_cent] *= 100
    return means.rename(columns={"error": ERROR, "covered": COVERED})


def _covered(table: pd.DataFrame) -> pd.DataFrame:
    """The rows that have intervals."""
    return table.dropna(subset=[COVERED]).assign(standard_error=table["covered_error"])


def _losses(table: pd.DataFrame) -> pd.DataFrame:
    """The true losses, which are the same for every population."""
    rows = table[(table["population"] == table["population"].iloc[0]) & (table["way"] != SPLIT_SMOOTHED)]
    return pd.DataFrame(rows).assign(standard_error=0.0)


SERIES: Final = Figure(
    name="series",
    about="frequencies over many windows at one loss for life, and what is truly lost",
    runs=RUNS,
    of_runs="populations",
    measure=measure,
    people=tuple(CHANGES),
    epsilons=EPSILONS,
    plots=(
        Plot(
            name="-errors",
            caption="Root mean squared error of a cell's frequency, in per cent of the population, over the number of "
            "windows; epsilon is the loss for life that is claimed. Bands of 95 %.",
            panels=("population", "epsilon"),
            curves=("way",),
            x="windows",
            y=ERROR,
            y_label="error in per cent of the population",
        ),
        Plot(
            name="-losses",
            caption="The true loss of a device in its life, over the number of windows; of memoised answers "
            "a lower bound, by two lives of which one never changes.",
            panels=("epsilon",),
            curves=("way",),
            x="windows",
            y=LOSS,
            y_label="true loss",
            select=_losses,
        ),
        Plot(
            name="-coverage",
            caption="The share of 95 % intervals that hold the frequency. Bands of 95 %.",
            panels=("population", "epsilon"),
            curves=("way",),
            x="windows",
            y=COVERED,
            y_label="intervals that hold, in per cent",
            select=_covered,
        ),
    ),
)
