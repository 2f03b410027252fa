"""What who runs the server learns of one device where relays mixed the reports; or why that cannot be said.

A relay vouches for its batches; the store keeps the least of them, and how many reports it saw outside of every one.
The guarantee is about all devices, so one such report is one too many.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ldp_aggregator.counting.arrivals import Arrivals
from ldp_aggregator.learning.published import PublishedGuarantee, relay_guarantee
from protocols import Campaign


@dataclass(frozen=True)
class Relayed:
    """Of one campaign, as of one moment: a ``guarantee``, or in ``why_not`` what stands in its way."""

    campaign: str
    arrivals: Arrivals
    guarantee: PublishedGuarantee | None
    why_not: str | None

    def to_json(self) -> dict[str, Any]:
        """As estimates, models and ``campaign show --json`` have it."""
        return {
            "campaign": self.campaign,
            "reports": self.arrivals.reports,
            "least_batch": self.arrivals.least_batch,
            "otherwise": self.arrivals.otherwise,
            "guarantee": self.guarantee and self.guarantee.to_json(),
            "why_not": self.why_not,
        }

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> Relayed:
        """The inverse of :meth:`to_json`, but for what is in the sums twice."""
        arrivals = Arrivals(told["reports"], told["reports"] - told["otherwise"], told["least_batch"])
        guarantee = told["guarantee"] and PublishedGuarantee(**told["guarantee"])
        return cls(told["campaign"], arrivals, guarantee, told["why_not"])

    def __str__(self) -> str:
        return str(self.guarantee) if self.guarantee else f"nothing beyond the local guarantee: {self.why_not}"


def relayed(campaign: Campaign, arrivals: Arrivals) -> Relayed:
    """The guarantee for n = the least batch, only where every counted report came in a batch that a relay vouched for.

    A batch hides no more than all devices that answered, and no device in it whose report another store had, too.
    """
    why_not = _why_not(arrivals)
    if why_not is not None or arrivals.least_batch is None:
        return Relayed(campaign.id, arrivals, None, why_not)
    groups = len(campaign.groups) if campaign.privacy.answers == "all" else 1
    crowd = min(arrivals.least_batch, arrivals.reports // groups)
    return Relayed(campaign.id, arrivals, relay_guarantee(campaign, max(0, crowd - arrivals.twice)), None)


def counted_twice(arrivals: Iterable[Arrivals]) -> dict[str, int]:
    """Reports of all campaigns that are known to be in the sums twice, and that may be."""
    every = list(arrivals)
    return {"known": sum(one.overlap for one in every), "at_most": sum(one.twice for one in every)}


def _why_not(arrivals: Arrivals) -> str | None:
    if not arrivals.reports:
        return "no report was counted yet"
    if arrivals.vouched <= 0 or arrivals.least_batch is None:
        return f"none of {arrivals.reports:,} reports came in a batch that a relay vouched for"
    if arrivals.otherwise:
        return (
            f"at least {arrivals.otherwise:,} of {arrivals.reports:,} reports came otherwise than in a batch "
            "that a relay vouched for"
        )
    return None
