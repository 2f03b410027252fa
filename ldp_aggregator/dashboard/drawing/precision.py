"""The precision of each question's estimates: as expected of so many devices, and as reached. All are half widths of
95 % intervals, of the question's average cell.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from ldp_aggregator.counting.tally import Arrivals, Tally
from ldp_aggregator.estimation.cells import Z_95, Array
from ldp_aggregator.estimation.estimates import Estimates
from ldp_aggregator.estimation.estimators import answers, even_variances, expected_errors
from ldp_aggregator.guarantees import PublishedGuarantee, Relayed, published_by, relay_guarantee, relayed
from ldp_aggregator.service.verdicts import WIDEST
from ldp_protocols import Campaign, Question
from ldp_protocols.document.questions import INDEX, JOINT, LABEL, PAIR, RIGHT, SCORE, SQUARE


@dataclass(frozen=True)
class Precision:
    """One question. ``expected`` is that of an even population, ``reached`` what the reports gave; None without any."""

    question: Question
    subject: str
    n: int
    share: float
    expected: float
    reached: float | None

    @property
    def is_share(self) -> bool:
        return self.question.encoding == INDEX


def precisions(
    campaign: Campaign, devices: int, numbers: Sequence[int] | None = None, estimates: Estimates | None = None
) -> list[Precision]:
    """The precision of every question when ``devices`` have answered; ``numbers`` are the reports to each so far."""
    found = []
    variances = even_variances(campaign)
    unknown = [np.full_like(variance, np.inf) for variance in variances]
    expected = expected_errors(campaign, devices, variances) if devices else unknown
    for question, errors, share, n in zip(
        campaign.questions, expected, answers(campaign, 1), numbers or [0] * len(campaign.questions), strict=True
    ):
        one = None if estimates is None else estimates[question.index]
        reached = None
        if one is not None and one.n:
            deviation = np.sqrt(one.cells.variance)
            reached = float(Z_95 * deviation.mean()) if np.isfinite(deviation).all() else None
        found.append(Precision(question, subject(campaign, question), n, share, half_width(errors), reached))
    return found


def half_width(errors: Array) -> float:
    """The half width of the average cell with these standard errors."""
    return float(Z_95 * errors.mean())


def expected_widths(campaign: Campaign, devices: Sequence[int]) -> list[float]:
    """The largest expected half width (see :func:`widest`) for each of these numbers of devices, above 0."""
    variances = even_variances(campaign)
    of_shares = [one.index for one in campaign.questions if one.encoding == INDEX]
    of_all = of_shares or range(len(campaign.questions))
    found = (expected_errors(campaign, number, variances) for number in devices)
    return [max(half_width(errors[index]) for index in of_all) for errors in found]


def more_devices(campaign: Campaign, devices: int, width: float) -> int | None:
    """The number of further devices that would narrow an interval of half ``width`` to one that is shown; None where it
    is narrow enough. Where nothing is known yet, as many as the least precise question can be expected to take.
    """
    if width <= WIDEST:
        return None
    if devices and math.isfinite(width):
        return max(1, math.ceil(devices * ((min(width, 1.0) / WIDEST) ** 2 - 1)))
    (expected,) = expected_widths(campaign, [FIRST])
    return max(1, math.ceil(FIRST * (expected / WIDEST) ** 2 - devices))


def subject(campaign: Campaign, question: Question) -> str:
    """Say what a question is about, in plain words."""
    if question.kind == LABEL:
        return campaign.label.name
    if question.kind == RIGHT:
        return "whether the model is right"
    if question.kind == SCORE:
        return f"what the model says, and {campaign.label.name}"
    if question.other is not None:
        return f"{question.feature} {'and' if question.kind == JOINT else 'times'} {question.other}"
    if question.kind == PAIR and campaign.label:
        return f"{question.feature} and {campaign.label.name}"
    return f"{question.feature}, squared" if question.kind == SQUARE else str(question.feature)


def widest(found: Sequence[Precision]) -> float:
    """The largest half width that was reached among the questions about shares, or among all where there are none of
    these; infinite where one of them is not known.
    """
    of_shares = [one for one in found if one.is_share] or found
    return max((math.inf if one.reached is None else one.reached for one in of_shares), default=math.inf)


def devices_of(campaign: Campaign, tally: Tally) -> int:
    """Count how many devices answered; where a device answers every group, those of the largest."""
    if campaign.privacy.answers != "all":
        return int(tally.n.sum())
    numbers = dict.fromkeys((question.group for question in campaign.questions), 0)
    for question, n in zip(campaign.questions, tally.pooled().n.tolist(), strict=True):
        numbers[question.group] += n
    return max(numbers.values())


FACTORS: Final = (1, 2, 4, 10, 100)
FIRST: Final = 1000
"""Devices, where none has answered yet."""


@dataclass(frozen=True)
class Promises:
    """Losses as recomputed: local, of a publication, by relays' word, and behind one that mixes ``batch`` devices."""

    realised: float
    published: PublishedGuarantee
    relayed: Relayed
    relay: PublishedGuarantee
    batch: int


@dataclass(frozen=True)
class Reach:
    """So many devices, so much epsilon, and the half width of the 95 % interval that the worst question can expect."""

    devices: int
    epsilon: float
    expected: float


def of_campaign(campaign: Campaign, tally: Tally, arrivals: Arrivals, batch: int) -> Promises:
    """Promises of the counts that are or would be published now."""
    published = published_by([(campaign, tally)], [arrivals])
    relay = relay_guarantee(campaign, batch)
    return Promises(campaign.realised_epsilon, published, relayed(campaign, arrivals), relay, batch)


def reaches(campaign: Campaign, devices: int, multiples: Sequence[int] = FACTORS) -> list[Reach]:
    """Expected precision of a number of devices, and of multiples of it."""
    numbers = [multiple * (devices or FIRST) for multiple in multiples]
    widths = expected_widths(campaign, numbers)
    return [Reach(n, campaign.privacy.epsilon, width) for n, width in zip(numbers, widths, strict=True)]
