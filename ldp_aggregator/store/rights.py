"""Rights: access tokens as the store knows them, the log of
administrative acts, and what publishers have signed.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from ldp_aggregator.store.clock import to_text

SCOPES: Final = ("admin", "collector", "node", "relay", "device")

UPLOADING: Final = {"device": ("device", "relay"), "relay": ("relay",)}
"""What a campaign may ask of uploads, and the scopes of tokens that then open it."""

ASKED: Final = "asked"
"""An act that was begun: it is in progress, or nobody lived to say how it ended."""
DONE: Final = "done"
FAILED: Final = "failed"


@dataclass(frozen=True, slots=True)
class StoredToken:
    """A token as the store knows it: the SHA-256 of its text, never the text.

    ``campaigns`` are the ids it is limited to, None for all. A token of scope ``node`` speaks for ``node``, which is
    the name of the first token of that node.
    """

    name: str
    scope: str
    digest: bytes
    created: datetime
    revoked: datetime | None = None
    expires: datetime | None = None
    campaigns: tuple[str, ...] | None = None
    speaks_for: str | None = None

    @property
    def node(self) -> str:
        """The node whose shares it sends and withdraws."""
        return self.speaks_for or self.name

    def is_in_use(self, now: datetime) -> bool:
        """Neither revoked nor expired."""
        return self.revoked is None and (self.expires is None or now < self.expires)

    def is_for(self, campaign_id: str | None) -> bool:
        """It opens what is about this campaign; None is what is about no single one."""
        return self.campaigns is None or campaign_id in self.campaigns


@dataclass(frozen=True, slots=True)
class Act:
    """An administrative act: who did what to which campaign, and what else there is to say of it, never a secret."""

    actor: str
    act: str
    campaign: str | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True)
class LoggedAct:
    """An entry of the log; they are numbered in their order and never changed, but for their outcome."""

    number: int
    moment: datetime
    act: Act
    outcome: str

    def to_json(self) -> dict[str, Any]:
        """As ``ldp-aggregator log --json`` shows it."""
        return {
            "number": self.number,
            "time": to_text(self.moment),
            "actor": self.act.actor,
            "act": self.act.act,
            "campaign": self.act.campaign,
            "detail": self.act.detail,
            "outcome": self.outcome,
        }
