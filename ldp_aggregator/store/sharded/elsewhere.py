"""What is asked of, and done in, a single database of a store of several."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from dataclasses import replace
from typing import TypeVar

from ldp_aggregator.counting.arrivals import Arrivals
from ldp_aggregator.store.campaign_state import CampaignState
from ldp_aggregator.store.contract import UnknownCampaignError
from ldp_aggregator.store.postgres import campaigns
from ldp_aggregator.store.postgres.sessions import Connection
from ldp_aggregator.store.postgres.store import PostgresStore

Result = TypeVar("Result")


async def add_crowd(db: Connection, campaign_id: str, least: int) -> None:
    """A part without reports, for what it says of the least batch."""
    await campaigns.add_part(db, (await campaigns.row(db, campaign_id)).number, 0, b"", 0, least)


async def arrivals_in(store: PostgresStore, campaign_id: str) -> Arrivals:
    """How a campaign's reports came to one database."""
    found = await if_there(store.state(campaign_id))
    return Arrivals() if found is None else found.arrivals


async def parts_in(store: PostgresStore, campaign_id: str) -> list[bytes]:
    """The parts of a campaign's tally in one database."""
    found = await if_there(store.do(lambda db: campaigns.parts_of(db, campaign_id)))
    return [] if found is None else found[1]


async def if_there(work: Awaitable[Result]) -> Result | None:
    """None where the campaign has not reached the database, or is deleted there already."""
    try:
        return await work
    except UnknownCampaignError:
        return None


async def close_and_seal(store: PostgresStore, campaign_id: str) -> None:
    """What the first database has sealed."""
    await store.close_campaign(campaign_id)
    await store.seal_campaign(campaign_id, at_once=True)


async def close_and_delete(store: PostgresStore, campaign_id: str) -> None:
    """What the first database is about to delete."""
    await store.close_campaign(campaign_id)
    await store.delete_campaign(campaign_id)


def with_arrivals(state: CampaignState, found: Sequence[Arrivals]) -> CampaignState:
    """The state of a campaign with what the other databases have of its reports."""
    every = [state.arrivals, *found]
    arrivals = Arrivals(
        sum(one.reports for one in every),
        sum(one.vouched for one in every),
        min((one.least_batch for one in every if one.least_batch is not None), default=None),
        sum(one.overlap for one in every),
        sum(one.unchecked for one in every),
    )
    return replace(state, reports=arrivals.reports, arrivals=arrivals)
