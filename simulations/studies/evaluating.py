"""Learn, evaluate, publish: what an evaluation round would bring, and cost, before anybody is asked.

Of the devices a share does not take part in learning and votes on candidate models instead. Its people are others than
those who are learned from, and the published model is scored on third ones. Beside it in the same trial: the first
candidate, learned from all devices, which is what is published without a round.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np

from ldp_aggregator import train
from ldp_aggregator.learning.rounds.candidates import DEFAULT, TRAININGS, evaluation_draft, make_candidates
from ldp_aggregator.learning.rounds.evaluation import evaluate, evaluated_model
from ldp_aggregator.learning.rounds.second import FIRST_SHARE, second_round_draft
from protocols import Campaign
from protocols.drafting import make_discrete
from protocols.exact.rationals import exact_epsilon
from simulations.fidelities.counts import simulate_counts
from simulations.fidelities.items import Columns
from simulations.studies.journal import experiment_id
from simulations.studies.scores import accuracy
from simulations.tables.frames import Table
from simulations.tables.sources import Source

VOTING: Final = 0.05
"""Of the devices in an evaluation round's study; the others are learned from. A fifth finds little more and costs more
than it finds.
"""

_STUDY: Final = "simulated"
_SURE: Final = 2.0
"""Standard errors from which on a difference is told as one."""


@dataclass(frozen=True)
class Study:
    """How many devices there are in all, which share of them votes, and on what. ``second_round`` learns in two
    rounds.
    """

    devices: int
    voting: float = VOTING
    candidates: tuple[str, ...] = DEFAULT
    second_round: bool = False
    train_fraction: float = 0.8


def run_study(source: Source, study: Study, seed: int) -> list[dict[str, Any]]:
    """One row: what was published with and without the round, how accurate it was said to be, and is."""
    rng = np.random.default_rng(seed)
    training, held_out = source.people.split(study.train_fraction, rng)
    learners, voters = training.split(1 - study.voting, rng)
    campaign = Campaign.compile({**source.draft, "study": source.draft.get("study") or _STUDY})
    voting = round(study.devices * study.voting)
    rounds = _learn(campaign, learners, study.devices - voting, study.second_round, rng)
    models = make_candidates(rounds, study.candidates)
    asked = Campaign.compile(evaluation_draft([one for one, _ in rounds], models))
    votes = simulate_counts(Columns.of(asked, voters.frame, voters.labels), rng, voting)
    found = evaluate(asked, votes)
    published = evaluated_model(found, votes)
    alone = train(_learn(campaign, training, study.devices, study.second_round, rng), **next(iter(TRAININGS.values())))
    among_voters = accuracy(published, voters)
    return [
        {
            "seed": seed,
            "chosen": found.winner.name,
            "switched": found.chosen > 0,
            "published": accuracy(published, held_out),
            "alone": accuracy(alone, held_out),
            "majority": float((held_out.labels == training.labels.mode().iloc[0]).mean()),
            "told": found.winner.accuracy,
            "error": found.winner.standard_error,
            "covered": found.low <= among_voters <= found.high,
        }
    ]


def _learn(
    campaign: Campaign, people: Table, devices: int, second_round: bool, rng: np.random.Generator
) -> list[tuple[Campaign, Any]]:
    """The rounds of learning with their tallies."""
    first = round(devices * FIRST_SHARE) if second_round else devices
    columns = Columns.of(campaign, people.frame, people.labels)
    rounds = [(campaign, simulate_counts(columns, rng, first))]
    if second_round:
        second = Campaign.compile(second_round_draft(rounds))
        columns = Columns.of(second, people.frame, people.labels)
        rounds.append((second, simulate_counts(columns, rng, devices - first)))
    return rounds


@dataclass(frozen=True)
class Summary:
    """Means over the trials; ``gain`` is that of the round, with the standard error of the paired difference."""

    trials: int
    published: float
    alone: float
    majority: float
    gain: float
    gain_error: float
    told: float
    error: float
    covered: float
    chosen: Mapping[str, int]

    @property
    def verdict(self) -> str:
        if self.gain > _SURE * self.gain_error:
            return "the round pays: what is published is better, and its accuracy is known"
        if self.gain < -_SURE * self.gain_error:
            return "the round costs accuracy: it buys the knowledge of it"
        return "the round neither pays nor costs by more than chance: it buys the knowledge of the accuracy"

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "verdict": self.verdict}


def summarise_study(rows: Iterable[Mapping[str, Any]]) -> Summary:
    """Of two trials or more."""
    listed = list(rows)
    gains = np.array([row["published"] - row["alone"] for row in listed])

    def mean(name: str) -> float:
        return float(np.mean([row[name] for row in listed]))

    names = [row["chosen"] for row in listed]
    chosen = {name: names.count(name) for name in sorted(set(names), key=lambda name: -names.count(name))}
    return Summary(
        len(listed),
        mean("published"),
        mean("alone"),
        mean("majority"),
        float(gains.mean()),
        float(gains.std(ddof=1) / math.sqrt(len(listed))),
        mean("told"),
        mean("error"),
        mean("covered"),
        chosen,
    )


def voters_for_error(epsilon: float, candidates: int, error: float) -> int:
    """Devices for which every candidate's accuracy has this standard error, whatever the accuracy is."""
    mechanism = make_discrete("de", 2, exact_epsilon(epsilon))
    # At an accuracy of one half the devices spread the most.
    return candidates * math.ceil((mechanism.noise_variance(0.5) + 0.25) / error**2)


def study_id(source: Source, study: Study) -> str:
    """Which experiment a trial belongs to."""
    return experiment_id(source.people, "evaluation", source.draft, asdict(study))


def known(candidates: Sequence[str]) -> tuple[str, ...]:
    """The names, where all are known. Raises ValueError."""
    unknown = [name for name in candidates if name not in DEFAULT]
    if unknown:
        raise ValueError(f"{unknown[0]!r} is no candidate; the known ones are {', '.join(DEFAULT)}")
    return tuple(candidates)
