"""From what is wanted to what it takes: the local epsilon, or the devices, for a published epsilon or an accuracy."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from ldp_aggregator.learning.local_budget import fewest_devices, largest_local_epsilon
from protocols import Campaign
from simulations.studies.planning import accuracy_at, accuracy_curve
from simulations.tables.frames import Table

LEAST_EPSILON: Final = 0.125
MOST_EPSILON: Final = 16.0


class UnreachableError(ValueError):
    """No epsilon or no number of devices gives what is wanted."""


@dataclass(frozen=True)
class Wish:
    """Either a published (epsilon, delta) or an accuracy on people held out of a pilot.

    ``repeats`` and ``seed`` are of the simulations that an accuracy takes.
    """

    published: float | None = None
    accuracy: float | None = None
    delta: float = 1e-9
    colluding: int = 0
    repeats: int = 10
    seed: int = 0


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
        epsilon = largest_local_epsilon(draft, devices, wish.published, wish.delta, wish.colluding)
    else:
        epsilon = _least_epsilon(draft, devices, wish, pilot)
    return Solution(epsilon, devices, "epsilon", wish)


def solve_devices(campaign: Campaign, wish: Wish, pilot: Table | None) -> Solution:
    """The fewest devices at the campaign's epsilon. Raises UnreachableError."""
    if wish.published is not None:
        devices = fewest_devices(campaign, wish.published, wish.delta, wish.colluding)
    else:
        accuracy, people = _wanted(wish, pilot)
        curve = accuracy_curve(campaign, people, 0.0, target=accuracy, repeats=wish.repeats, seed=wish.seed)
        devices = curve.devices_for(curve.non_private - accuracy)
    if devices is None:
        raise UnreachableError(f"no number of devices reaches that at epsilon {campaign.privacy.epsilon:g}")
    return Solution(campaign.privacy.epsilon, devices, "devices", wish)


def with_epsilon(draft: Mapping[str, Any], epsilon: float) -> dict[str, Any]:
    """The same draft at another epsilon."""
    return {**draft, "privacy": {**draft["privacy"], "epsilon": epsilon}}


def _least_epsilon(draft: Mapping[str, Any], devices: int, wish: Wish, pilot: Table | None) -> float:
    """Double epsilon until the accuracy is reached twice in a row, and interpolate in its logarithm."""
    accuracy, people = _wanted(wish, pilot)
    epsilons, reached = [LEAST_EPSILON], list[float]()
    while True:
        campaign = Campaign.compile(with_epsilon(draft, epsilons[-1]))
        reached.append(accuracy_at(campaign, people, devices, repeats=wish.repeats, seed=wish.seed))
        if len(reached) > 1 and min(reached[-2:]) >= accuracy:
            break
        if epsilons[-1] >= MOST_EPSILON:
            raise UnreachableError(
                f"{devices:,} devices do not reach an accuracy of {accuracy:g} up to epsilon {MOST_EPSILON:g} "
                f"(there {reached[-1]:.4f})"
            )
        epsilons.append(min(2 * epsilons[-1], MOST_EPSILON))
    below = [at for at, found in enumerate(reached) if found < accuracy]
    if not below:
        return epsilons[0]
    last = below[-1]
    share = (accuracy - reached[last]) / (reached[last + 1] - reached[last])
    found = epsilons[last] * math.exp(share * math.log(epsilons[last + 1] / epsilons[last]))
    return max(float(f"{found:.2g}"), LEAST_EPSILON)


def _wanted(wish: Wish, pilot: Table | None) -> tuple[float, Table]:
    if wish.accuracy is None or pilot is None:
        raise ValueError("an accuracy is that on people held out of a pilot table; give one")
    return wish.accuracy, pilot
