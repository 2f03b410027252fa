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
from typing import Final

import pandas as pd

from ldp_aggregator.simplex import FLOOR
from simulations.figures.figure import Execution
from simulations.sources import Source
from simulations.trials import Design, Setting, describe, run_trial, summarise
from simulations.uci import draft_of, people_of

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


def measure(execution: Execution) -> pd.DataFrame:
    """The summary of the trials of every data set, mechanism, epsilon and accounting."""
    return pd.concat([_measure_dataset(name, execution) for name in DATASETS], ignore_index=True)


def _measure_dataset(name: str, execution: Execution) -> pd.DataFrame:
    draft = draft_of(name, observed=True, theta=THETA)
    source = Source(name, people_of(name, draft), draft)
    trial = partial(run_trial, source, SETTINGS, DESIGN)
    described = describe(source, SETTINGS, DESIGN)
    rows = execution.trials(trial, execution.runs, source.people, *described, description=name)
    summary = summarise(rows)
    summary.insert(0, "dataset", name)
    return summary
