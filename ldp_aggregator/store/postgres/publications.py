"""The statements of the PostgreSQL store about what was last published of a campaign that fixes when."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from ldp_aggregator.counting.parts import part_of_tally
from ldp_aggregator.counting.tally import Tally
from ldp_aggregator.store.consistency import sum_or_refuse
from ldp_aggregator.store.decisions import is_release
from ldp_aggregator.store.postgres import campaigns
from ldp_aggregator.store.postgres.sessions import Connection
from protocols import Campaign


async def _nowhere_else() -> list[bytes]:
    return []


async def released_tally(
    db: Connection,
    campaign: Campaign,
    every: int,
    elsewhere: Callable[[], Awaitable[list[bytes]]] = _nowhere_else,
) -> Tally:
    """Two instances that release at once wait for each other, and whoever counts for neither of them.

    ``elsewhere`` gives the parts that other databases have.
    """
    number = (await campaigns.locked(db, await campaigns.row(db, campaign.id), campaigns.IN_TURN)).number
    last = await db.fetchrow("SELECT reports, sums FROM publications WHERE campaign = $1", number)
    released = sum_or_refuse(campaign, [last["sums"]] if last else [])
    more = await elsewhere()
    if not more and await campaigns.reports(db, number) - (last["reports"] if last else 0) < every:
        return released
    tally = sum_or_refuse(campaign, [*await campaigns.parts(db, number), *more])
    if not is_release(tally, released, every):
        return released
    await db.execute(
        "INSERT INTO publications (campaign, reports, sums) VALUES ($1, $2, $3) "
        "ON CONFLICT (campaign) DO UPDATE SET reports = excluded.reports, sums = excluded.sums",
        number,
        int(tally.n.sum()),
        part_of_tally(tally),
    )
    return tally
