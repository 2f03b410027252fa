"""What a store promises, whatever database is behind it. One suite of tests holds every implementation to it.

* A report's id and its count change in one durable transaction: :meth:`CountStore.count` returns after the commit is on
  disk, or raises and has counted nothing.
* The same id counts once for as long as its ids are kept: until the campaign is sealed, which only a closed one can be.
* A campaign takes reports of devices or shares of nodes, never both: it is federated from its creation or from its
  first share, where that comes before any report and no ``max_reports`` was set. A node is named by its first
  token and has at most one share in a campaign, the last one it sent; how many different ones it ever sent is never
  forgotten.
* Campaign documents never change. Everything else is read inside the transaction that needs it, so any number of
  processes may share a store.

What is decided from what was read is in :mod:`ldp_aggregator.store.decisions`, once for all databases.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Final, Protocol

from ldp_aggregator.counting.shares import Releases
from ldp_aggregator.store.rights import ActStore, DirectoryStore, TokenStore
from protocols import Campaign
from protocols.wire.upload import Block

if TYPE_CHECKING:
    from ldp_aggregator.counting.tally import Tally
    from ldp_aggregator.store.campaign_state import CampaignState, Terms
    from ldp_aggregator.store.consistency import Finding
    from ldp_aggregator.store.origin import Origin

CONFLICTING: Final = "conflicting-report"
"""The id was counted before, with other bytes: the client answered twice."""
CLOSED: Final = "campaign-closed"
NOT_OPEN: Final = "campaign-not-open"
UNKNOWN: Final = "unknown-campaign"
TAKES_SHARES: Final = "takes-shares"
TAKES_REPORTS: Final = "takes-reports"
REVOKED: Final = "wrong-token"
DELETED: Final = "campaign-deleted"
NOT_CLOSED: Final = "campaign-not-closed"
TOO_EARLY: Final = "too-early-to-seal"
SEALED: Final = "campaign-sealed"
OLDER: Final = "older-directory"
UNAVAILABLE: Final = "store-unavailable"
"""The database failed for this campaign, and for no other one of the group: nothing of it was counted."""

SALT_BYTES: Final = 32


class StoreError(Exception):
    """The store could not do what was asked; nothing was changed. ``str`` says what to look at."""


class RefusedError(StoreError):
    """What was asked is not for this campaign, however often it is tried; ``code`` is the problem's."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


class UnknownCampaignError(LookupError):
    """No campaign has this id."""

    def __init__(self, campaign_id: str) -> None:
        super().__init__(f"no campaign has the id {campaign_id}")
        self.campaign_id = campaign_id


@dataclass(frozen=True, slots=True)
class Submission:
    """The reports of one upload, decoded as far as their block heads.

    ``batch`` is the number of devices that a relay, known by its token, says the reports were mixed with.
    """

    campaign: Campaign
    blocks: tuple[Block, ...]
    batch: int | None = None

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
    absent: tuple[int, ...] = field(default=(), compare=False)
    """Of a submission that is :data:`UNAVAILABLE`, the places of the reports that were not counted, where the others
    were: nothing of it is lost, and it may come again as a whole.
    """


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


class CampaignStore(Protocol):
    """Campaigns and their state. In all of these protocols methods may raise StoreError; those that name a campaign
    also UnknownCampaignError.
    """

    async def create_campaign(
        self,
        campaign: Campaign,
        *,
        max_reports: int | None = None,
        federated: bool = False,
        uploads_need: str | None = None,
    ) -> bool:
        """Keep a campaign; False (and no change) where it exists already, of whatever kind.

        Raises RefusedError where it was deleted: its ids are gone, and what was counted would count again.
        """
        ...

    async def document(self, campaign_id: str) -> bytes:
        """The document bytes."""
        ...

    async def state(self, campaign_id: str) -> CampaignState: ...

    async def terms(self, campaign_id: str) -> Terms:
        """What requests have to keep to. Every upload asks: nothing that was counted is looked at."""
        ...

    async def campaigns(self) -> list[CampaignState]:
        """All campaigns, oldest first."""
        ...

    async def close_campaign(self, campaign_id: str) -> CampaignState:
        """Accept no more reports. Closing twice changes nothing."""
        ...

    async def end_campaign(self, campaign_id: str) -> CampaignState:
        """Close a campaign that has been over, past its end or full, for the grace period; note when it was first seen
        to be, and forget that where it is not.
        """
        ...

    async def reopen_campaign(self, campaign_id: str) -> CampaignState:
        """Take a closing back. Raises RefusedError where the campaign is sealed."""
        ...

    async def seal_campaign(self, campaign_id: str, *, at_once: bool = False) -> CampaignState:
        """Drop the ids of a campaign that has been closed for the grace period (or is, with ``at_once``), for good.

        Raises RefusedError where it has not, StoreError where somebody reads the ids: nothing waits for a reader.
        """
        ...

    async def delete_campaign(self, campaign_id: str) -> None:
        """Drop a closed campaign with all that was counted and published; its id can never be used again.

        Raises RefusedError where it is not closed, StoreError where somebody reads the ids.
        """
        ...

    async def set_uploads_need(self, campaign_id: str, scope: str | None) -> CampaignState:
        """Ask uploads for a token of a scope, or no longer."""
        ...


class Counting(Protocol):
    """Reports in."""

    async def count(self, submissions: Sequence[Submission]) -> list[Outcome]:
        """Count a group of uploads in one durable transaction; one outcome each, in their order.

        What is wrong with one campaign fails no other: its uploads are refused, unless they are all there are, when it
        is raised. So is what is wrong with one of several databases, but for the first.
        """
        ...

    async def check(self) -> None:
        """Write, durably, and change nothing; raises StoreError where :meth:`count` would."""
        ...


class CountStore(Counting, Protocol):
    """Reports, as sums."""

    async def tally(self, campaign_id: str) -> Tally:
        """The exact sums of all reports counted so far. Raises StoreError where what is stored is no tally of it."""
        ...

    async def released_tally(self, campaign: Campaign, every: int) -> Tally:
        """The sums as of the last release: those of now, durably, where at least ``every`` devices' reports are new in
        it, to every group where a device answers all of them.
        """
        ...


class ShareStore(Protocol):
    """Shares of nodes."""

    async def put_share(self, campaign_id: str, node: str, share: bytes, *, token: str | None = None) -> str | None:
        """Keep a node's share durably, in place of the one it sent before; the same share again changes nothing.

        Returns the code that refuses it, None where it is kept. ``token`` is the name of the token that was shown,
        by default the node's first; the bytes are those of a share that was decoded.
        """
        ...

    async def withdraw_share(self, campaign_id: str, node: str, *, token: str | None = None) -> str | None:
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


class Store(CampaignStore, CountStore, ShareStore, ModelStore, TokenStore, ActStore, DirectoryStore, Protocol):
    """All of it. A function takes the smallest of these protocols that it needs."""

    async def audit(self) -> list[Finding]:
        """What is wrong with what is stored: ids and counts that do not agree, documents that are not their id, shares
        that are none of their campaign.
        """
        ...

    async def origin(self) -> Origin:
        """Where the store comes from."""
        ...

    async def close(self) -> None: ...
