"""The precision of a campaign, computed before anyone is asked.

The standard errors are those of the aggregator's unbiased estimates, cell by cell as in its table: the noise of the
mechanism at the frequency of the cell, the spread of the records themselves (devices are a sample), and the chance in
how many of them draw a question. A cell is a joint probability, P(value, class), before any post-processing. With a
pilot table the frequencies are the pilot's; without one every value and class is as likely as any other, and numbers
are spread evenly between their bounds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.estimation.expected import (
    Expectation,
    answers,
    chance_of_number,
    even_expectation,
    expectation_of,
    variance_per_answer,
)
from protocols import Campaign, Question
from protocols.document.questions import INDEX, PRODUCT, SIGN, signs_of
from protocols.drafting.compiling import make_sign
from protocols.exact import exact_epsilon
from protocols.mechanisms import DISCRETE, MOMENTS
from simulations.fidelities.items import UNIT, Columns
from simulations.fidelities.simulation import simulate_counts
from simulations.studies.scores import accuracy, learned, majority, non_private
from simulations.tables.frames import Table

Array = NDArray[np.float64]

FEWEST_DEVICES: Final = 500
MOST_DEVICES: Final = 1 << 34
"""Beyond that the loss is not for want of devices."""

_DRAWS: Final = 256
"""For an expectation, a pilot's row that lacks a value stands there so often, each time with another random value."""


def expectations(campaign: Campaign, pilot: Table | None = None) -> list[Expectation]:
    """One for each question: of the pilot's records, or of evenly spread ones."""
    if pilot is None:
        return [even_expectation(campaign, question) for question in campaign.questions]
    columns = Columns.of(campaign, pilot.frame, pilot.labels)
    return [_observed(columns, question, np.random.default_rng(0)) for question in campaign.questions]


def standard_errors(campaign: Campaign, devices: int, pilot: Table | None = None) -> list[Array]:
    """The predicted standard error of every estimated cell of every question."""
    return [
        np.sqrt(variance_per_answer(question, expected) / number * chance_of_number(question, number, devices))
        for question, expected, number in zip(
            campaign.questions, expectations(campaign, pilot), answers(campaign, devices), strict=True
        )
    ]


def alternatives(question: Question, classes: int) -> Mapping[str, float]:
    """Return the noise variance per answer that each mechanism would have for this question, at evenly spread cells."""
    epsilon = exact_epsilon(question.epsilon)
    if question.encoding == INDEX:
        size = question.domain_size
        return {name: made.make(size, epsilon).noise_variance(1 / size) for name, made in DISCRETE.items()}
    k = 1 if question.kind == PRODUCT else classes
    # Of all these encodings sign alone has a place for what is missing, beside two of each class.
    missing = question.encoding == SIGN and signs_of(question, classes) % 2 == 1
    found = {} if missing else {name: made.make(k, epsilon).noise_variance(1 / k) for name, made in MOMENTS.items()}
    sign = make_sign(k, epsilon, missing=missing)
    share = 1 / (2 * k)
    # The stochastic bit adds the variance that the value itself does not have: P(class) (1 - E[v^2]).
    return {**found, "sign": sign.contrast_variance(share, share) + 2 / (3 * k)}


def devices_for_error(campaign: Campaign, relative_error: float) -> int:
    """Devices for which the worst question's average cell has this standard error, relative to an even share."""
    needed = 0.0
    for question, expected, share in zip(campaign.questions, expectations(campaign), answers(campaign, 1), strict=True):
        target = relative_error / len(expected.mean)
        needed = max(needed, float(variance_per_answer(question, expected).mean()) / target**2 / share)
    return math.ceil(needed)


@dataclass(frozen=True)
class Curve:
    """Mean accuracy on held-out people of the pilot, for more and more devices that are drawn from its other people."""

    non_private: float
    majority: float
    devices: tuple[int, ...]
    accuracy: tuple[float, ...]
    standard_error: tuple[float, ...]

    def devices_for(self, loss: float) -> int | None:
        """Devices from which on the accuracy is at most ``loss`` below the one without privacy, interpolated; None
        where the curve does not get there.
        """
        found = place_of(self.non_private - loss, self.devices, self.accuracy)
        return None if found is None else math.ceil(found)


def place_of(target: float, places: Sequence[float], reached: Sequence[float]) -> float | None:
    """The place from which on the target is reached, interpolated in its logarithm; None where it is not at the end."""
    below = [at for at, found in enumerate(reached) if found < target]
    if not below:
        return places[0]
    last = below[-1]
    if last + 1 == len(places):
        return None
    share = (target - reached[last]) / (reached[last + 1] - reached[last])
    return math.exp(math.log(places[last]) + share * math.log(places[last + 1] / places[last]))


def accuracy_curve(
    campaign: Campaign, pilot: Table, loss: float, *, target: float | None = None, repeats: int
) -> Curve:
    """Double the devices until the loss (or ``target``, an accuracy) is reached with something to spare, or
    :data:`MOST_DEVICES`.
    """
    splits = [_Split(campaign, pilot, seed) for seed in range(repeats)]
    reference = float(np.mean([split.non_private for split in splits]))
    wanted = reference - loss if target is None else target
    devices, tried, means, errors = FEWEST_DEVICES, list[int](), list[float](), list[float]()
    while devices <= MOST_DEVICES and not (len(means) > 1 and min(means[-2:]) >= wanted):
        reached = [split.accuracy(devices) for split in splits]
        tried.append(devices)
        means.append(float(np.mean(reached)))
        errors.append(float(np.std(reached, ddof=1) / math.sqrt(repeats)))
        devices *= 2
    frequent = float(np.mean([split.majority for split in splits]))
    return Curve(reference, frequent, tuple(tried), tuple(means), tuple(errors))


def accuracy_at(campaign: Campaign, pilot: Table, devices: int, *, repeats: int) -> float:
    """Mean accuracy on held-out people of the pilot, for so many devices that are drawn from its other people."""
    return float(np.mean([_Split(campaign, pilot, seed).accuracy(devices) for seed in range(repeats)]))


class _Split:
    """One split of the pilot into people who are resampled to devices, four fifths, and people held out."""

    def __init__(self, campaign: Campaign, pilot: Table, seed: int) -> None:
        self._campaign = campaign
        self._rng = np.random.default_rng(seed)
        training, self._held_out = pilot.split(0.8, self._rng)
        self._columns = Columns.of(campaign, training.frame, training.labels)
        self.non_private = accuracy(non_private(campaign, training), self._held_out)
        self.majority = majority(training, self._held_out)

    def accuracy(self, devices: int) -> float:
        tally = simulate_counts(self._columns, self._rng, devices)
        return accuracy(learned(self._campaign, tally), self._held_out)


def _observed(columns: Columns, question: Question, rng: np.random.Generator) -> Expectation:
    incomplete = columns.incomplete(question)
    rows = np.concatenate([np.flatnonzero(~incomplete), np.repeat(np.flatnonzero(incomplete), _DRAWS)])
    weights = np.where(incomplete[rows], 1 / _DRAWS, 1.0) / len(columns)
    if question.encoding == INDEX:
        held = np.bincount(columns.indices(question, rows, rng), weights, question.domain_size).astype(float)
        return Expectation(held, held)
    moments = columns.moments(question, rows, rng)
    k = 1 if question.kind == PRODUCT else columns.class_count
    weights = np.where(moments.missing, 0.0, weights)
    values = moments.values / UNIT
    told = [
        np.bincount(moments.cells, weights * one, k).astype(float) for one in (values, values**2, np.ones(len(rows)))
    ]
    return expectation_of(question, *told)
