"""From what is wanted to what it takes: the local epsilon, or the devices, for a published epsilon or an accuracy.

Every answer for a published epsilon was checked by the bound itself, at the rounded number that is given back. The
least and the largest are to three digits: with epsilon ``ss`` changes its size and ``auto`` its choice, so that the
bound is not quite monotone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from decimal import ROUND_FLOOR, Context, Decimal
from typing import Any, Final

from ldp_aggregator.amplification import MOST_REPORTS
from ldp_aggregator.learning.published import DEFAULT_DELTA, published_together
from protocols import Campaign
from simulations.studies.planning import accuracy_at, accuracy_curve, place_of
from simulations.tables.frames import Table
from simulations.tables.sources import with_epsilon

LEAST_EPSILON: Final = 0.125
MOST_EPSILON: Final = 16.0
"""Nothing is protected locally there, so that a wish for more is none."""

_STEPS: Final = 24
_PRECISION: Final = 1e-3
_DIGITS: Final = 3


class UnreachableError(ValueError):
    """No epsilon or no number of devices gives what is wanted."""


@dataclass(frozen=True)
class Wish:
    """Either a published epsilon or an accuracy on people held out of a pilot, which takes so many simulations."""

    published: float | None = None
    accuracy: float | None = None
    colluding: int = 0
    repeats: int = 10


@dataclass(frozen=True)
class Solution:
    """The epsilon and the devices of a plan; ``solved`` names the one that was looked for."""

    epsilon: float
    devices: int
    solved: str
    wish: Wish

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def solve_epsilon(draft: Mapping[str, Any], devices: int, wish: Wish, pilot: Table | None) -> Solution:
    """The largest epsilon for a published one; the least for an accuracy. Raises UnreachableError, and ValueError where
    the draft can be compiled nowhere.
    """
    if wish.published is not None:
        epsilon = largest_local_epsilon(draft, devices, wish.published, colluding=wish.colluding)
    else:
        epsilon = _least_epsilon(draft, devices, wish, pilot)
    return Solution(epsilon, devices, "epsilon", wish)


def solve_devices(campaign: Campaign, wish: Wish, pilot: Table | None) -> Solution:
    """The fewest devices at the campaign's epsilon. Raises UnreachableError."""
    if wish.published is not None:
        devices = fewest_devices(campaign, wish.published, colluding=wish.colluding)
    else:
        accuracy, people = _wanted(wish, pilot)
        curve = accuracy_curve(campaign, people, 0.0, target=accuracy, repeats=wish.repeats)
        devices = curve.devices_for(curve.non_private - accuracy)
    if devices is None:
        raise UnreachableError(f"no number of devices reaches that at epsilon {campaign.privacy.epsilon:g}")
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
    """The least number of devices (to three digits) whose answers reveal (``published``, delta) at most.

    None where 2^40 are too few.
    """

    def holds(devices: int) -> bool:
        return _published(campaign, devices, delta, colluding) <= published

    if not published > 0:
        raise ValueError(f"a published epsilon must be above 0, not {published}")
    return _least(holds, 1 + colluding, MOST_REPORTS + colluding)


def _least(holds: Callable[[int], bool], low: int, high: int) -> int | None:
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
    """Double epsilon until the accuracy is reached twice in a row, and interpolate in its logarithm."""
    accuracy, people = _wanted(wish, pilot)
    epsilons, reached = [LEAST_EPSILON], list[float]()
    while True:
        campaign = Campaign.compile(with_epsilon(draft, epsilons[-1]))
        reached.append(accuracy_at(campaign, people, devices, repeats=wish.repeats))
        found = place_of(accuracy, epsilons, reached)
        if found is not None and len(reached) > 1 and reached[-2] >= accuracy:
            return max(float(f"{found:.2g}"), LEAST_EPSILON)
        if epsilons[-1] >= MOST_EPSILON:
            raise UnreachableError(
                f"{devices:,} devices do not reach an accuracy of {accuracy:g} up to epsilon {MOST_EPSILON:g} "
                f"(there {reached[-1]:.4f})"
            )
        epsilons.append(min(2 * epsilons[-1], MOST_EPSILON))


def _wanted(wish: Wish, pilot: Table | None) -> tuple[float, Table]:
    if wish.accuracy is None or pilot is None:
        raise ValueError("an accuracy is that on people held out of a pilot table; give one")
    return wish.accuracy, pilot
