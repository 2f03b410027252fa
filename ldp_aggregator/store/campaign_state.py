"""A campaign's state: what can change beside its document, and what follows from it about reports that come now."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ldp_aggregator.counting.arrivals import Arrivals
from ldp_aggregator.store.clock import to_text
from ldp_aggregator.store.contract import CLOSED, NOT_OPEN


@dataclass(frozen=True, slots=True)
class Life:
    """When a campaign accepts reports: from ``opens`` until ``closes`` or until it was closed, whatever comes first.

    A closed one can be reopened until it was ``sealed``: then its ids are gone, for good.
    """

    opens: datetime | None
    closes: datetime | None
    closed: datetime | None
    sealed: datetime | None = None

    def refusal(self, now: datetime) -> str | None:
        """The code an upload meets now, None while the campaign is open."""
        if self.closed is not None or (self.closes is not None and now >= self.closes):
            return CLOSED
        return NOT_OPEN if self.opens is not None and now < self.opens else None


@dataclass(frozen=True, slots=True)
class Terms:
    """What a campaign asks of those who send to it, beside its document."""

    federated: bool
    uploads_need: str | None


@dataclass(frozen=True, slots=True)
class CampaignState:
    """A campaign and what can change beside its document."""

    id: str
    title: str
    created: datetime
    life: Life
    max_reports: int | None
    reports: int
    model_version: int | None
    federated: bool = False
    """Whether it takes shares of nodes, and no reports; once it does, it always will."""
    shares: int = 0
    arrivals: Arrivals = field(default_factory=Arrivals)
    over_since: datetime | None = None
    """When it was first seen to be past its end, or full."""
    uploads_need: str | None = None
    """The scope of the token that uploads have to show; None where anybody may upload."""

    def status(self, now: datetime) -> str:
        """``waiting``, ``open`` or ``closed``."""
        return {NOT_OPEN: "waiting", None: "open"}.get(self.life.refusal(now), "closed")

    def to_json(self, now: datetime) -> dict[str, Any]:
        """As the admin API and ``campaign list --json`` show it."""
        life = self.life
        return {
            "id": self.id,
            "title": self.title,
            "status": self.status(now),
            "created": to_text(self.created),
            "opens": life.opens and to_text(life.opens),
            "closes": life.closes and to_text(life.closes),
            "closed": life.closed and to_text(life.closed),
            "sealed": life.sealed and to_text(life.sealed),
            "max_reports": self.max_reports,
            "reports": self.reports,
            "counted_twice": self.arrivals.overlap,
            "counted_twice_at_most": self.arrivals.twice,
            "model_version": self.model_version,
            "federated": self.federated,
            "shares": self.shares if self.federated else None,
            "uploads_need_token": self.uploads_need,
        }
