"""The store as far as both databases are alike, and the check of what is in it, for ``ldp-aggregator fsck``."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from ldp_aggregator.mechanisms import analysis_of
from ldp_aggregator.node_statistics import decode_share
from ldp_aggregator.store.contract import LOG, UNAVAILABLE, Counting, Outcome, StoreError, told_of
from ldp_aggregator.store.decisions import Batch, CampaignRow
from ldp_aggregator.store.sql import campaigns
from ldp_aggregator.store.sql.checks import damage_of, legible
from ldp_aggregator.store.sql.published import Published
from ldp_aggregator.store.sql.rights import Rights
from ldp_aggregator.store.sql.shares import NodeShares
from ldp_aggregator.store.sql.tables import OF_CAMPAIGNS, Row, SqlConnection
from ldp_protocols import Campaign, DocumentError


@dataclass(frozen=True, slots=True)
class Damage:
    """One thing that is wrong; ``campaign`` is None for the store as a whole."""

    campaign: str | None
    problem: str

    def __str__(self) -> str:
        return f"{self.campaign}: {self.problem}" if self.campaign else self.problem


OF_STORE: Final = ("origin", "tokens", "acts", "directories", "deleted")
"""The tables of what belongs to no campaign, or outlives it."""
CheckIds = Callable[[SqlConnection, CampaignRow], Awaitable[tuple[int | None, list[str]]]]
"""Counts the ids of a campaign that are stored, None for a sealed one, and says what is wrong with them."""


async def findings(db: SqlConnection, check_ids: CheckIds, unreadable: tuple[type[Exception], ...]) -> list[Damage]:
    """Check every row of a store. ``unreadable`` is what the database raises for what it cannot read."""
    damages: list[Damage] = []
    reported: tuple[type[Exception], ...] = (StoreError, *unreadable)

    async def look(campaign_id: str | None, problems: Awaitable[list[str]]) -> None:
        try:
            async with db.savepoint():
                damages.extend(Damage(campaign_id, problem) for problem in await problems)
        except reported as error:
            damages.append(Damage(campaign_id, f"its rows cannot be read: {error}"))

    for table in OF_STORE:
        await look(None, _problems_of_table(db, table))
    for found in await campaigns.listed(db):
        damage = damage_of("campaigns", found)
        if damage is None:
            row = campaigns.row_of(found)
            await look(row.id, _problems_of_campaign(db, row, check_ids))
        else:
            damages.append(Damage(legible(found["id"]), damage))
    return damages


async def _problems_of_table(db: SqlConnection, table: str) -> list[str]:
    found = await db.fetch(f"SELECT * FROM {table}")
    problems = [damage for row in found if (damage := damage_of(table, row))]
    if table == "origin" and len(found) != 1:
        problems.append(f"the store has {len(found)} origins")
    return problems


async def _problems_of_campaign(db: SqlConnection, row: CampaignRow, check_ids: CheckIds) -> list[str]:
    found = {table: await db.fetch(f"SELECT * FROM {table} WHERE campaign = $1", row.number) for table in OF_CAMPAIGNS}
    problems = [damage for table in found for one in found[table] if (damage := damage_of(table, one, row.id))]
    ids, problems_of_ids = await check_ids(db, row)
    problems += problems_of_ids
    try:
        campaign = Campaign.parse(await campaigns.document(db, row.id), row.id)
    except ValueError as error:
        problems.append(str(error))
    else:
        problems += _problems_of_tally(campaign, row, found["parts"], ids)
        if row.salt is not None:
            problems += _problems_of_shares(campaign, found["shares"], found["releases"])
    if row.salt is None and found["shares"]:
        problems.append(f"{len(found['shares'])} shares are stored, but the campaign takes reports")
    return problems


def _problems_of_tally(campaign: Campaign, row: CampaignRow, parts: Sequence[Row], ids: int | None) -> Iterator[str]:
    if any(damage_of("parts", part, row.id) for part in parts):
        return
    try:
        tally = campaigns.sum_or_refuse(campaign, parts)
    except StoreError as error:
        yield str(error)
        return
    reports = int(tally.n.sum())
    if ids is not None and ids + row.overlap + row.lost_ids != reports:
        twice = f" ({row.overlap} of them for two reports)" if row.overlap else ""
        lost = f" and {row.lost_ids} were lost with damage" if row.lost_ids else ""
        yield f"{reports} reports are counted, but {ids} ids are stored{twice}{lost}"
    for question, n, counts in zip(campaign.counted, tally.n, tally.counts, strict=True):
        place = f"question {question.index} ({question.mechanism.name})"
        if n < 0:
            yield f"{place}: {n} reports"
        for problem in analysis_of(question.mechanism).impossible(int(n), counts):
            yield f"{place}: {problem}"


def _problems_of_shares(campaign: Campaign, shares: Sequence[Row], releases: Sequence[Row]) -> Iterator[str]:
    sent = {(one["node"], one["digest"]) for one in releases}
    for one in shares:
        if damage_of("shares", one, campaign.id):
            continue
        try:
            decode_share(one["share"], campaign)
        except DocumentError as error:
            yield f"the share of {one['node']!r}: {error}"
        if (one["node"], one["digest"]) not in sent:
            yield f"the share of {one['node']!r}: it is not among the shares that were sent"


class Store(NodeShares, Rights, Published, Counting):
    """A store, of which each database adds how it counts; :mod:`ldp_aggregator.store.contract` says what all promise.

    All methods may raise StoreError.
    """

    def _uncounted(self, batch: Batch, error: Exception) -> Sequence[Outcome]:
        """Answers to a batch that the database failed to count, which is logged; it fails no other."""
        LOG.error("a campaign was not counted", extra={"campaign": batch.campaign.id, **told_of(error)})
        return batch.refused(UNAVAILABLE)

    async def check(self) -> list[Damage]:
        """Damage of what is stored: ids and counts that do not agree, documents that do not have their id,
        shares that are none of their campaign.
        """
        raise NotImplementedError

    async def reconnect(self, address: str) -> None:
        """Use this address of the same database from now on, if it can be reached; what runs goes on."""
        raise NotImplementedError

    async def close(self) -> None:
        """Let go of the database."""
        raise NotImplementedError

    @property
    def damaged(self) -> int:
        """Campaigns that are counted although what is stored of them was found damaged; :meth:`check` says what is."""
        return 0
