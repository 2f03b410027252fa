"""Figures 3 and 4 of the LDP Naive Bayes paper: continuous features, discretised or Gaussian, raw, PCA or DCA.

Yilmaz, Al-Rubaie, Chang 2019, section 5.3, on the Australian and the Diabetes data. Every run shuffles the people: a
fifth is the *public* sample that a projection is fitted on (and nothing else is), three fifths are devices, a fifth is
held out. Two accountings stand beside each other. ``total``: a device loses epsilon in all, as a campaign promises.
``per question``:
every device answers every question with the full epsilon, so that it loses (questions) x epsilon; this is how the
paper's discretised curves can be had at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
import pandas as pd

from ldp_aggregator import NaiveBayes
from ldp_aggregator.estimation.simplex import NORM_SUB
from ldp_aggregator.learning.projections import add_to_draft, fit_projection, moments_of_table
from protocols import Campaign
from protocols.document.authored import asked_features
from protocols.document.schema import ContinuousFeature
from simulations import simulate
from simulations.figures.figure import Execution, Figure, Plot, mean_accuracies
from simulations.studies.trials import accuracy, learned, majority
from simulations.tables.frames import Table
from simulations.tables.uci import draft_of, people_of

DATASETS: Final = ("australian", "diabetes")
EPSILONS: Final = (0.5, 1.0, 2.0, 4.0)
RUNS: Final = 100
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


def measure(execution: Execution) -> pd.DataFrame:
    """The summary of the runs on every data set."""
    rows = []
    for name in DATASETS:
        draft = draft_of(name, numeric=True)
        described = [draft, [repr(method) for method in METHODS], EPSILONS, INPUTS, COMPONENTS]
        rows += execution.trials(
            partial(run_once, name), execution.runs, people_of(name, draft), *described, description=name
        )
    return mean_accuracies(pd.DataFrame(rows), list(COLUMNS[:6]), "runs")


def run_once(dataset: str, seed: int) -> list[dict[str, Any]]:
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
            for epsilon in EPSILONS:
                for accounting in ("total", "per question") if method.per_question else ("total",):
                    draft = _priced(base, method, epsilon, accounting)
                    campaign = Campaign.compile(draft)
                    tally = simulate(campaign, devices.frame, devices.labels, rng)
                    found = accuracy(learned(campaign, tally, post=NORM_SUB), held_out)
                    total = campaign.privacy.epsilon
                    rows.append((inputs, method.name, accounting, epsilon, total, found))
    return [dict(zip(COLUMNS, (dataset, *row, seed), strict=True)) for row in rows]


def _with_projection(draft: Mapping[str, Any], inputs: str, public: Table, bins: int | None) -> dict[str, Any]:
    """The draft about the raw features, or about the outputs of a projection fitted on the public sample."""
    if inputs == "raw":
        return {**draft, "features": [{**feature, "bins": bins} for feature in draft["features"]]}
    campaign = Campaign.compile(draft)
    features = [feature for feature in campaign.features if isinstance(feature, ContinuousFeature)]
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


FIGURE: Final = Figure(
    name="ldp-figures-3-and-4",
    about="LDP Naive Bayes, figures 3 and 4: continuous features, raw or projected",
    runs=RUNS,
    of_runs="splits",
    measure=measure,
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
        for dataset in DATASETS
    ),
)
