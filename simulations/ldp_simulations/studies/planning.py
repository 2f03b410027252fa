"""The precision of a campaign, computed before anyone is asked, and what it takes to get what is wanted.

The standard errors are those of the aggregator's unbiased estimates, cell by cell as in its table: the noise of the
mechanism at the frequency of the cell, the spread of the records themselves (devices are a sample), and the chance in
how many of them draw a question. A cell is a joint probability, P(value, class), before any post-processing. With a
pilot table the frequencies are the pilot's; without one every value and class is as likely as any other, and numbers
are spread evenly between their bounds.

Every answer for a published epsilon was checked by the bound itself, at the rounded number that is given back. The
least and the largest are to three digits: with epsilon ``ss`` changes its size and ``auto`` its choice, so that the
bound is not quite monotone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import ROUND_FLOOR, Context, Decimal
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.amplification import MOST_REPORTS, campaign_blankets, epsilon_bound
from ldp_aggregator.estimation.cells import Z_95
from ldp_aggregator.estimation.estimators import (
    Expectation,
    answers,
    chance_of_number,
    even_expectation,
    even_variances,
    expectation_of,
    variance_per_answer,
)
from ldp_aggregator.guarantees import DEFAULT_DELTA, published_together
from ldp_protocols import Campaign, Question
from ldp_protocols.blanket import blanket_of, keeps
from ldp_protocols.document.questions import INDEX, PRODUCT, SIGN, signs_of
from ldp_protocols.drafting import make_sign
from ldp_protocols.exact import exact_epsilon
from ldp_protocols.mechanisms import DISCRETE, MOMENTS
from ldp_simulations.columns import UNIT, Columns
from ldp_simulations.studies.pilots import MEASURES, Reached, Split, accuracy_curve, place_of
from ldp_simulations.tables import Table, with_epsilon

Array = NDArray[np.float64]

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
    """The noise variance per answer that each mechanism would have for this question, at evenly spread cells."""
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


def devices_within(campaign: Campaign, points: float) -> int:
    """Devices for which 95 % intervals of the worst question's shares are so many hundredths to either side, as the
    average cell of an even population has them.
    """
    target = points / 100 / Z_95
    needed = (
        float(variance.mean()) / share
        for question, variance, share in zip(
            campaign.questions, even_variances(campaign), answers(campaign, 1), strict=True
        )
        if question.encoding == INDEX
    )
    return math.ceil(max(needed, default=0.0) / target**2)


@dataclass(frozen=True)
class Cliff:
    """Guarantee of a crowd of which only a share is honest, at its local epsilon: ``honest`` shares
    with the (epsilon, delta) that the bound gives; and devices for an error, asked so and with the same guarantee
    locally.
    """

    honest: tuple[tuple[float, float], ...]
    delta: float
    devices: int
    devices_locally: int


HONEST: Final = (1.0, 0.9, 0.75, 0.5, 0.25, 0.1)


def cliff(campaign: Campaign, draft: Mapping[str, Any], relative_error: float) -> Cliff:
    """Look over the edge. Raises ValueError for a campaign without a crowd, and for a promise that half of its crowd
    does not keep: there is no saying that more will be honest.
    """
    crowd = campaign.privacy.crowd
    if crowd is None:
        raise ValueError("a campaign without a crowd promises what each device computes by itself")
    (blanket,) = campaign_blankets(campaign)
    bounds = [
        (share, epsilon_bound(blanket, int(share * crowd.devices), crowd.delta) or campaign.realised_epsilon)
        for share in HONEST
    ]
    half, found = dict(bounds)[0.5], blanket_of(campaign.questions)
    if found is None or not keeps(found, replace(crowd, honest=0.5)):
        raise ValueError(
            f"where half of the crowd is honest, epsilon is {half:.3g}, and {crowd.epsilon:g} is promised: say honest "
            "= 0.5 in the draft, or less"
        )
    privacy = {"epsilon": crowd.epsilon}
    locally = Campaign.compile({**draft, "privacy": privacy})
    needed = (devices_for_error(one, relative_error) for one in (campaign, locally))
    return Cliff(tuple(bounds), crowd.delta, *needed)


def _observed(columns: Columns, question: Question, rng: np.random.Generator) -> Expectation:
    incomplete = columns.incomplete(question)
    rows = np.concatenate([np.flatnonzero(~incomplete), np.repeat(np.flatnonzero(incomplete), _DRAWS)])
    weights = np.where(incomplete[rows], 1 / _DRAWS, 1.0) / len(columns)
    if question.encoding == INDEX:
        counts = np.bincount(columns.indices(question, rows, rng), weights, question.domain_size).astype(float)
        return Expectation(counts, counts)
    moments = columns.moments(question, rows, rng)
    k = 1 if question.kind == PRODUCT else columns.class_count
    weights = np.where(moments.missing, 0.0, weights)
    values = moments.values / UNIT
    gaps = [
        np.bincount(moments.cells, weights * one, k).astype(float) for one in (values, values**2, np.ones(len(rows)))
    ]
    return expectation_of(question, *gaps)


LEAST_EPSILON: Final = 0.125
MOST_EPSILON: Final = 16.0
"""Nothing is protected locally there, so that a wish for more is none."""

_STEPS: Final = 24
_PRECISION: Final = 1e-3
_DIGITS: Final = 3


@dataclass(frozen=True)
class Wish:
    """Either a published epsilon; or the ``target`` that a ``measure`` of :class:`Reached` is to have on people held
    out of a pilot, which takes so many simulations.
    """

    published: float | None = None
    target: float | None = None
    measure: str = "accuracy"
    colluding: int = 0
    repeats: int = 10

    def __str__(self) -> str:
        if self.target is None:
            return f"a published epsilon of at most {self.published:g}"
        return MEASURES[self.measure].format(self.target)


@dataclass(frozen=True)
class Solution:
    """The epsilon and the devices of a plan; ``solved`` names the one that was looked for."""

    epsilon: float
    devices: int
    solved: str
    wish: Wish


def solve_epsilon(draft: Mapping[str, Any], devices: int, wish: Wish, pilot: Table | None) -> Solution:
    """The largest epsilon for a published one; the least for what a model is to reach. Raises ValueError where there is
    none, and for what the most frequent class reaches without asking anybody.
    """
    if wish.published is not None:
        epsilon = largest_local_epsilon(draft, devices, wish.published, colluding=wish.colluding)
    else:
        epsilon = _least_epsilon(draft, devices, wish, pilot)
    return Solution(epsilon, devices, "epsilon", wish)


def solve_devices(campaign: Campaign, wish: Wish, pilot: Table | None) -> Solution:
    """The fewest devices at the campaign's epsilon. Raises ValueError as :func:`solve_epsilon`."""
    if wish.published is not None:
        devices = fewest_devices(campaign, wish.published, colluding=wish.colluding)
    else:
        wanted, people = _wanted(campaign, wish, pilot)
        found = accuracy_curve(campaign, people, 0.0, wanted=wanted, repeats=wish.repeats).devices_reaching(*wanted)
        # As exact as simulations are: to two digits, up.
        devices = found and -int(Context(prec=2, rounding=ROUND_FLOOR).create_decimal(-found))
    if devices is None:
        raise ValueError(f"no number of devices reaches that at epsilon {campaign.privacy.epsilon:g}")
    return Solution(campaign.privacy.epsilon, devices, "devices", wish)


def largest_local_epsilon(
    draft: Mapping[str, Any], devices: int, published: float, delta: float = DEFAULT_DELTA, colluding: int = 0
) -> float:
    """The largest local epsilon, at most 16, with which ``devices`` answers reveal (``published``, delta) at most.

    ``draft`` is taken as it is but for its epsilon. Raises DraftError for one that does not compile, ValueError where
    not even a device that nobody hides may say anything (``published`` below 1e-5).
    """
    if not published >= 1e-5:
        raise ValueError(f"a published epsilon must be at least 1e-5, not {published}")

    def holds(epsilon: float) -> bool:
        campaign = Campaign.compile(with_epsilon(draft, _rounded_down(epsilon)))
        return _published(campaign, devices, delta, colluding) <= published

    # What a device loses locally is an upper bound of what is published of it.
    sure = _rounded_down(min(published, MOST_EPSILON))
    if sure >= MOST_EPSILON or holds(MOST_EPSILON):
        return MOST_EPSILON
    growth = (MOST_EPSILON / sure) ** (1 / _STEPS)
    tried = [sure * growth**step for step in range(1, _STEPS)]
    low, high = sure, MOST_EPSILON
    for epsilon in reversed(tried):
        if holds(epsilon):
            low = epsilon
            break
        high = epsilon
    while high > low * (1 + _PRECISION):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if holds(middle) else (low, middle)
    rounded = _rounded_down(low)
    return rounded if holds(rounded) else sure


def fewest_devices(
    campaign: Campaign, published: float, delta: float = DEFAULT_DELTA, colluding: int = 0
) -> int | None:
    """The least number of devices (to three digits) that reveal (``published``, delta) at most; None beyond 2^40."""

    def holds(devices: int) -> bool:
        return _published(campaign, devices, delta, colluding) <= published

    if not published > 0:
        raise ValueError(f"a published epsilon must be above 0, not {published}")
    low, high = 1 + colluding, MOST_REPORTS + colluding
    if holds(low):
        return low
    if not holds(high):
        return None
    while high - low > max(1, _PRECISION * low):
        middle = round((low * high) ** 0.5)
        middle = min(max(middle, low + 1), high - 1)
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _published(campaign: Campaign, devices: int, delta: float, colluding: int) -> float:
    found = published_together([(campaign, devices)], delta, colluding).epsilon
    if found is None:
        raise AssertionError("a campaign has a local guarantee at least")
    return found


def _rounded_down(epsilon: float) -> float:
    return float(Context(prec=_DIGITS, rounding=ROUND_FLOOR).create_decimal(Decimal(epsilon)))


def _least_epsilon(draft: Mapping[str, Any], devices: int, wish: Wish, pilot: Table | None) -> float:
    """Double epsilon until the wish is met twice in a row, and interpolate in its logarithm."""
    (measure, target), people = _wanted(Campaign.compile(draft), wish, pilot)
    epsilons, reached = [LEAST_EPSILON], list[float]()
    while True:
        campaign = Campaign.compile(with_epsilon(draft, epsilons[-1]))
        found_in = [Split(campaign, people, seed).reached(devices) for seed in range(wish.repeats)]
        reached.append(getattr(Reached.mean(found_in), measure))
        found = place_of(target, epsilons, reached)
        if found is not None and len(reached) > 1 and reached[-2] >= target:
            return max(float(f"{found:.2g}"), LEAST_EPSILON)
        if epsilons[-1] >= MOST_EPSILON:
            raise ValueError(
                f"{devices:,} devices do not reach {wish} up to epsilon {MOST_EPSILON:g} (there {reached[-1]:.4f})"
            )
        epsilons.append(min(2 * epsilons[-1], MOST_EPSILON))


def _wanted(campaign: Campaign, wish: Wish, pilot: Table | None) -> tuple[tuple[str, float], Table]:
    """The measure with its target, and the pilot. Raises ValueError for what the most frequent class reaches."""
    if wish.target is None or pilot is None:
        raise ValueError("what a model reaches is told of people held out of a pilot table; give one")
    splits = [Split(campaign, pilot, seed) for seed in range(wish.repeats)]
    by_frequent = {
        "accuracy": float(np.mean([split.majority for split in splits])),
        "balanced": 1 / len(campaign.label.classes),
        "area": 0.5,
    }
    if wish.target <= by_frequent.get(wish.measure, 0.0):
        others = ", ".join(name for name in MEASURES if name != wish.measure)
        raise ValueError(
            f"{wish} takes no campaign: always saying {splits[0].frequent}, the most frequent class, has "
            f"{by_frequent[wish.measure]:.4f}. Wish for more; or for another measure, {others}"
        )
    return (wish.measure, wish.target), pilot
