"""Accuracy at a total epsilon, over the number of devices: how tables are made of the same reports, side by side.

The categorical tables as they are, the continuous features in eight bins; four fifths of the people are drawn from with
replacement, a fifth is held out. A device answers one question with all of its epsilon. The base asks cells, and nobody
for the class alone; the default asks what a draft asks where it says nothing of it. ``per question`` is the accounting
of published curves: a device answers every question with the full epsilon, and loses as many times as much.

A :class:`Variant` is another way from devices to a classifier. Those that only decode see the same reports of the same
devices; one that asks otherwise draws its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ldp_aggregator.estimation.estimators import QuestionEstimate
from ldp_aggregator.estimation.joint import sign_of, table_of_signs
from ldp_aggregator.estimation.pooling import pool_classes
from ldp_aggregator.estimation.posterior.tables import Posterior
from ldp_aggregator.estimation.simplex import norm_sub
from ldp_aggregator.learning.prediction import PredictedAccuracy, predict_accuracy, widened
from ldp_aggregator.learning.redundancy import feature_weights
from protocols.document.questions import PAIR, XOR
from protocols.document.schema import CategoricalFeature
from protocols.model import DiscreteLikelihood, Model
from simulations.fidelities.items import Columns
from simulations.figures.figure import Execution
from simulations.figures.honest_asking import Asked, Asking, campaign_of, draft_for, people
from simulations.tables.uci import people_of

Array = NDArray[np.float64]

CHOSEN: Final = ("chess_krvkp", "mushroom", "car", "connect4")
"""On which constants were chosen; the page says which others were looked at."""
CHECKED: Final = ("adult", "australian", "diabetes", "skin", "spect", "seeds")
DATASETS: Final = (*CHOSEN, *CHECKED)
EPSILONS: Final = (0.5, 1.0, 2.0)
DEVICES: Final = (1_000, 5_000, 20_000, 80_000, 320_000)
MORE_DEVICES: Final = (1_280_000, 5_120_000)  # For the base alone, which needs them for what others reach with fewer.

BASE: Final = "base"
BELIEVED: Final = "S"
WEIGHED: Final = "S W"
DEFAULT: Final = "S W X"
PER_QUESTION: Final = "per question"
RUNS: Final = 100
KEYS: Final = ("dataset", "epsilon", "devices", "variant")

_MOST_HELD_OUT: Final = 4_000


class Classifier(NamedTuple):
    """P(class), P(value | class) and a weight of every feature; and what was told of its accuracy, if anything."""

    prior: Array
    tables: Sequence[Array]
    weights: Sequence[float]
    predicted: PredictedAccuracy | None = None

    def accuracy(self, values: NDArray[np.int64], classes: NDArray[np.int64]) -> float:
        """Of people with these value indices, shape (people, features)."""
        scores = np.tile(np.log(self.prior), (len(classes), 1))
        for position, (table, weight) in enumerate(zip(self.tables, self.weights, strict=True)):
            scores += (weight * np.log(table))[values[:, position]]
        return float((scores.argmax(axis=1) == classes).mean())


class Learned(Protocol):
    """What a variant makes: a classifier, or several of which each is published in some cases."""

    @property
    def predicted(self) -> PredictedAccuracy | None: ...
    def accuracy(self, values: NDArray[np.int64], classes: NDArray[np.int64], /) -> float: ...


@dataclass(frozen=True)
class Variant:
    """``learn`` makes a classifier of the devices asked; ``devices`` are the numbers of devices it is tried with."""

    name: str
    learn: Callable[[Asked], Learned]
    devices: Sequence[int] = field(default=DEVICES)


def nearest_probabilities(told: Sequence[QuestionEstimate], classes: int) -> Classifier:
    """The base: ``norm_sub``, a pseudo-report a cell, the pooled prior."""
    reports, shares = sum(one.n for one in told), pool_classes(told, classes, shared_records=False)
    counts = norm_sub(shares.value) * reports + 1
    tables = []
    for place, one in enumerate(told):
        if one.question.kind == PAIR:
            cells, n = one.cells, one.n
        elif one.question.kind == XOR:  # The bit of the value follows.
            table = table_of_signs([sign_of(one), sign_of(told[place + 1])], shares, 0.0)
            cells, n = table.cells, table.n
        else:
            continue
        joint = (norm_sub(cells.value) * n + 1).reshape(-1, classes)
        tables.append(joint / joint.sum(axis=0))
    return Classifier(counts / counts.sum(), tables, [1.0] * len(tables))


def learn_base(asked: Asked) -> Classifier:
    return nearest_probabilities(asked.told, asked.people.class_count)


def _believed(asked: Asked) -> Classifier:
    tables = [one.table for one in asked.posterior.features.values()]
    return Classifier(asked.posterior.classes.value, tables, [1.0] * len(tables))


def _weighed(asked: Asked) -> Classifier:
    return weighed(asked, asked.posterior)


def _drafted(asked: Asked) -> Classifier:
    """What a draft asks, and what ``train`` makes of it, where nothing else is said."""
    told = asked.ask(asked.as_of(Asking.DRAFTED), asked.devices)
    return weighed(asked, asked.believe(told))


def weighed(asked: Asked, posterior: Posterior) -> Classifier:
    """The classifier that ``train`` makes by default, given what is believed."""
    prior, tables = posterior.classes.value, [one.table for one in posterior.features.values()]
    likelihoods = []
    for name, table in zip(posterior.features, tables, strict=True):
        feature = CategoricalFeature(name, tuple(map(str, range(len(table)))))
        likelihoods.append(DiscreteLikelihood(feature, tuple(tuple(row) for row in table.tolist())))
    weights = feature_weights(likelihoods, prior, posterior.explained)
    own = [replace(one, weight=weight) for one, weight in zip(likelihoods, weights, strict=True)]
    model = Model("class", asked.people.campaign.label.classes, tuple(prior.tolist()), tuple(own))
    return Classifier(prior, tables, weights, predict_accuracy(model, posterior))


def _per_question(asked: Asked) -> Classifier:
    """Every device answers every question with the full epsilon."""
    told = asked.ask(asked.as_of(Asking.EVERYTHING), asked.devices)
    return nearest_probabilities(told, asked.people.class_count)


VARIANTS: Final = (
    Variant(BASE, learn_base, (*DEVICES, *MORE_DEVICES)),
    Variant(BELIEVED, _believed),
    Variant(WEIGHED, _weighed),
    Variant(DEFAULT, _drafted),
    Variant(PER_QUESTION, _per_question, (80_000,)),
)


def measure(execution: Execution, groups: Sequence[tuple[Sequence[Variant], Sequence[str]]]) -> pd.DataFrame:
    """The means over the splits: accuracy, majority class, without privacy; of a variant that predicts also how often
    it would be published, how much the published ones are above the majority class, and how often the accuracy lies in
    the range told. Variants of a group are tried together, on the tables named beside them; the first has the base.
    """
    rows: list[dict[str, Any]] = []
    for variants, names in groups:
        described = [(one.name, list(one.devices)) for one in variants]
        for name in names:
            trial = partial(run_trial, name, variants)
            columns, _ = people(name)
            people_there = people_of(name, draft_for(name, 1.0))
            rows += execution.trials(
                trial, execution.runs, people_there, name, EPSILONS, described, len(columns), description=name
            )
    return summarise(rows)


def run_trial(name: str, variants: Sequence[Variant], seed: int) -> list[dict[str, Any]]:
    """One row for every epsilon, number of devices and variant, all on one split; the same seed, the same rows."""
    columns, values = people(name)
    order = np.random.default_rng([seed, 0]).permutation(len(columns))
    cut = round(0.8 * len(order))
    training, held_out = order[:cut], order[cut : cut + _MOST_HELD_OUT]
    own = Columns(
        columns.campaign,
        columns.classes[training],
        {feature: column[training] for feature, column in columns.features.items()},
    )
    asked_people = training[:_MOST_HELD_OUT]
    truth, own_truth, k = columns.classes[held_out], columns.classes[asked_people], columns.class_count
    shares = np.bincount(own.classes, minlength=k)
    majority = float((truth == shares.argmax()).mean())
    exact = [
        np.bincount(values[training, j] * k + own.classes, minlength=feature.size * k).reshape(-1, k) + 1.0
        for j, feature in enumerate(columns.campaign.asked)
    ]
    without = Classifier(shares / shares.sum(), [table / table.sum(axis=0) for table in exact], [1.0] * len(exact))
    non_private = without.accuracy(values[held_out], truth)
    rows = []
    for epsilon, devices in product(EPSILONS, sorted({n for one in variants for n in one.devices})):
        rng = np.random.default_rng([seed, round(100 * epsilon), devices])
        asked = Asked(replace(own, campaign=campaign_of(name, epsilon)), devices, rng)
        for variant in variants:
            if devices not in variant.devices:
                continue
            learned = variant.learn(asked)
            found = learned.accuracy(values[held_out], truth)
            told = learned.predicted
            rows.append(
                {
                    "seed": seed,
                    "dataset": name,
                    "epsilon": epsilon,
                    "devices": devices,
                    "variant": variant.name,
                    "accuracy": found,
                    "majority": majority,
                    "non_private": non_private,
                    **({} if told is None else _told(told, learned.accuracy(values[asked_people], own_truth))),
                }
            )
    return rows


def _told(predicted: PredictedAccuracy, found: float) -> dict[str, float]:
    """What was told of the accuracy, beside what it is on the people whose devices answered."""
    return {
        "published": float(predicted.above_prior),
        "low": predicted.alone,
        "high": predicted.together,
        "asked": found,
    }


def summarise(rows: Iterable[dict[str, Any]]) -> pd.DataFrame:
    """One row for every setting, in the order of the experiment."""
    frame = pd.DataFrame(list(rows))
    place = ["seed", *KEYS[:3]]
    base = frame[frame["variant"] == BASE].set_index(place)["accuracy"]
    frame["above_base"] = frame["accuracy"] - base.reindex(pd.MultiIndex.from_frame(frame[place])).to_numpy()
    ends = [widened(low, high) for low, high in zip(frame["low"], frame["high"], strict=True)]
    frame["low"], frame["high"] = [low for low, _ in ends], [high for _, high in ends]
    inside = (frame["low"] <= frame["asked"]) & (frame["asked"] <= frame["high"])
    frame["in_range"] = inside.astype(float).where(frame["low"].notna())
    frame["above_majority"] = frame["accuracy"] - frame["majority"]
    frame["published_above_majority"] = frame["above_majority"].where(frame["published"] == 1)
    groups = frame.groupby(list(KEYS), sort=False)
    averaged = ("majority", "non_private", "published", "published_above_majority", "low", "high", "asked", "in_range")
    means = groups[["accuracy", *averaged]].mean()
    means.insert(1, "standard_error", groups["accuracy"].sem())
    for name in ("above_base", "above_majority"):
        means[name], means[f"{name}_error"] = groups[name].mean(), groups[name].sem()
    means.insert(0, "splits", groups.size())
    return means.reset_index()
