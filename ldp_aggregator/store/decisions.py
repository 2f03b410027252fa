"""What follows from what was read: every decision of a store, as a pure function. Databases keep the statements.

Whoever calls these read the arguments inside the transaction that acts on the answer, under whatever lock its database
needs for them to stay true until the commit.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Final

from ldp_aggregator.counting.arrivals import Arrivals
from ldp_aggregator.counting.tally import Tally, devices_counted
from ldp_aggregator.store.batch import Settlement
from ldp_aggregator.store.clock import to_text
from ldp_aggregator.store.contract import (
    CLOSED,
    DELETED,
    NOT_CLOSED,
    OLDER,
    REVOKED,
    SEALED,
    TAKES_REPORTS,
    TAKES_SHARES,
    TOO_EARLY,
    CampaignState,
    Life,
    RefusedError,
    StoreError,
    Terms,
)
from ldp_aggregator.store.rights import StoredToken

GRACE: Final = timedelta(days=1)
"""Between the end of a campaign and what takes it for granted: time to notice that a clock was wrong."""


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
    over_since: datetime | None = None
    """When it was first seen to be past its end, or full."""
    overlap: int = 0
    unchecked: int = 0
    """Reports that are, and that may be, in the sums twice; see :class:`Arrivals`."""
    lost_ids: int = 0
    """Reports whose ids were lost with a damaged run."""
    uploads_need: str | None = None

    @property
    def may_become_federated(self) -> bool:
        """Whether the number of reports decides its kind: without one, a first share makes it federated."""
        return self.salt is None and self.max_reports is None

    @property
    def terms(self) -> Terms:
        """What it asks of those who send to it."""
        return Terms(self.salt is not None, self.uploads_need)

    def arrivals(self, reports: int, vouched: int, least_batch: int | None) -> Arrivals:
        """How the reports came, with what the parts say of it."""
        return Arrivals(reports, vouched, least_batch, self.overlap, self.unchecked)

    def state(self, arrivals: Arrivals, *, model_version: int | None, shares: int) -> CampaignState:
        """The campaign as it is told, with what was counted beside its row."""
        return CampaignState(
            id=self.id,
            title=self.title,
            created=self.created,
            life=self.life,
            max_reports=self.max_reports,
            reports=arrivals.reports,
            model_version=model_version,
            federated=self.salt is not None,
            shares=shares,
            arrivals=arrivals,
            over_since=self.over_since,
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


class Ending(Enum):
    """What a look at a campaign's end changes."""

    NOTHING = "it is not over, or was closed, or the grace period runs"
    NOTE = "it is over, and this is the first time that it was seen to be"
    FORGET = "it was seen to be over by a clock that was ahead"
    CLOSE = "it has been over for the grace period"


def decide_ending(row: CampaignRow, counted: int, now: datetime) -> Ending:
    """Safety: one wrong clock ends nothing. It has to have seen the end for a day, and no right one meanwhile."""
    if row.life.closed is not None:
        return Ending.NOTHING
    if not is_over(row.life, row.max_reports, counted, now):
        return Ending.NOTHING if row.over_since is None else Ending.FORGET
    if row.over_since is None:
        return Ending.NOTE
    return Ending.CLOSE if now - row.over_since >= GRACE else Ending.NOTHING


def check_reopening(row: CampaignRow) -> None:
    """Raises RefusedError where the ids are gone: what was counted could be counted again."""
    if row.life.sealed is not None:
        text = f"campaign {row.id} is sealed: its ids are gone, and a report sent again would count twice"
        raise RefusedError(SEALED, text)


def check_sealing(row: CampaignRow, now: datetime, *, at_once: bool) -> None:
    """Raises RefusedError where it is too early to drop the ids. Sealing twice changes nothing."""
    closed = row.life.closed
    if closed is None:
        text = f"campaign {row.id} was not closed; 'ldp-aggregator campaign close' comes first"
        raise RefusedError(NOT_CLOSED, text)
    if row.life.sealed is None and now - closed < GRACE and not at_once:
        raise RefusedError(
            TOO_EARLY,
            f"campaign {row.id} was closed at {to_text(closed)} and can be sealed from {to_text(closed + GRACE)} on; "
            "until then 'campaign reopen' takes it back (--now seals at once)",
        )


def check_deletion(row: CampaignRow) -> None:
    """Raises RefusedError where devices may still answer."""
    if row.life.closed is None:
        text = f"campaign {row.id} was not closed; 'ldp-aggregator campaign close' comes first"
        raise RefusedError(NOT_CLOSED, text)


def was_deleted(campaign_id: str, deleted: datetime) -> RefusedError:
    """An id that was used is not used again: its devices have answered, and its models are kept in caches."""
    text = (
        f"campaign {campaign_id} was deleted at {to_text(deleted)}, and stays so; a draft with another title makes "
        "another campaign"
    )
    return RefusedError(DELETED, text)


def due(states: Iterable[CampaignState], now: datetime) -> list[str]:
    """The campaigns that were not closed yet and are over, as far as this clock or another one knows."""
    return [
        state.id
        for state in states
        if state.life.closed is None
        and (state.over_since is not None or is_over(state.life, state.max_reports, state.reports, now))
    ]


@dataclass(frozen=True, slots=True)
class UploadDecision:
    """What becomes of uploads to one campaign: ``refused`` with a code, or counted as far as there is ``room``."""

    refused: str | None = None
    room: int | None = None
    """How many more reports the campaign takes; None where nothing limits it."""


def refuse_uploads(row: CampaignRow, now: datetime) -> str | None:
    """The code that refuses every upload, however many reports there are."""
    return TAKES_SHARES if row.salt is not None else row.life.refusal(now)


def decide_uploads(row: CampaignRow, counted: int | None, now: datetime) -> UploadDecision:
    """``counted`` is the number of reports so far; it may be None where nothing limits it."""
    refused = refuse_uploads(row, now)
    if refused is not None or row.max_reports is None:
        return UploadDecision(refused)
    if counted is None:
        raise ValueError("a campaign with a greatest number of reports needs the number of those that were counted")
    return UploadDecision(room=max(row.max_reports - counted, 0))


def vouched_part(settlement: Settlement, before: Arrivals) -> int:
    """What a commit adds to the reports that were vouched for.

    A report that came vouched for and comes again outside of a batch takes one off. Which one came how is not kept: so
    that is done where everything was vouched for, and then something no longer is.
    """
    everything = before.otherwise == 0 and settlement.vouched == settlement.counted
    return settlement.vouched - (settlement.revealed if everything else 0)


def is_release(tally: Tally, released: Tally, every: int) -> bool:
    """Whether what is new since the last release is of ``every`` devices, to each group where all groups are asked."""
    return devices_counted(tally.campaign, (tally.n - released.n).tolist()) >= every


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


def decide_directory(kept: tuple[int, bytes] | None, version: int, document: bytes) -> bool:
    """Whether a directory takes the place of the one that is ``kept``. Raises RefusedError where it is not newer."""
    if kept is None or version > kept[0]:
        return True
    if (version, document) == kept:
        return False
    raise RefusedError(OLDER, f"version {kept[0]} of this publisher's directory is kept; sign a later one")


def name_taken(token: StoredToken) -> StoreError:
    """A name is never used again, so that what it did stays its own."""
    return StoreError(f"a token with the name {token.name!r} exists already; choose another name")


def floor_of_versions(now: datetime, *floors: int) -> int:
    """The floor of a store that is made of others at ``now``: above every version that they ever published.

    What was published after a copy is not in it. Seconds since 1970 are more than any store has published that counts
    from 1, or from the seconds of an earlier restore.
    """
    return max(int(now.timestamp()), *floors)
