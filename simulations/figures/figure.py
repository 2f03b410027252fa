"""A figure: an experiment that gives one table, and what is drawn and written from that table alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from simulations.studies.journal import Journal, experiment_id
from simulations.studies.workers import Trial, run_trials
from simulations.tables.frames import Table, TableError

DECIMALS = 4
"""Of the accuracies in a table; its page and its plots show these, so that they can be made again from it."""


@dataclass(frozen=True)
class Execution:
    """How an experiment is run. ``runs`` is what the figure says it is; ``peer`` an interpreter with diffprivlib."""

    runs: int
    journal: Path | None = None
    workers: int | None = None
    progress: bool = True
    peer: str | None = None

    def trials(
        self, trial: Trial, count: int, people: Table, *described: Any, description: str
    ) -> list[dict[str, Any]]:
        """The rows of ``count`` trials, those in the journal not run again.

        ``described`` is what makes this experiment another than the next one on the same ``people``, as JSON.
        """
        journal = Journal(self.journal, experiment_id(people, *described))
        run = partial(run_trials, workers=self.workers, progress=self.progress, description=description)
        return run(trial, range(count), journal)


@dataclass(frozen=True)
class Figure:
    """``measure`` runs the experiment; ``draw`` writes the plots and ``make_page`` the text from its table alone.

    ``about`` says in a line what is drawn, ``runs`` how often it is run unless told otherwise, and ``of_runs`` of what.
    """

    name: str
    about: str
    runs: int
    of_runs: str
    measure: Callable[[Execution], pd.DataFrame]
    draw: Callable[[pd.DataFrame, Path], list[Path]]
    make_page: Callable[[pd.DataFrame], str]
    takes_peer: bool = False
    least_runs: int = 2
    """Fewer have no standard error."""

    def table(self, folder: Path) -> Path:
        """Where the table lies in a folder of figures."""
        return folder / f"{self.name}.csv"

    def run(self, execution: Execution, folder: Path) -> list[Path]:
        """Measure, keep the table, and make plots and page from it; all paths."""
        if execution.peer and not self.takes_peer:
            raise TableError(f"{self.name}: no trainer of diffprivlib takes part; leave --peer out")
        if execution.runs < self.least_runs:
            raise TableError(f"{self.name}: standard errors take --runs {self.least_runs} or more")
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise TableError(f"{folder}: cannot be made a folder ({error.strerror})") from None
        self.measure(execution).round(DECIMALS).to_csv(self.table(folder), index=False)
        return self.redraw(folder)

    def redraw(self, folder: Path) -> list[Path]:
        """Make the plots and the page again from the table in the folder; all paths."""
        table, page = self.read(folder), folder / f"{self.name}.md"
        plots = self.draw(table, folder)
        page.write_text(self.make_page(table), encoding="utf-8")
        return [self.table(folder), *plots, page]

    def read(self, folder: Path) -> pd.DataFrame:
        """The table as it was measured. Raises TableError where there is none."""
        try:
            return pd.read_csv(self.table(folder), keep_default_na=False, na_values=[""])
        except OSError as error:
            raise TableError(f"{self.table(folder)}: cannot be read ({error.strerror})") from None
