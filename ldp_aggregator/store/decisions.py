"""What follows from what was read: every decision of a store, as a pure function. Databases keep the statements.

Whoever calls these read the arguments inside the transaction that acts on the answer, under whatever lock its database
needs for them to stay true until the commit.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Final

from ldp_aggregator.store.contract import (
    CLOSED,
    DELETED,
    NOT_CLOSED,
    OLDER,
    REVOKED,
    TAKES_REPORTS,
    TAKES_SHARES,
    CampaignState,
    Life,
    RefusedError,
    StoreError,
)
from ldp_aggregator.store.rights import StoredToken


@dataclass(frozen=True, slots=True)
class CampaignRow:
    """What every database keeps of a campaign beside its document. ``number`` is its key there.

    A campaign has a ``salt`` if and only if it is federated.
    """

    number: int
    id: str
    title: str
    created: datetime
    life: Life
    max_reports: int | None
    salt: bytes | None
    uploads_need: str | None = None

    @property
    def may_become_federated(self) -> bool:
        """Whether the number of reports decides its kind: without one, a first share makes it federated."""
        return self.salt is None and self.max_reports is None

    def state(self, *, reports: int, model_version: int | None, shares: int) -> CampaignState:
        """The campaign as it is told, with what was counted beside its row."""
        return CampaignState(
            id=self.id,
            title=self.title,
            created=self.created,
            life=self.life,
            max_reports=self.max_reports,
            reports=reports,
            model_version=model_version,
            federated=self.salt is not None,
            shares=shares,
            uploads_need=self.uploads_need,
        )


class Kind(Enum):
    """What a campaign takes. Once decided it stays so."""

    UNDECIDED = "reports or shares, whatever comes first"
    REPORTS = "reports of devices"
    SHARES = "shares of nodes"


def kind_of(salt: bytes | None, max_reports: int | None, counted: int) -> Kind:
    """``counted`` is the number of reports so far; it matters only where the rest leaves the kind open."""
    if salt is not None:
        return Kind.SHARES
    return Kind.REPORTS if max_reports is not None or counted else Kind.UNDECIDED


def is_over(life: Life, max_reports: int | None, counted: int, now: datetime) -> bool:
    """Whether a campaign will never take a report again: closed, past its end, or full."""
    return (max_reports is not None and counted >= max_reports) or life.refusal(now) == CLOSED


def due(states: Iterable[CampaignState], now: datetime) -> list[str]:
    """The campaigns that are over and were not closed yet."""
    return [
        state.id
        for state in states
        if state.life.closed is None and is_over(state.life, state.max_reports, state.reports, now)
    ]


@dataclass(frozen=True, slots=True)
class UploadDecision:
    """What becomes of uploads to one campaign: ``refused`` with a code, or counted as far as there is ``room``."""

    refused: str | None = None
    room: int | None = None
    """How many more reports the campaign takes; None where nothing limits it."""


def decide_uploads(row: CampaignRow, counted: int | None, now: datetime) -> UploadDecision:
    """``counted`` is the number of reports so far; it may be None where nothing limits it."""
    refused = TAKES_SHARES if row.salt is not None else row.life.refusal(now)
    if refused is not None or row.max_reports is None:
        return UploadDecision(refused)
    if counted is None:
        raise ValueError("a campaign with a greatest number of reports needs the number of those that were counted")
    return UploadDecision(room=max(row.max_reports - counted, 0))


@dataclass(frozen=True, slots=True)
class ShareDecision:
    """Whether a node's share is kept, and whether the campaign becomes federated by it and needs a salt."""

    refused: str | None
    becomes_federated: bool


def decide_share(row: CampaignRow, counted: int, now: datetime, *, token_in_use: bool) -> ShareDecision:
    """A first share decides the kind of a campaign that has no report yet."""
    kind = kind_of(row.salt, row.max_reports, counted)
    refused = _refuse_node(kind is not Kind.REPORTS, row.life, now, token_in_use)
    return ShareDecision(refused, refused is None and kind is Kind.UNDECIDED)


def refuse_withdrawal(row: CampaignRow, now: datetime, *, token_in_use: bool) -> str | None:
    """The code that refuses to drop a node's share; a campaign that is not federated yet has none to drop."""
    return _refuse_node(row.salt is not None, row.life, now, token_in_use)


def _refuse_node(takes_shares: bool, life: Life, now: datetime, token_in_use: bool) -> str | None:
    """A token that was revoked or rotated since the request began changes nothing any more."""
    if not takes_shares:
        return TAKES_REPORTS
    return life.refusal(now) if token_in_use else REVOKED


OF_CAMPAIGNS: Final = ("parts", "models", "shares", "releases", "publications")
"""The tables that hold what belongs to a campaign; each names it in a column ``campaign``."""


class Rotation(Enum):
    """What a rotation finds."""

    ROTATE = "a token in use, and a free name"
    DONE = "the new token already: an earlier try was committed and its answer lost"
    MISSING = "no token in use under the old name"


def decide_rotation(old: StoredToken | None, namesake: StoredToken | None, new: StoredToken, now: datetime) -> Rotation:
    """``old`` holds the old name, ``namesake`` the new one. Raises StoreError where the new name is taken."""
    if namesake is not None and namesake.digest == new.digest:
        return Rotation.DONE
    if old is None or not old.is_in_use(now):
        return Rotation.MISSING
    if namesake is not None:
        raise name_taken(new)
    return Rotation.ROTATE


def overlap_ends(old: StoredToken, until: datetime | None) -> datetime | None:
    """When a rotated token expires; an overlap never gives it more time than it had."""
    return until if until is None or old.expires is None else min(until, old.expires)


def has_say(shown: StoredToken | None, node: str, now: datetime) -> bool:
    """Whether a token may still change a node's share: it may have been revoked since its request began."""
    return shown is not None and shown.is_in_use(now) and shown.node == node


def was_deleted(campaign_id: str) -> RefusedError:
    """An id is never used again: whoever answered once would count once more."""
    text = f"campaign {campaign_id} was deleted, and what told its reports apart with it; change the draft's title"
    return RefusedError(DELETED, text)


def decide_directory(kept: tuple[int, bytes] | None, version: int, document: bytes) -> bool:
    """Whether a directory takes the place of the one that is ``kept``. Raises RefusedError where it is not newer."""
    if kept is None or version > kept[0]:
        return True
    if (version, document) == kept:
        return False
    raise RefusedError(OLDER, f"version {kept[0]} of this publisher's directory is kept; sign a later one")


def not_closed(campaign_id: str) -> RefusedError:
    return RefusedError(NOT_CLOSED, f"campaign {campaign_id} is not closed; close it before it is deleted")


def name_taken(token: StoredToken) -> StoreError:
    """A name is never used again, so that what it did stays its own."""
    return StoreError(f"a token with the name {token.name!r} exists already; choose another name")
