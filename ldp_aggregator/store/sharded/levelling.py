"""Campaigns brought to a database of a store that has not heard of them, or of what became of them."""

from __future__ import annotations

from ldp_aggregator.store.contract import UnknownCampaignError
from ldp_aggregator.store.postgres import campaigns
from ldp_aggregator.store.postgres.store import PostgresStore
from protocols import Campaign


async def bring_all(first: PostgresStore, other: PostgresStore) -> None:
    """Every campaign of the first database, and those that are closed or sealed there."""
    there = {row.id: row for row in await other.do(campaigns.rows)}
    for row in await first.do(campaigns.rows):
        found = there.get(row.id)
        if found is None or (row.life.closed and not found.life.closed) or (row.life.sealed and not found.life.sealed):
            await bring(first, other, row.id)


async def bring(first: PostgresStore, other: PostgresStore, campaign_id: str) -> bool:
    """One campaign as it is in the first database; False where that does not know it.

    What becomes of it there meanwhile is looked for once more at the end.
    """
    try:
        document = await first.document(campaign_id)
        row = await first.do(lambda db: campaigns.row(db, campaign_id))
        await PostgresStore.create_campaign(other, Campaign.parse(document, campaign_id), max_reports=row.max_reports)
        life = (await first.do(lambda db: campaigns.row(db, campaign_id))).life
        if life.closed is not None:
            await other.close_campaign(campaign_id)
        if life.sealed is not None:
            await other.seal_campaign(campaign_id, at_once=True)
    except UnknownCampaignError:
        return False
    return True
