"""Figure 2 of the LDP Naive Bayes paper: categorical data, five mechanisms, accuracy over epsilon.

Yilmaz, Al-Rubaie, Chang 2019, section 5.2, on Car, Chess, Mushroom and Connect-4. Four fifths of the people are
devices, a fifth is held out; the values are those that occur and negative counts become 1, both as in the paper. Two
accountings stand beside each other. ``total``: a device answers one question and loses epsilon in all, as a campaign
promises. ``per question``: a device answers every question with the full epsilon and loses (features + 1) x epsilon,
which is how the published curves can be had.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any, Final

import pandas as pd

from ldp_aggregator.estimation.simplex import FLOOR, NORM_SUB
from ldp_aggregator.learning.training import LABEL_ONLY
from simulations.figures.figure import Execution, Figure, Plot
from simulations.studies.trials import Design, Setting, describe, run_trial, summarise
from simulations.tables.sources import Source
from simulations.tables.uci import draft_of, people_of

DATASETS: Final = ("car", "chess_krvkp", "mushroom", "connect4")
EPSILONS: Final = (0.5, 1.0, 2.0, 3.0, 4.0, 5.0)
MECHANISMS: Final = ("de", "sue", "oue", "she", "the")
THETA: Final = 0.25
"""The paper's threshold of THE."""

RUNS: Final = 100
DESIGN: Final = Design(post=FLOOR, fidelity="counts")


@dataclass(frozen=True)
class Choice:
    """A choice that a reader of the paper must make to draw its figure."""

    name: str
    observed: bool = True
    weighted: bool = False
    """True where a feature is asked about in proportion to its number of values; else all questions are as likely."""
    design: Design = DESIGN

    def draft(self, name: str) -> dict[str, Any]:
        """The draft of a data set."""
        draft = draft_of(name, observed=self.observed, theta=THETA)
        if self.weighted:
            draft["features"] = [{**feature, "weight": len(feature["values"])} for feature in draft["features"]]
        return draft


AS_DRAWN: Final = Choice("as drawn")
CHOICES: Final = (
    Choice("documented values", observed=False),
    Choice("nearest probabilities", design=replace(DESIGN, post=NORM_SUB)),
    Choice("classes from the label question", design=replace(DESIGN, prior=LABEL_ONLY)),
    Choice("asked by number of values", weighted=True),
)
"""One other choice each, at the epsilon and on the data set of the paper's plainest sentence."""

CHECKED_DATA: Final = "mushroom"
CHECKED_EPSILON: Final = 0.5
SETTINGS: Final = tuple(
    Setting(mechanism, epsilon, per_question=per_question)
    for per_question, mechanism, epsilon in product((False, True), MECHANISMS, EPSILONS)
)
CHECKED: Final = tuple(setting for setting in SETTINGS if setting.epsilon == CHECKED_EPSILON)


def measure(execution: Execution) -> pd.DataFrame:
    """The summary of the trials of every data set, mechanism, epsilon and accounting, and of the other choices."""
    drawn = [(name, AS_DRAWN, SETTINGS) for name in DATASETS]
    others = [(CHECKED_DATA, choice, CHECKED) for choice in CHOICES]
    return pd.concat([_measure(*each, execution) for each in (*drawn, *others)], ignore_index=True)


def _of(summary: pd.DataFrame, *, per_question: bool) -> pd.DataFrame:
    return summary[(summary["choice"] == AS_DRAWN.name) & (summary["per_question"] == per_question)]


def _measure(name: str, choice: Choice, settings: Sequence[Setting], execution: Execution) -> pd.DataFrame:
    draft = choice.draft(name)
    source = Source(name, people_of(name, draft), draft)
    trial = partial(run_trial, source, settings, choice.design)
    described = describe(source, settings, choice.design)
    summary = summarise(
        execution.trials(trial, execution.runs, source.people, *described, description=f"{name}, {choice.name}")
    )
    summary.insert(0, "dataset", name)
    summary.insert(1, "choice", choice.name)
    return summary


FIGURE: Final = Figure(
    name="ldp-figure-2",
    about="LDP Naive Bayes, figure 2: categorical features, five mechanisms",
    runs=RUNS,
    of_runs="splits",
    measure=measure,
    plots=tuple(
        Plot(
            name=f"-{name.replace(' ', '-')}",
            caption=f"Epsilon {name}, {meaning}; means with bands of 95 %.",
            panels=("dataset",),
            curves=("mechanism",),
            columns=2,
            select=partial(_of, per_question=name == "per question"),
        )
        for name, meaning in (
            ("per question", "so that a device loses (features + 1) times as much"),
            ("total", "of which a device that answers one question loses all"),
        )
    ),
)
