"""The statements of the PostgreSQL store that end a campaign, or take that back. Each runs inside a transaction of the
store's, and has the campaign for itself.
"""

from __future__ import annotations

from datetime import datetime

from ldp_aggregator.store.campaign_state import CampaignState
from ldp_aggregator.store.decisions import (
    OF_CAMPAIGNS,
    CampaignRow,
    Ending,
    check_deletion,
    check_reopening,
    check_sealing,
    decide_ending,
)
from ldp_aggregator.store.postgres import campaigns
from ldp_aggregator.store.postgres.sessions import Connection


async def close(db: Connection, campaign_id: str, now: datetime) -> CampaignState:
    """Whoever counts waits for this, or is waited for."""
    found = await campaigns.locked(db, await campaigns.row(db, campaign_id))
    if found.life.closed is None:
        await campaigns.put(db, found, "closed", now)
    await campaigns.put(db, found, "held_until", None)
    return await campaigns.state(db, campaign_id)


async def end(db: Connection, campaign_id: str, now: datetime) -> CampaignState:
    found = await campaigns.locked(db, await campaigns.row(db, campaign_id))
    ending = decide_ending(found, await campaigns.reports(db, found.number), now)
    if ending is Ending.CLOSE:
        await campaigns.put(db, found, "closed", now)
    elif ending is not Ending.NOTHING:
        await campaigns.put(db, found, "over_since", now if ending is Ending.NOTE else None)
    await campaigns.put(db, found, "held_until", None)
    return await campaigns.state(db, campaign_id)


async def reopen(db: Connection, campaign_id: str) -> CampaignState:
    found = await campaigns.locked(db, await campaigns.row(db, campaign_id))
    check_reopening(found)
    await campaigns.put(db, found, "closed", None)
    await campaigns.put(db, found, "over_since", None)
    return await campaigns.state(db, campaign_id)


async def seal(db: Connection, campaign_id: str, now: datetime, *, at_once: bool) -> CampaignRow:
    """From here on its ids count for nothing, and may be dropped."""
    found = await campaigns.locked(db, await campaigns.row(db, campaign_id))
    if found.life.sealed is None:
        check_sealing(found, now, at_once=at_once)
        await campaigns.put(db, found, "sealed", now)
    return found


async def begin_deletion(db: Connection, campaign_id: str, now: datetime) -> CampaignRow:
    """What is deleted is sealed first: its ids are dropped piece by piece, and it is not reopened meanwhile."""
    found = await campaigns.locked(db, await campaigns.row(db, campaign_id))
    check_deletion(found)
    if found.life.sealed is None:
        await campaigns.put(db, found, "sealed", now)
    return found


async def delete(db: Connection, campaign_id: str, now: datetime) -> None:
    """Everything that is kept of a campaign whose ids are dropped, but that there was one."""
    found = await campaigns.locked(db, await campaigns.row(db, campaign_id))
    for table in OF_CAMPAIGNS:
        await db.execute(f"DELETE FROM {table} WHERE campaign = $1", found.number)
    await db.execute("DELETE FROM campaigns WHERE number = $1", found.number)
    await db.execute("INSERT INTO deleted (id, deleted) VALUES ($1, $2)", campaign_id, now)
