"""What a store promises, whatever database is behind it. One suite of tests holds every implementation to it.

* A report's id and its count change in one durable transaction: :meth:`CountStore.count` returns after the commit is on
  disk, or raises and has counted nothing.
* The same id counts once for as long as its campaign accepts reports; closing a campaign drops its ids.
* A campaign takes reports of devices or shares of nodes, never both: it is federated from its creation or from its
  first share, where that comes before any report and no ``max_reports`` was set. A node is named by its token and has
  at most one share in a campaign, the last one it sent; how many different ones it ever sent is never forgotten.
* Campaign documents never change. Everything else is read inside the transaction that needs it, so any number of
  processes may share a store.

What is decided from what was read is in :mod:`ldp_aggregator.store.decisions`, once for all databases.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Protocol

from ldp_aggregator.counting.shares import Releases
from ldp_aggregator.store.clock import to_text
from protocols import Campaign
from protocols.wire.upload import Block

if TYPE_CHECKING:
    from ldp_aggregator.counting.tally import Tally
    from ldp_aggregator.store.consistency import Finding

CONFLICTING: Final = "conflicting-report"
"""The id was counted before, with other bytes: the client answered twice."""
CLOSED: Final = "campaign-closed"
NOT_OPEN: Final = "campaign-not-open"
UNKNOWN: Final = "unknown-campaign"
TAKES_SHARES: Final = "takes-shares"
TAKES_REPORTS: Final = "takes-reports"
REVOKED: Final = "wrong-token"
SALT_BYTES: Final = 32

SCOPES: Final = ("admin", "collector", "node", "relay")


class StoreError(Exception):
    """The store could not do what was asked; nothing was changed. ``str`` says what to look at."""


class UnknownCampaignError(LookupError):
    """No campaign has this id."""

    def __init__(self, campaign_id: str) -> None:
        super().__init__(f"no campaign has the id {campaign_id}")
        self.campaign_id = campaign_id


@dataclass(frozen=True, slots=True)
class Submission:
    """The reports of one upload, decoded as far as their block heads."""

    campaign: Campaign
    blocks: tuple[Block, ...]

    @property
    def reports(self) -> int:
        return sum(block.count for block in self.blocks)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one upload. ``refused`` is the code of an upload that met no open campaign."""

    counted: int = 0
    duplicates: int = 0
    rejected: tuple[tuple[bytes, str], ...] = ()
    """Report id and code of each that never will be counted; ``places``: where it stands in the submission."""
    refused: str | None = None
    places: tuple[int, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class Life:
    """When a campaign accepts reports: from ``opens`` until ``closes`` or until it was closed, whatever comes first."""

    opens: datetime | None
    closes: datetime | None
    closed: datetime | None

    def refusal(self, now: datetime) -> str | None:
        """The code an upload meets now, None while the campaign is open."""
        if self.closed is not None or (self.closes is not None and now >= self.closes):
            return CLOSED
        return NOT_OPEN if self.opens is not None and now < self.opens else None


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
            "max_reports": self.max_reports,
            "reports": self.reports,
            "model_version": self.model_version,
            "federated": self.federated,
            "shares": self.shares if self.federated else None,
        }


@dataclass(frozen=True, slots=True)
class StoredShare:
    """The share that a node sent last, byte for byte."""

    node: str
    share: bytes
    received: datetime


@dataclass(frozen=True, slots=True)
class Shares:
    """The shares of a federated campaign as of one moment, sorted by node.

    ``salt`` is drawn when the campaign becomes federated, and secret from the nodes: it decides who is in which group.
    ``releases`` has every node that ever sent a share, sorted, those that withdrew it too.
    """

    salt: bytes
    members: tuple[StoredShare, ...]
    releases: tuple[tuple[str, Releases], ...] = ()


ShareDigests = tuple[tuple[str, bytes | None, Releases], ...]
"""Every node that ever sent a share, the SHA-256 of the one it has (None: withdrawn), and how many it sent; sorted."""


@dataclass(frozen=True, slots=True)
class PublishedModel:
    """A model document; versions of a campaign count from 1."""

    version: int
    document: str
    created: datetime


@dataclass(frozen=True, slots=True)
class StoredToken:
    """A token as the store knows it: the SHA-256 of its text, never the text."""

    name: str
    scope: str
    digest: bytes
    created: datetime
    revoked: datetime | None = None


class CampaignStore(Protocol):
    """Campaigns and their state. In all of these protocols methods may raise StoreError; those that name a campaign
    also UnknownCampaignError.
    """

    async def create_campaign(
        self, campaign: Campaign, *, max_reports: int | None = None, federated: bool = False
    ) -> bool:
        """Keep a campaign; False (and no change) where it exists already, of whatever kind."""
        ...

    async def document(self, campaign_id: str) -> bytes:
        """The document bytes."""
        ...

    async def state(self, campaign_id: str) -> CampaignState: ...

    async def campaigns(self) -> list[CampaignState]:
        """All campaigns, oldest first."""
        ...

    async def close_campaign(self, campaign_id: str) -> CampaignState:
        """Accept no more reports and drop the ids. Closing twice changes nothing."""
        ...


class CountStore(Protocol):
    """Reports, as sums."""

    async def count(self, submissions: Sequence[Submission]) -> list[Outcome]:
        """Count a group of uploads in one durable transaction; one outcome each, in their order."""
        ...

    async def tally(self, campaign_id: str) -> Tally:
        """The exact sums of all reports counted so far. Raises StoreError where what is stored is no tally of it."""
        ...

    async def released_tally(self, campaign_id: str, every: int) -> Tally:
        """The sums as of the last release: those of now, durably, where at least ``every`` reports are new in it."""

    async def check(self) -> None:
        """Write, durably, and change nothing; raises StoreError where :meth:`count` would."""
        ...


class ShareStore(Protocol):
    """Shares of nodes."""

    async def put_share(self, campaign_id: str, node: str, share: bytes) -> str | None:
        """Keep a node's share durably, in place of the one it sent before; the same share again changes nothing.

        Returns the code that refuses it, None where it is kept. ``node`` is the name of a token in use; the bytes are
        those of a share that was decoded.
        """
        ...

    async def withdraw_share(self, campaign_id: str, node: str) -> str | None:
        """Drop a node's share, durably; None also where it has none, else the code that refuses it."""
        ...

    async def withdraw_node(self, node: str) -> int:
        """Drop a node's shares from all campaigns, closed ones too; returns how many there were."""
        ...

    async def shares(self, campaign_id: str) -> Shares | None:
        """The shares of a federated campaign, None for one that takes reports."""
        ...

    async def share_digests(self, campaign_id: str) -> ShareDigests:
        """What tells whether anything has changed."""
        ...


class ModelStore(Protocol):
    """Published models."""

    async def publish_model(self, campaign_id: str, document: str) -> PublishedModel:
        """Keep a model under the next version."""
        ...

    async def model(self, campaign_id: str, version: int | None = None) -> PublishedModel | None:
        """A version of the model, by default the latest; None where there is none."""
        ...


class TokenStore(Protocol):
    """Access tokens, as digests."""

    async def add_token(self, token: StoredToken) -> None:
        """Keep a token. Raises StoreError where the name is taken."""
        ...

    async def token(self, digest: bytes) -> StoredToken | None:
        """The token with this digest, revoked ones too; found by an index, however many there are."""
        ...

    async def tokens(self) -> list[StoredToken]:
        """All tokens, revoked ones too, oldest first."""
        ...

    async def revoke_token(self, name: str) -> bool:
        """Make a token useless; False where no token in use has this name."""
        ...

    async def rotate_token(self, name: str, token: StoredToken) -> bool:
        """Keep a token in place of the one in use under ``name``, which is revoked; the node's shares go over to it.

        False (and no change) where no token in use has this name. Raises StoreError where the new name is taken.
        """
        ...


class Store(CampaignStore, CountStore, ShareStore, ModelStore, TokenStore, Protocol):
    """All of it. A function takes the smallest of these protocols that it needs."""

    async def audit(self) -> list[Finding]:
        """What is wrong with what is stored: ids and counts that do not agree, documents that are not their id, shares
        that are none of their campaign.
        """
        ...

    async def close(self) -> None: ...
