"""What a campaign promises its devices, and what more of them would bring."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ldp_aggregator.counting.arrivals import Arrivals
from ldp_aggregator.counting.tally import Tally
from ldp_aggregator.dashboard.drawing.precision import expected_widths
from ldp_aggregator.learning.published import PublishedGuarantee, Relayed, published_by, relay_guarantee, relayed
from protocols import Campaign

FACTORS: Final = (1, 2, 4, 10, 100)
FIRST: Final = 1000
"""Devices, where none has answered yet."""


@dataclass(frozen=True)
class Promises:
    """The local guarantee as recomputed, what a publication of these counts reveals, what relays have vouched for so
    far, and what who runs the server would learn behind one that mixes ``batch`` devices.
    """

    realised: float
    published: PublishedGuarantee
    relayed: Relayed
    relay: PublishedGuarantee
    batch: int


@dataclass(frozen=True)
class More:
    """So many devices, and the half width of the 95 % interval that the worst question can expect of them."""

    devices: int
    expected: float


def of_campaign(campaign: Campaign, tally: Tally, arrivals: Arrivals, batch: int) -> Promises:
    """Of the counts that are or would be published now."""
    published = published_by([(campaign, tally)], [arrivals])
    relay = relay_guarantee(campaign, batch)
    return Promises(campaign.realised_epsilon, published, relayed(campaign, arrivals), relay, batch)


def more_devices(campaign: Campaign, devices: int) -> list[More]:
    """What the present number of devices can expect, and multiples of it."""
    numbers = [factor * (devices or FIRST) for factor in FACTORS]
    return [More(number, width) for number, width in zip(numbers, expected_widths(campaign, numbers), strict=True)]
