"""Figures 2 to 4 of the LDP Naive Bayes paper (Yilmaz, Al-Rubaie, Chang 2019): what devices answer.

Two accountings stand beside each other. ``total``: a device loses epsilon in all, as a campaign promises; of discrete
features it answers one question. ``per question``: every device answers every question with the full epsilon, so that
it loses (questions) x epsilon; this is how the published curves can be had.

Figure 2 (section 5.2): categorical data, five mechanisms, accuracy over epsilon, on Car, Chess, Mushroom and Connect-4.
Four fifths of the people are devices, a fifth is held out; the values are those that occur and negative counts become
1, both as in the paper.

Figures 3 and 4 (section 5.3): continuous features, discretised or Gaussian, raw, PCA or DCA, on the Australian and the
Diabetes data. Every run shuffles the people: a fifth is the *public* sample that a projection is fitted on (and nothing
else is), three fifths are devices, a fifth is held out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any, Final

import numpy as np
import pandas as pd

from ldp_aggregator import NaiveBayes
from ldp_aggregator.estimation.simplex import FLOOR, NORM_SUB
from ldp_aggregator.learning.projections import add_to_draft, fit_projection, moments_of_table
from ldp_aggregator.learning.training import LABEL_ONLY
from ldp_protocols import Campaign
from ldp_protocols.document.authored import asked_features
from ldp_simulations import simulate
from ldp_simulations.benchmarks import draft_of, people_of
from ldp_simulations.figures.figure import Execution, Figure, Plot, mean_accuracies
from ldp_simulations.studies.trials import Design, Setting, accuracy, describe, learned, majority, run_trial, summarise
from ldp_simulations.tables import Source, Table

DISCRETE_DATA: Final = ("car", "chess_krvkp", "mushroom", "connect4")
DISCRETE_EPSILONS: Final = (0.5, 1.0, 2.0, 3.0, 4.0, 5.0)
MECHANISMS: Final = ("de", "sue", "oue", "she", "the")
THETA: Final = 0.25
"""The paper's threshold of THE."""

RUNS: Final = 100
DESIGN: Final = Design(post=FLOOR)


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
    for per_question, mechanism, epsilon in product((False, True), MECHANISMS, DISCRETE_EPSILONS)
)
CHECKED: Final = tuple(setting for setting in SETTINGS if setting.epsilon == CHECKED_EPSILON)


def measure_discrete(execution: Execution) -> pd.DataFrame:
    """The summary of the trials of every data set, mechanism, epsilon and accounting, and of the other choices."""
    drawn = [(name, AS_DRAWN, SETTINGS) for name in execution.tables(DISCRETE_DATA)]
    others = [(name, choice, CHECKED) for name in execution.tables([CHECKED_DATA]) for choice in CHOICES]
    measured = [
        _measure(name, choice, chosen, execution)
        for name, choice, settings in (*drawn, *others)
        if (chosen := [one for one in settings if execution.epsilons([one.epsilon])])
    ]
    return pd.concat(measured, ignore_index=True)


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


DISCRETE: Final = Figure(
    name="ldp-figure-2",
    about="LDP Naive Bayes, figure 2: discrete features, five mechanisms",
    runs=RUNS,
    of_runs="splits",
    measure=measure_discrete,
    people=DISCRETE_DATA,
    epsilons=DISCRETE_EPSILONS,
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


NUMERIC_DATA: Final = ("australian", "diabetes")
NUMERIC_EPSILONS: Final = (0.5, 1.0, 2.0, 4.0)
BINS: Final = 4
"""Bins of a discretised feature or output: few, because a few hundred devices answer."""

INPUTS: Final = ("raw", "pca", "dca")
COMPONENTS: Final = 1
COLUMNS: Final = ("dataset", "inputs", "method", "accounting", "epsilon", "total_epsilon", "accuracy", "seed")


@dataclass(frozen=True)
class Method:
    """A way to ask about a continuous feature."""

    name: str
    bins: int | None
    privacy: Mapping[str, str]
    per_question: bool
    """True where the per-question accounting makes sense: Approach 1 is a split of the total by definition."""


METHODS: Final = (
    Method("bins, DE", BINS, {"discrete": "de"}, True),
    Method("bins, OUE", BINS, {"discrete": "oue"}, True),
    Method("Gaussian, approach 1", None, {"continuous": "laplace", "answers": "all"}, False),
    Method("Gaussian, approach 2", None, {"continuous": "onebit"}, True),
    Method("Gaussian, approach 3", None, {"continuous": "laplace"}, True),
    Method("Gaussian, sign", None, {"continuous": "sign"}, True),
)


def measure_numeric(execution: Execution) -> pd.DataFrame:
    """The summary of the runs on every data set."""
    rows, epsilons = list[dict[str, Any]](), execution.epsilons(NUMERIC_EPSILONS)
    for name in execution.tables(NUMERIC_DATA):
        draft = draft_of(name, numeric=True)
        described = [draft, [repr(method) for method in METHODS], epsilons, INPUTS, COMPONENTS]
        trial = partial(run_once, name, epsilons)
        rows += execution.trials(trial, execution.runs, people_of(name, draft), *described, description=name)
    return mean_accuracies(pd.DataFrame(rows), list(COLUMNS[:6]), "runs")


def run_once(dataset: str, epsilons: Sequence[float], seed: int) -> list[dict[str, Any]]:
    """One shuffle of the people: a row for every input, method, accounting and epsilon, and the references."""
    numeric = draft_of(dataset, numeric=True)
    people = people_of(dataset, numeric)
    rng = np.random.default_rng(seed)
    public, rest = people.split(0.2, rng)
    devices, held_out = rest.split(0.75, rng)
    rows = [("raw", "majority", "", 0.0, 0.0, majority(devices, held_out))]
    for inputs in INPUTS:
        gaussian = _with_projection(numeric, inputs, public, None)
        model = NaiveBayes(gaussian, variance_floor=1e-3).fit(devices.frame, devices.labels)
        rows.append((inputs, "non-private Gaussian", "", 0.0, 0.0, accuracy(model, held_out)))
        for method in METHODS:
            base = _with_projection(numeric, inputs, public, method.bins)
            for epsilon in epsilons:
                for accounting in ("total", "per question") if method.per_question else ("total",):
                    campaign = Campaign.compile(_priced(base, method, epsilon, accounting))
                    tally = simulate(campaign, devices.frame, devices.labels, rng)
                    found = accuracy(learned(campaign, tally, post=NORM_SUB), held_out)
                    rows.append((inputs, method.name, accounting, epsilon, campaign.privacy.epsilon, found))
    return [dict(zip(COLUMNS, (dataset, *row, seed), strict=True)) for row in rows]


def _with_projection(draft: Mapping[str, Any], inputs: str, public: Table, bins: int | None) -> dict[str, Any]:
    """The draft about the raw features, or about the outputs of a projection fitted on the public sample."""
    if inputs == "raw":
        return {**draft, "features": [{**feature, "bins": bins} for feature in draft["features"]]}
    campaign = Campaign.compile(draft)
    features = [feature.number for feature in campaign.features if feature.number]
    table = public.frame.assign(**{campaign.label.name: public.labels})
    moments = moments_of_table(features, campaign.label, table)
    return add_to_draft(draft, fit_projection(moments, inputs, COMPONENTS, bins=bins))


def _priced(draft: Mapping[str, Any], method: Method, epsilon: float, accounting: str) -> dict[str, Any]:
    """The draft with the method's mechanism and an epsilon in the given accounting."""
    privacy: dict[str, Any] = {"epsilon": epsilon, **method.privacy}
    if accounting == "per question":
        campaign = Campaign.compile(draft)
        groups = len(asked_features(campaign.features, campaign.projection)) + 1
        privacy |= {"epsilon": epsilon * groups, "answers": "all"}
    return {**draft, "privacy": privacy}


def _of_dataset(summary: pd.DataFrame, dataset: str) -> pd.DataFrame:
    return summary[summary["dataset"] == dataset]


NUMERIC: Final = Figure(
    name="ldp-figures-3-and-4",
    about="LDP Naive Bayes, figures 3 and 4: numeric features, raw or projected",
    runs=RUNS,
    of_runs="splits",
    measure=measure_numeric,
    people=NUMERIC_DATA,
    epsilons=NUMERIC_EPSILONS,
    plots=tuple(
        Plot(
            name=f"-{dataset}",
            caption=f"{dataset.capitalize()}. Total: epsilon is what a device loses; per question: it loses as many "
            "times as much as there are questions, two on one component. Bands of 95 %.",
            panels=("accounting", "inputs"),
            curves=("method",),
            headings=2,
            select=partial(_of_dataset, dataset=dataset),
        )
        for dataset in NUMERIC_DATA
    ),
)
