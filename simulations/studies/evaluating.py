"""Learn, evaluate, publish: what an evaluation round would bring, and cost, before anybody is asked.

Of the devices a share does not take part in learning and tells how good the model is instead. Its people are others
than those who are learned from, and the published model is scored on third ones. Beside it in the same trial: the
model that is learned from all devices, which is what is published without a round.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np

from ldp_aggregator import train
from ldp_aggregator.counting.tally import Tally
from ldp_aggregator.learning.evaluation import evaluate, evaluated_model, evaluation_draft
from protocols import Campaign
from simulations.fidelities.items import Columns
from simulations.fidelities.simulation import simulate_counts
from simulations.studies.scores import accuracy, learned, majority
from simulations.tables.frames import Table
from simulations.tables.sources import Source

EVALUATING: Final = 0.1
"""Of the devices; the others are learned from."""

_STUDY: Final = "simulated"
_SURE: Final = 2.0
"""Standard errors from which on a difference is told as one."""


@dataclass(frozen=True)
class Study:
    """The number of devices in all, and which share of them evaluates."""

    devices: int
    evaluating: float = EVALUATING
    train_fraction: float = 0.8


def run_study(source: Source, study: Study, seed: int) -> list[dict[str, Any]]:
    """Return one row: what was published with and without the round, how accurate it was said to be, and is."""
    rng = np.random.default_rng(seed)
    training, held_out = source.people.split(study.train_fraction, rng)
    learners, others = training.split(1 - study.evaluating, rng)
    campaign = Campaign.compile({**source.draft, "study": source.draft.get("study") or _STUDY})
    evaluating = round(study.devices * study.evaluating)
    model = train(campaign, _answers(campaign, learners, study.devices - evaluating, rng)).model_
    asked = Campaign.compile(evaluation_draft([campaign], model))
    tally = _answers(asked, others, evaluating, rng)
    told, published = evaluate(asked, tally).accuracy, evaluated_model(asked, tally)
    alone = learned(campaign, _answers(campaign, training, study.devices, rng))
    among_others = accuracy(published, others)
    low, high = (math.nan if end is None else end for end in (told.low, told.high))
    return [
        {
            "seed": seed,
            "moved": published.model_.prior != model.prior,
            "published": accuracy(published, held_out),
            "alone": accuracy(alone, held_out),
            "majority": majority(training, held_out),
            "told": told.value,
            "width": high - low if told.value is not None else None,
            "covered": low <= among_others <= high,
        }
    ]


def _answers(campaign: Campaign, people: Table, devices: int, rng: np.random.Generator) -> Tally:
    return simulate_counts(Columns.of(campaign, people.frame, people.labels), rng, devices)


@dataclass(frozen=True)
class Summary:
    """Means over the trials; ``gain`` is that of the round, with the standard error of the paired difference;
    ``moved`` and ``covered`` are shares of the trials.
    """

    trials: int
    published: float
    alone: float
    majority: float
    gain: float
    gain_error: float
    told: float
    width: float
    covered: float
    moved: float

    @property
    def verdict(self) -> str:
        if self.gain > _SURE * self.gain_error:
            return "the round pays: what is published is better, and how good it is is known"
        if self.gain < -_SURE * self.gain_error:
            return "the round costs accuracy: it buys the knowledge of it"
        return "the round neither pays nor costs by more than chance: it buys the knowledge of the accuracy"

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "verdict": self.verdict}


def summarise_study(rows: Iterable[Mapping[str, Any]]) -> Summary:
    """Summarise two trials or more."""
    listed = list(rows)
    gains = np.array([row["published"] - row["alone"] for row in listed])
    means = {}
    for name in ("published", "alone", "majority", "told", "width", "covered", "moved"):
        told = [row[name] for row in listed if row[name] is not None]
        means[name] = float(np.mean(told)) if told else math.nan
    error = float(gains.std(ddof=1) / math.sqrt(len(listed)))
    return Summary(len(listed), gain=float(gains.mean()), gain_error=error, **means)
