"""Figure 2 of the LDP Naive Bayes paper: categorical data, five mechanisms, accuracy over epsilon.

Yilmaz, Al-Rubaie, Chang 2019, section 5.2, on Car, Chess, Mushroom and Connect-4. Four fifths of the people are
devices, a fifth is held out; the values are those that occur and negative counts become 1, both as in the paper. Two
accountings stand beside each other. ``total``: a device answers one question and loses epsilon in all, as a campaign
promises. ``per question``: a device answers every question with the full epsilon and loses (features + 1) x epsilon,
which is how the published curves can be had.
"""

from __future__ import annotations

from functools import partial
from itertools import product
from pathlib import Path
from typing import Final

import pandas as pd

from ldp_aggregator.simplex import FLOOR
from simulations.journal import Journal
from simulations.sources import Source
from simulations.trials import Design, Setting, fingerprint, run_trial, summarise
from simulations.uci import draft_of, people_of
from simulations.workers import run_trials

DATASETS: Final = ("car", "chess_krvkp", "mushroom", "connect4")
EPSILONS: Final = (0.5, 1.0, 2.0, 3.0, 4.0, 5.0)
MECHANISMS: Final = ("de", "sue", "oue", "she", "the")
THETA: Final = 0.25
"""The paper's threshold of THE."""

RUNS: Final = 100
DESIGN: Final = Design(post=FLOOR, fidelity="counts")
SETTINGS: Final = tuple(
    Setting(mechanism, epsilon, per_question=per_question)
    for per_question, mechanism, epsilon in product((False, True), MECHANISMS, EPSILONS)
)


def run(
    runs: int = RUNS, *, journal: Path | None = None, workers: int | None = None, progress: bool = True
) -> pd.DataFrame:
    """The summary of ``runs`` trials of every data set, mechanism, epsilon and accounting."""
    return pd.concat([_run_dataset(name, runs, journal, workers, progress) for name in DATASETS], ignore_index=True)


def _run_dataset(name: str, runs: int, journal: Path | None, workers: int | None, progress: bool) -> pd.DataFrame:
    draft = draft_of(name, observed=True, theta=THETA)
    source = Source(name, people_of(name, draft), draft)
    kept = Journal(journal, fingerprint(source, SETTINGS, DESIGN))
    trial = partial(run_trial, source, SETTINGS, DESIGN)
    summary = summarise(run_trials(trial, range(runs), kept, workers=workers, progress=progress))
    summary.insert(0, "dataset", name)
    return summary
