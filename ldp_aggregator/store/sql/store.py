"""The store as far as both databases are alike, and the check of what is in it, for ``ldp-aggregator fsck``."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from ldp_aggregator.counting.parts import tally_of_parts
from ldp_aggregator.mechanisms import analysis_of
from ldp_aggregator.node_statistics import decode_share
from ldp_aggregator.store.contract import Counting
from ldp_aggregator.store.decisions import CampaignRow
from ldp_aggregator.store.sql import campaigns
from ldp_aggregator.store.sql.published import Published
from ldp_aggregator.store.sql.rights import Rights
from ldp_aggregator.store.sql.shares import NodeShares, stored_shares
from ldp_aggregator.store.sql.tables import SqlConnection
from ldp_protocols import Campaign, DocumentError


@dataclass(frozen=True, slots=True)
class Damage:
    """One thing that is wrong; ``campaign`` is None for the store as a whole."""

    campaign: str | None
    problem: str

    def __str__(self) -> str:
        return f"{self.campaign}: {self.problem}" if self.campaign else self.problem


def check_campaign(
    row: CampaignRow,
    document: bytes,
    parts: Sequence[bytes],
    ids: int | None,
    shares: Sequence[tuple[str, bytes, bytes, bool]],
) -> Iterator[str]:
    """Check one campaign, with everything that is stored of it, as it stands there.

    ``ids`` is how many are stored, None for a sealed campaign, which has none; ``shares`` have node, share and digest,
    and whether the share is among those that were ever sent.
    """
    try:
        campaign = Campaign.parse(document, row.id)
    except ValueError as error:
        yield str(error)
    else:
        yield from _problems_of_tally(campaign, row, parts, ids)
        yield from () if row.salt is None else _problems_of_shares(campaign, shares)
    if row.salt is None and shares:
        yield f"{len(shares)} shares are stored, but the campaign takes reports"


def _problems_of_tally(campaign: Campaign, row: CampaignRow, parts: Sequence[bytes], ids: int | None) -> Iterator[str]:
    try:
        tally = tally_of_parts(campaign, parts)
    except ValueError as error:
        yield str(error)
        return
    reports = int(tally.n.sum())
    if ids is not None and ids + row.overlap + row.lost_ids != reports:
        twice = f" ({row.overlap} of them for two reports)" if row.overlap else ""
        lost = f" and {row.lost_ids} were lost with a damaged run" if row.lost_ids else ""
        yield f"{reports} reports are counted, but {ids} ids are stored{twice}{lost}"
    for question, n, counts in zip(campaign.counted, tally.n, tally.counts, strict=True):
        place = f"question {question.index} ({question.mechanism.name})"
        if n < 0:
            yield f"{place}: {n} reports"
        for problem in analysis_of(question.mechanism).impossible(int(n), counts):
            yield f"{place}: {problem}"


def _problems_of_shares(campaign: Campaign, shares: Sequence[tuple[str, bytes, bytes, bool]]) -> Iterator[str]:
    for node, share, digest, counted in shares:
        try:
            decode_share(share, campaign)
        except DocumentError as error:
            yield f"the share of {node!r}: {error}"
        if hashlib.sha256(share).digest() != digest:
            yield f"the share of {node!r}: its bytes are not those of its digest"
        if not counted:
            yield f"the share of {node!r}: it is not among the shares that were sent"


class Store(NodeShares, Rights, Published, Counting):
    """A store, of which each database adds how it counts; :mod:`ldp_aggregator.store.contract` says what all promise.

    All methods may raise StoreError.
    """

    _UNREADABLE: ClassVar[tuple[type[Exception], ...]]
    """What the database raises where what is stored of a campaign cannot be read."""

    async def check(self) -> list[Damage]:
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

    async def _stored_ids(self, db: SqlConnection, number: int) -> int:
        raise NotImplementedError

    async def _problems_of_ids(self, db: SqlConnection, row: CampaignRow) -> list[str]:
        raise NotImplementedError

    async def _findings(self, db: SqlConnection) -> list[Damage]:
        findings: list[Damage] = []
        for row in await campaigns.rows(db):
            try:
                async with db.savepoint():
                    document, parts = await campaigns.document(db, row.id), await campaigns.parts(db, row.number)
                    ids = await self._stored_ids(db, row.number) if row.life.sealed is None else None
                    problems = [*check_campaign(row, document, parts, ids, await stored_shares(db, row.number))]
                    problems += await self._problems_of_ids(db, row)
            except self._UNREADABLE as error:
                problems = [f"what is stored of it cannot be read: {error}"]
            findings += [Damage(row.id, problem) for problem in problems]
        return findings
