"""Shares of nodes.

Putting one takes a lock on the campaign that others share (closing waits for it) and locks the token's row (a
revocation happens before or after, never during).
"""

from __future__ import annotations

import hashlib
import os
from datetime import datetime

from ldp_aggregator.node_statistics import Releases, has_other_rows
from ldp_aggregator.store.contract import SALT_BYTES, ShareDigests, Shares, StoredShare, StoredToken
from ldp_aggregator.store.decisions import CampaignRow, refuse_node, takes_reports
from ldp_aggregator.store.sql import campaigns
from ldp_aggregator.store.sql.rights import named_token
from ldp_aggregator.store.sql.tables import SqlConnection, reading, writing


class NodeShares(campaigns.Campaigns):
    """Shares of nodes."""

    async def put_share(self, campaign_id: str, node: str, share: bytes, *, token: str | None = None) -> str | None:
        """Keep a node's share durably, in place of the one it sent before; the same share again changes nothing.

        Returns the code that refuses it, None where it is kept. ``token`` is the name of the token that was shown,
        by default the node's first; the bytes are those of a share that was decoded.
        """
        if await self._may_decide(campaign_id):
            await self._claim(campaign_id)
        return await self._put_share(campaign_id, node, share, token or node)

    @reading
    async def _may_decide(self, db: SqlConnection, campaign_id: str) -> bool:
        """A share may be the first thing that a campaign takes, and decide what it takes."""
        return await _is_open(db, await campaigns.row(db, campaign_id))

    @writing
    async def _put_share(self, db: SqlConnection, campaign_id: str, node: str, share: bytes, token: str) -> str | None:
        # What decides a campaign's kind waits for the uploads under way, and they wait for it.
        alone = await _is_open(db, await campaigns.row(db, campaign_id))
        row = await campaigns.row(db, campaign_id, campaigns.ALONE if alone else campaigns.TOGETHER)
        counted = await campaigns.reports(db, row.number) if row.may_become_federated else 0
        now = await db.now()
        shown = await named_token(db, token, "FOR SHARE")
        takes_shares = not takes_reports(row.salt, row.max_reports, counted)
        refused = refuse_node(takes_shares, row.life, now, token_in_use=_has_say(shown, node, now))
        if refused is None:
            if row.salt is None:
                await campaigns.put(db, row, "salt", os.urandom(SALT_BYTES))
            # A repeated share keeps its time: nothing has changed.
            await db.execute(
                "INSERT INTO shares (campaign, node, share, digest, received) VALUES ($1, $2, $3, $4, $5) "
                "ON CONFLICT (campaign, node) DO UPDATE SET share = excluded.share, digest = excluded.digest, "
                "received = excluded.received WHERE shares.digest <> excluded.digest",
                *(row.number, node, share, hashlib.sha256(share).digest(), now),
            )
            await _count_release(db, row.number, node, share)
        return refused

    @writing
    async def withdraw_share(
        self, db: SqlConnection, campaign_id: str, node: str, *, token: str | None = None
    ) -> str | None:
        """Drop a node's share, durably; None also where it has none, else the code that refuses it."""
        row = await campaigns.row(db, campaign_id, campaigns.TOGETHER)
        now = await db.now()
        shown = await named_token(db, token or node, "FOR SHARE")
        refused = refuse_node(row.salt is not None, row.life, now, token_in_use=_has_say(shown, node, now))
        if refused is None:
            await db.execute("DELETE FROM shares WHERE campaign = $1 AND node = $2", row.number, node)
        return refused

    @writing
    async def withdraw_node(self, db: SqlConnection, node: str) -> int:
        """Drop a node's shares from all campaigns, closed ones too; returns how many there were."""
        return await db.execute("DELETE FROM shares WHERE node = $1", node)

    @reading
    async def shares(self, db: SqlConnection, campaign_id: str) -> Shares | None:
        """The shares of a federated campaign, None for one that takes reports."""
        row = await campaigns.row(db, campaign_id)
        if row.salt is None:
            return None
        found = await db.fetch("SELECT node, share, received FROM shares WHERE campaign = $1 ORDER BY node", row.number)
        return Shares(row.salt, tuple(StoredShare(**one) for one in found), await _releases(db, row.number))

    @reading
    async def share_digests(self, db: SqlConnection, campaign_id: str) -> ShareDigests:
        """Return what tells whether anything has changed."""
        number = (await campaigns.row(db, campaign_id)).number
        found = {node: digest for node, _, digest, _ in await stored_shares(db, number)}
        return tuple((node, found.get(node), sent) for node, sent in await _releases(db, number))


def _has_say(shown: StoredToken | None, node: str, now: datetime) -> bool:
    """Tell whether a token may still change a node's share: it may have been revoked since its request began."""
    return shown is not None and shown.is_in_use(now) and shown.node == node


async def _is_open(db: SqlConnection, row: CampaignRow) -> bool:
    """It is not decided what a campaign takes."""
    return row.may_become_federated and not await campaigns.reports(db, row.number)


async def _count_release(db: SqlConnection, number: int, node: str, share: bytes) -> None:
    """Count a share once, whatever became of it since. A node's first one has nothing to differ from.

    Of two first ones that meet, neither sees the other, and neither is believed to be of other rows.
    """
    sent = await db.fetchrow("SELECT 1 FROM releases WHERE campaign = $1 AND node = $2 LIMIT 1", number, node)
    await db.execute(
        "INSERT INTO releases (campaign, node, digest, other_rows) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING",
        *(number, node, hashlib.sha256(share).digest(), int(has_other_rows(share) and sent is not None)),
    )


async def _releases(db: SqlConnection, number: int) -> tuple[tuple[str, Releases], ...]:
    """Count the shares of every node that ever sent one to the campaign, sorted."""
    found = await db.fetch(
        "SELECT node, count(*) AS sent, CAST(sum(other_rows) AS bigint) AS other_rows FROM releases "
        "WHERE campaign = $1 GROUP BY node ORDER BY node",
        number,
    )
    return tuple((node, Releases(sent - other_rows - 1, other_rows)) for node, sent, other_rows in found)


async def stored_shares(db: SqlConnection, number: int) -> list[tuple[str, bytes, bytes, bool]]:
    """Node, share and digest of every row, as they stand there, and whether the share is counted."""
    rows = await db.fetch(
        "SELECT node, share, digest, EXISTS (SELECT 1 FROM releases WHERE releases.campaign = shares.campaign "
        "AND releases.node = shares.node AND releases.digest = shares.digest) AS counted "
        "FROM shares WHERE campaign = $1 ORDER BY node",
        number,
    )
    return [(node, share, digest, bool(counted)) for node, share, digest, counted in rows]
