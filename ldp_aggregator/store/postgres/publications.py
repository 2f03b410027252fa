"""The statements of the PostgreSQL store about what was last published of a campaign that fixes when."""

from __future__ import annotations

from ldp_aggregator.counting.parts import part_of_tally
from ldp_aggregator.counting.tally import Tally
from ldp_aggregator.store.consistency import tally_or_refuse
from ldp_aggregator.store.postgres import campaigns
from ldp_aggregator.store.postgres.sessions import Connection, lock


async def released_tally(db: Connection, campaign_id: str, every: int) -> Tally:
    number = (await campaigns.row(db, campaign_id)).number
    await lock(db, number, shared=False)
    last = await db.fetchrow("SELECT reports, sums FROM publications WHERE campaign = $1", number)
    document, parts = await campaigns.parts_of(db, campaign_id)
    tally = tally_or_refuse(campaign_id, document, parts)
    reports = int(tally.n.sum())
    if reports - (last["reports"] if last else 0) < every:
        return tally_or_refuse(campaign_id, document, [last["sums"]] if last else [])
    await db.execute(
        "INSERT INTO publications (campaign, reports, sums) VALUES ($1, $2, $3) "
        "ON CONFLICT (campaign) DO UPDATE SET reports = excluded.reports, sums = excluded.sums",
        number,
        reports,
        part_of_tally(tally),
    )
    return tally
