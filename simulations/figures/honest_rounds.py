"""Rounds that save devices, or tell how accurate a model is: a second round, and an evaluation round.

The same experiment as :mod:`simulations.figures.honest_accuracy`, whose default decodes all of them. A voter is drawn
from those who are learned from, as a population votes; its vote has the law of direct encoding on two cells.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.estimation.estimators import QuestionEstimate
from ldp_aggregator.learning.rounds.candidates import sizes_of
from ldp_aggregator.learning.rounds.evaluation import Score, choose
from ldp_aggregator.learning.rounds.second import FIRST_SHARE, feature_shares
from protocols import Campaign
from simulations.figures.honest_accuracy import (
    BASE,
    DEFAULT,
    DEVICES,
    Classifier,
    Variant,
    learn_base,
    nearest_probabilities,
    weighed,
)
from simulations.figures.honest_asking import Asked, Asking, draft_for
from simulations.studies.evaluating import VOTING

Array = NDArray[np.float64]

TWO_ROUNDS: Final = "S W X R"
VOTED: Final = "V"
VOTED_DEVICES: Final = 200_000
"""In an evaluation round's study: with fewer no candidate has the voters that a switch takes."""

ASKED_DEVICES: Final = tuple(one for one in DEVICES if one >= 20_000)
"""A second round follows a first one that is large enough to find something."""

ASKED_OF: Final = ("chess_krvkp", "mushroom")
"""Tables with features of two values and two classes, of which bits are asked; on these a second round is tried."""

VOTES_CAST: Final = 20
"""On the same candidates, each by other devices: what is published is a matter of chance."""

_WHOLE: Final = 10_000
_MOST_VOTERS: Final = 20_000
"""People whose records are classified; those who vote are drawn from them."""


def _two_rounds(asked: Asked) -> Classifier:
    name, epsilon = asked.people.campaign.title, asked.people.campaign.privacy.epsilon
    early = round(FIRST_SHARE * asked.devices)
    first = asked.ask(asked.as_of(Asking.DRAFTED), early)
    shares = feature_shares({one: float(own.squared_effect) for one, own in asked.believe(first).features.items()})
    draft = draft_for(name, epsilon, Asking.DRAFTED)
    for feature in draft["features"]:
        feature["weight"] = max(1, round(_WHOLE * shares[feature["name"]]))
    second = asked.ask(Campaign.compile(draft), asked.devices - early)
    return weighed(asked, asked.believe([*first, *second]))


class Voted(NamedTuple):
    """Candidates, and how often a vote chose each."""

    candidates: Sequence[Classifier]
    times: Sequence[int]

    @property
    def predicted(self) -> None:
        return None

    def accuracy(self, values: NDArray[np.int64], classes: NDArray[np.int64]) -> float:
        """Of what is published, on average over the votes."""
        chosen = [(one, times) for one, times in zip(self.candidates, self.times, strict=True) if times]
        return sum(times * one.accuracy(values, classes) for one, times in chosen) / sum(self.times)


def _without_vote(asked: Asked) -> Classifier:
    learned, instead = asked.drafted
    return weighed(asked, asked.believe(asked.told_by(learned + instead)))


def _voted(asked: Asked) -> Voted:
    candidates = _candidates(asked, asked.told_by(asked.drafted[0]))
    features = asked.people.campaign.asked
    people = asked.rng.permutation(len(asked.people))[:_MOST_VOTERS]
    values = np.column_stack([asked.people.value_indices(one.name) for one in features])[people]
    classes, epsilon = asked.people.classes[people], asked.people.campaign.privacy.epsilon
    n, keep = round(VOTING * asked.devices) // len(candidates), 1 / (1 + math.exp(-epsilon))
    shares = np.array([candidate.accuracy(values, classes) for candidate in candidates.values()])
    times = [0] * len(candidates)
    for _ in range(VOTES_CAST):
        said = asked.rng.binomial(n, shares * keep + (1 - shares) * (1 - keep)) / n
        accuracies = (said - (1 - keep)) / (2 * keep - 1)
        variances = said * (1 - said) / n / (2 * keep - 1) ** 2
        told = zip(candidates, accuracies.tolist(), variances.tolist(), strict=True)
        scores = [Score(name, n, accuracy, variance, 0.0, 1.0, math.inf) for name, accuracy, variance in told]
        times[choose(scores)[0]] += 1
    return Voted(list(candidates.values()), times)


def _candidates(asked: Asked, told: list[QuestionEstimate]) -> dict[str, Classifier]:
    """Those of :data:`ldp_aggregator.learning.rounds.candidates.DEFAULT`."""
    first = weighed(asked, asked.believe(told))
    found = {DEFAULT: first}
    if set(first.weights) - {1.0}:
        found["unweighted"] = first._replace(weights=[1.0] * len(first.weights))
    found[BASE] = nearest_probabilities(told, asked.people.class_count)
    order = np.argsort([-_information(table, first.prior) for table in first.tables], kind="stable")
    size, used = len(order), {len(order)}
    for count in sizes_of(size).values():
        if count < size and count not in used:
            used.add(count)
            weights = np.zeros(size)
            weights[order[:count]] = 1.0
            found[f"best {count}"] = first._replace(weights=weights.tolist())
    return found


def _information(table: Array, prior: Array) -> float:
    """Of a feature and the class, in nats."""
    joint = table * prior
    return float((joint * np.log(table / joint.sum(axis=1, keepdims=True))).sum())


VOTES: Final = (  # The last two see the same devices.
    Variant(BASE, learn_base, (VOTED_DEVICES,)),
    Variant(DEFAULT, _without_vote, (VOTED_DEVICES,)),
    Variant(VOTED, _voted, (VOTED_DEVICES,)),
)
ASKED: Final = (Variant(TWO_ROUNDS, _two_rounds, ASKED_DEVICES),)
