"""The store as far as both databases are alike, and what each has to add."""

from __future__ import annotations

from typing import ClassVar

from ldp_aggregator.store.consistency import Finding, check_campaign
from ldp_aggregator.store.contract import Counting
from ldp_aggregator.store.decisions import CampaignRow
from ldp_aggregator.store.sql import campaigns
from ldp_aggregator.store.sql.connection import Connection
from ldp_aggregator.store.sql.rights import Rights
from ldp_aggregator.store.sql.shares import NodeShares, stored_shares


class Store(NodeShares, Rights, Counting):
    """A store, of which each database adds how it counts; :mod:`ldp_aggregator.store.contract` says what all promise.

    All methods may raise StoreError; those that name a campaign also UnknownCampaignError.
    """

    _UNREADABLE: ClassVar[tuple[type[Exception], ...]]
    """What the database raises where what is stored of a campaign cannot be read."""

    async def check(self) -> list[Finding]:
        """List what is wrong with what is stored: ids and counts that do not agree, documents that are not their id,
        shares that are none of their campaign.
        """
        raise NotImplementedError

    async def close(self) -> None:
        """Let go of the database."""
        raise NotImplementedError

    @property
    def damaged(self) -> int:
        """Campaigns that are counted although what is stored of them was found damaged; :meth:`check` says what is."""
        return 0

    async def _stored_ids(self, db: Connection, number: int) -> int:
        raise NotImplementedError

    async def _problems_of_ids(self, db: Connection, row: CampaignRow) -> list[str]:
        raise NotImplementedError

    async def _findings(self, db: Connection) -> list[Finding]:
        findings: list[Finding] = []
        for row in await campaigns.rows(db):
            try:
                async with db.savepoint():
                    document, parts = await campaigns.document(db, row.id), await campaigns.parts(db, row.number)
                    ids = await self._stored_ids(db, row.number) if row.life.sealed is None else None
                    problems = [*check_campaign(row, document, parts, ids, await stored_shares(db, row.number))]
                    problems += await self._problems_of_ids(db, row)
            except self._UNREADABLE as error:
                problems = [f"what is stored of it cannot be read: {error}"]
            findings += [Finding(row.id, problem) for problem in problems]
        return findings
