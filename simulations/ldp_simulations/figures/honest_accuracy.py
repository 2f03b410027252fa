"""Accuracy at a total epsilon, over the number of devices: the base, the default, and the default evaluated.

The categorical tables as they are, the continuous features in eight bins; four fifths of the people are drawn from with
replacement, a fifth is held out. A device answers one question of what a draft asks with all of its epsilon. *Base* and
*default* make tables of the same reports; *evaluated* learns from nine tenths of the devices and asks the others how
good that model is, whose threshold is moved where that is clearly better.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache, partial
from itertools import product
from typing import Any, Final

import numpy as np
import pandas as pd

from ldp_aggregator.counting.tally import Tally
from ldp_aggregator.estimation import effects, evidence, posterior, simplex
from ldp_aggregator.estimation.simplex import NORM_SUB
from ldp_aggregator.evaluation.figures import evaluate
from ldp_aggregator.evaluation.rounds import evaluation_draft, with_threshold
from ldp_aggregator.learning.training import Decoding, learn
from ldp_aggregator.mechanisms import analysis_of
from ldp_protocols import Campaign
from ldp_protocols.document.model import DiscreteLikelihood, Model
from ldp_protocols.document.questions import RIGHT
from ldp_simulations.benchmarks import draft_of, people_of
from ldp_simulations.columns import Columns, Floats, Integers
from ldp_simulations.fidelities import simulate_counts
from ldp_simulations.figures.figure import Execution, Figure, Plot
from ldp_simulations.figures.overview import Overview
from ldp_simulations.studies.trials import EVALUATING

CHOSEN_ON: Final = (
    "chess_krvkp", "mushroom", "car", "connect4", "adult", "australian", "diabetes", "skin", "spect", "seeds"
)  # fmt: skip
"""Tables on which the constants of the default were chosen."""

UNEVEN: Final = (
    "bank_churn", "framingham", "hr_left", "oil_spill", "telco_churn", "travel_claims", "wine_white"
)  # fmt: skip
"""Tables whose classes are uneven, on which no constant was."""

DATASETS: Final = (*CHOSEN_ON, *UNEVEN)
EPSILONS: Final = (0.5, 1.0, 2.0)
DEVICES: Final = (1_000, 5_000, 20_000, 80_000, 320_000)
BASE: Final = "base"
DEFAULT: Final = "default"
EVALUATED: Final = "evaluated"
VARIANTS: Final = (BASE, DEFAULT, EVALUATED)
RUNS: Final = 100
KEYS: Final = ("dataset", "epsilon", "devices", "variant")

_BINS: Final = 8
_MOST_PEOPLE: Final = 60_000  # Of Skin, whose rows repeat each other.
_MOST_HELD_OUT: Final = 4_000


def measure(execution: Execution) -> pd.DataFrame:
    """The means over the splits, a row for every setting."""
    rows: list[dict[str, Any]] = []
    epsilons = execution.epsilons(EPSILONS)
    for name in execution.tables(DATASETS):
        described = (name, epsilons, DEVICES, VARIANTS)
        table = people_of(name, draft_for(name, 1.0))
        trial = partial(run_trial, name, epsilons)
        rows += execution.trials(trial, execution.runs, table, *described, description=name)
    return summarise(rows)


def draft_for(name: str, epsilon: float) -> dict[str, Any]:
    """A table's draft, which leaves open what can be left open."""
    draft = {**draft_of(name, bins=_BINS, observed=True), "title": name, "study": name}
    return {**draft, "privacy": {"epsilon": epsilon}}


@cache
def _campaign_of(name: str, epsilon: float) -> Campaign:
    return Campaign.compile(draft_for(name, epsilon))


@cache
def _people(name: str) -> tuple[Columns, Integers]:
    """A table as its campaign sees it, and the value indices of its features, shape (people, features)."""
    campaign = _campaign_of(name, 1.0)
    table = people_of(name, draft_for(name, 1.0))
    if len(table) > _MOST_PEOPLE:
        table = table.take(np.random.default_rng(0).permutation(len(table))[:_MOST_PEOPLE])
    columns = Columns.of(campaign, table.frame, table.labels)
    return columns, np.column_stack([columns.value_indices(feature.name) for feature in campaign.asked])


def run_trial(name: str, epsilons: Sequence[float], seed: int) -> list[dict[str, Any]]:
    """One row for every epsilon, number of devices and variant, all on one split; of one seed the same rows."""
    columns, values = _people(name)
    order = np.random.default_rng([seed, 0]).permutation(len(columns))
    cut = round(0.8 * len(order))
    training, held_out = order[:cut], order[cut : cut + _MOST_HELD_OUT]
    features = {feature: column[training] for feature, column in columns.features.items()}
    classes, truth, k = columns.classes[training], columns.classes[held_out], columns.class_count
    shares = np.bincount(classes, minlength=k)
    exact = [
        # Who lacks a value counts in a row before those of the values, which is left out.
        np.bincount((values[training, j] + 1) * k + classes, minlength=(feature.size + 1) * k).reshape(-1, k)[1:] + 1.0
        for j, feature in enumerate(columns.campaign.asked)
    ]
    without = scores(shares / shares.sum(), [table / table.sum(axis=0) for table in exact], values[held_out])
    references = {
        "majority": float((truth == shares.argmax()).mean()),
        "non_private": float((without.argmax(axis=1) == truth).mean()),
    }
    rows = []
    for epsilon, devices in product(epsilons, DEVICES):
        rng = np.random.default_rng([seed, round(100 * epsilon), devices])
        campaign, evaluating = _campaign_of(name, epsilon), round(EVALUATING * devices)
        people = Columns(campaign, classes, features)
        most, rest = (simulate_counts(people, rng, n) for n in (devices - evaluating, evaluating))
        learned = learn([(campaign, most)], Decoding()).model
        models = {
            BASE: learn([(campaign, most + rest)], Decoding(post=NORM_SUB)).model,
            DEFAULT: learn([(campaign, most + rest)], Decoding()).model,
            EVALUATED: _evaluated(campaign, learned, values[training], classes, evaluating, rng),
        }
        for variant, model in models.items():
            said = scores(*_tables(model), values[held_out]).argmax(axis=1)
            place = {"seed": seed, "dataset": name, "epsilon": epsilon, "devices": devices, "variant": variant}
            rows.append({**place, "accuracy": float((said == truth).mean()), **references})
    return rows


def _evaluated(
    campaign: Campaign, model: Model, values: Integers, classes: Integers, devices: int, rng: np.random.Generator
) -> Model:
    """The model with the threshold that so many devices, whose people have these values and classes, chose."""
    round_ = Campaign.compile(evaluation_draft([campaign], model))
    asked, found = round_.evaluation, scores(*_tables(model), values)
    if asked is None or asked.edges is None:  # Of more than two classes no threshold is moved.
        return model
    right = (found.argmax(axis=1) == classes).astype(np.int64)
    places = np.searchsorted(np.array(asked.edges), found[:, 1] - found[:, 0], side="left") * 2 + classes
    tally = Tally(round_)
    weights = np.array([question.weight for question in round_.questions])
    for question, n in zip(round_.questions, rng.multinomial(devices, weights / weights.sum()).tolist(), strict=True):
        items = right if question.kind == RIGHT else places
        held = rng.multinomial(n, np.bincount(items, minlength=question.domain_size) / len(items))
        tally.add(question.index, n, analysis_of(question.mechanism).tally(held, rng))
    return with_threshold(model, evaluate(round_, tally).threshold)


def _tables(model: Model) -> tuple[Floats, list[Floats]]:
    tables = [np.array(one.table) for one in model.likelihoods if isinstance(one, DiscreteLikelihood)]
    return np.array(model.prior), tables


def scores(prior: Floats, tables: Iterable[Floats], values: Integers) -> Floats:
    """Joint log likelihoods of people with these value indices, shape (people, classes); -1 says nothing."""
    found = np.tile(np.log(prior), (len(values), 1))
    for position, table in enumerate(tables):
        found += np.vstack([np.log(table), np.zeros_like(prior)])[values[:, position]]
    return found


def summarise(rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """One row for every setting, in the order of the experiment."""
    frame = pd.DataFrame(list(rows))
    place = ["seed", *KEYS[:3]]
    base = frame[frame["variant"] == BASE].set_index(place)["accuracy"]
    frame["above_base"] = frame["accuracy"] - base.reindex(pd.MultiIndex.from_frame(frame[place])).to_numpy()
    groups = frame.groupby(list(KEYS), sort=False)
    means = groups[["accuracy", "majority", "non_private", "above_base"]].mean()
    means.insert(1, "standard_error", groups["accuracy"].sem())
    means["above_base_error"] = groups["above_base"].sem()
    means.insert(0, "splits", groups.size())
    return means.reset_index()


_LOSS: Final = 0.01
"""Accuracy below the base from which on a setting is named."""


def summary(table: pd.DataFrame) -> str:
    """A row for each table, how often the default is better and what it costs, and the settings it loses in."""
    gains = table[table["variant"] != BASE]
    default = gains[gains["variant"] == DEFAULT]
    rows = []
    for name, here in default.groupby("dataset", sort=False):
        evaluated = gains[(gains["dataset"] == name) & (gains["variant"] == EVALUATED)]
        least = here.sort_values("above_base").iloc[0]
        rows.append(
            f"| {name} | {here['above_base'].mean():+.3f} | {_better(here)} | {evaluated['above_base'].mean():+.3f} | "
            f"{least['above_base']:+.3f} ± {least['above_base_error']:.3f} ({_place(least)}) |"
        )
    by_table = default.groupby("dataset", sort=False)[["above_base"]].mean()
    uneven = by_table[by_table.index.isin(UNEVEN)]
    lost = default[(default["above_base"] < -_LOSS) & (default["above_base"] < -2 * default["above_base_error"])]
    below = default[default["accuracy"] - default["majority"] < -2 * default["standard_error"]]
    grid = [
        f"| {variant} | {epsilon:g} | "
        + " | ".join(_mean_gain(here) for _, here in of_epsilon.groupby("devices"))
        + " |"
        for (variant, epsilon), of_epsilon in gains.groupby(["variant", "epsilon"], sort=False)
    ]
    return "\n".join(
        [
            f"The default is better than the base on {_better(by_table)} tables, by "
            f"{by_table['above_base'].mean():.3f} on average; in {_better(default)} settings (epsilon, devices). "
            "Of the tables that no constant was chosen on: "
            f"on {_better(uneven)}, by {uneven['above_base'].mean():.3f}.",
            "",
            "## A row for each table",
            "",
            "Accuracy gained over the base, mean of all settings; in how many the default is better; and the one that "
            "costs most.",
            "",
            "| table | default | better in | evaluated | least |",
            "| --- | ---: | ---: | ---: | --- |",
            *rows,
            "",
            f"## Where the default is more than {_LOSS:g} and two standard errors below the base",
            "",
            *(
                f"* {_place(one, table=True)}: {one['above_base']:+.3f} ± {one['above_base_error']:.3f}"
                for _, one in lost.iterrows()
            ),
            *(["Nowhere."] if lost.empty else []),
            "",
            "## Where the default is below always saying the most frequent class",
            "",
            f"By more than two standard errors, in {len(below)} of {len(default)} settings. An evaluation shows it.",
            "",
            "| table | most frequent class | without privacy | default |",
            "| --- | ---: | ---: | --- |",
            *(_below_majority(str(name), here) for name, here in below.groupby("dataset", sort=False)),
            "",
            "## By epsilon and devices",
            "",
            "Accuracy gained over the base, mean over the tables, with the error of that mean over splits.",
            "",
            "| | epsilon | " + " | ".join(f"{devices:,}" for devices in DEVICES) + " |",
            "| --- | ---: |" + " ---: |" * len(DEVICES),
            *grid,
            "",
            "## Accuracy",
        ]
    )


def _better(gains: pd.DataFrame) -> str:
    return f"{(gains['above_base'] > 0).sum()} of {len(gains)}"


def _mean_gain(gains: pd.DataFrame) -> str:
    error = np.sqrt((gains["above_base_error"] ** 2).sum()) / len(gains)
    return f"{gains['above_base'].mean():+.3f} ± {error:.3f}"


def _below_majority(name: str, settings: pd.DataFrame) -> str:
    """A row: what always saying the most frequent class reaches, and how far below it the default is where."""
    first = settings.iloc[0]
    places = (f"{one['accuracy']:.3f} ± {one['standard_error']:.3f} ({_place(one)})" for _, one in settings.iterrows())
    return f"| {name} | {first['majority']:.3f} | {first['non_private']:.3f} | {'; '.join(places)} |"


def _place(setting: Mapping[str, Any] | pd.Series[Any], *, table: bool = False) -> str:
    name = f"{setting['dataset']}, " if table else ""
    return f"{name}epsilon {setting['epsilon']:g}, {setting['devices']:,} devices"


HONEST_ACCURACY: Final = Figure(
    name="honest-accuracy",
    about="accuracy over devices at a total epsilon: base, default, evaluated",
    runs=RUNS,
    of_runs="splits",
    measure=measure,
    people=DATASETS,
    epsilons=EPSILONS,
    summary=summary,
    measured_of=(posterior, effects, evidence, simplex),
    plots=(
        Plot(
            name="",
            caption="Base: nearest probabilities; default: shrunk by the known noise; evaluated: a tenth of the "
            "devices tell how good it is. Epsilon is what a device loses in all. Bands of 95 %.",
            panels=("dataset", "epsilon"),
            curves=("variant",),
            x="devices",
        ),
    ),
    overviews=(
        Overview(
            name="-overview",
            title=("On average, 20,000 devices reach three", "quarters of what is to learn (epsilon 1)"),
            devices=(1_000, 20_000, 320_000),
            select=lambda table: table[(table["epsilon"] == 1) & (table["variant"] == DEFAULT)],
        ),
    ),
)
