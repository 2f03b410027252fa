"""The decisions of a store about campaigns and uploads, as pure functions of what was read.

Whoever calls these read the arguments inside the transaction that acts on the answer, under whatever lock its database
needs for them to stay true until the commit.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from ldp_aggregator.counting.tally import Arrivals
from ldp_aggregator.store.batch import Settlement
from ldp_aggregator.store.clock import to_text
from ldp_aggregator.store.contract import (
    CLOSED,
    NOT_CLOSED,
    REVOKED,
    SEALED,
    TAKES_REPORTS,
    TAKES_SHARES,
    TOO_EARLY,
    CampaignState,
    Life,
    RefusedError,
)

GRACE: Final = timedelta(days=1)
"""Between the end of a campaign and what takes it for granted: time to notice that a clock was wrong."""


@dataclass(frozen=True, slots=True)
class CampaignRow:
    """A campaign beside its document, as every database keeps it. ``number`` is its key there.

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
        """The number of reports decides its kind: without one, a first share makes it federated."""
        return self.salt is None and self.max_reports is None

    def arrivals(self, reports: int, vouched: int, least_batch: int | None) -> Arrivals:
        """Tell how the reports came, with what the parts say of it."""
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


def takes_reports(salt: bytes | None, max_reports: int | None, counted: int) -> bool:
    """A campaign is one of devices, and stays so; before its first report one without a limit may become federated."""
    return salt is None and (max_reports is not None or counted > 0)


def is_over(life: Life, max_reports: int | None, counted: int, now: datetime) -> bool:
    """A campaign will never take a report again: it is closed, past its end, or full."""
    return (max_reports is not None and counted >= max_reports) or life.refusal(now) == CLOSED


def ending(row: CampaignRow, counted: int, now: datetime) -> dict[str, datetime | None]:
    """Return the columns that a look at a campaign's end changes.

    Safety: one wrong clock ends nothing. It has to have seen the end for a day, and no right one meanwhile.
    """
    if row.life.closed is not None:
        return {}
    if not is_over(row.life, row.max_reports, counted, now):
        return {"over_since": None}
    if row.over_since is None:
        return {"over_since": now}
    return {"closed": now} if now - row.over_since >= GRACE else {}


def check_reopening(row: CampaignRow) -> None:
    """Raises RefusedError where the ids are gone: what was counted could be counted again."""
    if row.life.sealed is not None:
        text = f"campaign {row.id} is sealed: its ids are gone, and a report sent again would count twice"
        raise RefusedError(SEALED, text)


def check_closed(row: CampaignRow) -> datetime:
    """Return since when. Raises RefusedError where devices may still answer."""
    if row.life.closed is None:
        text = f"campaign {row.id} was not closed; 'ldp-aggregator campaign close' comes first"
        raise RefusedError(NOT_CLOSED, text)
    return row.life.closed


def check_sealing(row: CampaignRow, now: datetime, *, at_once: bool) -> None:
    """Raises RefusedError where it is too early to drop the ids. Sealing twice changes nothing."""
    closed = check_closed(row)
    if row.life.sealed is None and now - closed < GRACE and not at_once:
        raise RefusedError(
            TOO_EARLY,
            f"campaign {row.id} was closed at {to_text(closed)} and can be sealed from {to_text(closed + GRACE)} on; "
            "until then 'campaign close --undo' takes it back (--seal-now seals at once)",
        )


def refuse_uploads(row: CampaignRow, now: datetime) -> str | None:
    """The code that refuses every upload, however many reports there are."""
    return TAKES_SHARES if row.salt is not None else row.life.refusal(now)


def refuse_node(takes_shares: bool, life: Life, now: datetime, *, token_in_use: bool) -> str | None:
    """The code that refuses a node's share, or to drop it.

    A token that was revoked or rotated since the request began changes nothing any more.
    """
    if not takes_shares:
        return TAKES_REPORTS
    return life.refusal(now) if token_in_use else REVOKED


def vouched_part(settlement: Settlement, before: Arrivals) -> int:
    """Return what a commit adds to the reports that were vouched for.

    A report that came vouched for and comes again outside of a batch takes one off. Which one came how is not kept: so
    that is done where everything was vouched for, and then something no longer is.
    """
    everything = before.otherwise == 0 and settlement.vouched == settlement.counted
    return settlement.vouched - (settlement.revealed if everything else 0)
