"""Shares of nodes.

Putting one takes a lock on the campaign that others share (closing waits for it) and locks the token's row (a
revocation happens before or after, never during).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from ldp_aggregator.node_statistics import Releases, has_other_rows
from ldp_aggregator.store.contract import REPLACED, SALT_BYTES, ShareDigests, Shares, StoredShare, StoredToken
from ldp_aggregator.store.decisions import CampaignRow, refuse_node, takes_reports
from ldp_aggregator.store.sql import campaigns
from ldp_aggregator.store.sql.checks import digest_of, insert, sound
from ldp_aggregator.store.sql.rights import named_token
from ldp_aggregator.store.sql.tables import Row, SqlConnection, reading, writing


class NodeShares(campaigns.Campaigns):
    """Shares of nodes."""

    async def put_share(
        self,
        campaign_id: str,
        node: str,
        share: bytes,
        *,
        token: str | None = None,
        most_replacements: int | None = None,
    ) -> str | None:
        """Keep a node's share durably, in place of the one it sent before; the same share again changes nothing.

        Returns the code that refuses it, None if it is kept. ``token`` is the name of the token that was shown,
        by default the node's first; the bytes are those of a share that was decoded. The document allows
        ``most_replacements``.
        """
        if await self._may_decide(campaign_id):
            await self._claim(campaign_id)
        return await self._put_share(campaign_id, node, share, token or node, most_replacements)

    @reading
    async def _may_decide(self, db: SqlConnection, campaign_id: str) -> bool:
        """A share may be the first thing that a campaign takes, and decide what it takes."""
        return await _is_open(db, await campaigns.row(db, campaign_id))

    @writing
    async def _put_share(
        self, db: SqlConnection, campaign_id: str, node: str, share: bytes, token: str, most: int | None
    ) -> str | None:
        # What decides a campaign's kind waits for the uploads under way, and they wait for it. So does a count.
        alone = most is not None or await _is_open(db, await campaigns.row(db, campaign_id))
        row = await campaigns.row(db, campaign_id, campaigns.ALONE if alone else campaigns.TOGETHER)
        counted = await campaigns.reports(db, row) if row.may_become_federated else 0
        moment = await db.moment()
        now = moment.now
        holder = await named_token(db, token, "FOR SHARE")
        takes_shares = not takes_reports(row.salt, row.max_reports, counted)
        refused = refuse_node(takes_shares, row.life, moment, token_in_use=_has_say(holder, node, now))
        if refused is None and most is not None and await _replacements(db, row, node, share) > most:
            refused = REPLACED
        if refused is None:
            if row.salt is None:
                await campaigns.put(db, row, salt=os.urandom(SALT_BYTES))
            # A repeated share keeps its time: nothing has changed.
            values = {"node": node, "received": now, "digest": digest_of(share), "share": share}
            replaced = ", ".join(f"{name} = excluded.{name}" for name in (*values, "checked"))
            more = f"ON CONFLICT (campaign, node) DO UPDATE SET {replaced} WHERE shares.digest <> excluded.digest"
            await insert(db, "shares", values, (row.number, row.id), more)
            await _count_release(db, row, node, share)
        return refused

    @writing
    async def withdraw_share(
        self, db: SqlConnection, campaign_id: str, node: str, *, token: str | None = None
    ) -> str | None:
        """Drop a node's share, durably; None also if it has none, else the code that refuses it."""
        row = await campaigns.row(db, campaign_id, campaigns.TOGETHER)
        moment = await db.moment()
        holder = await named_token(db, token or node, "FOR SHARE")
        refused = refuse_node(row.salt is not None, row.life, moment, token_in_use=_has_say(holder, node, moment.now))
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
        found = [sound("shares", one, row.id) for one in await stored_shares(db, row.number)]
        members = tuple(StoredShare(one["node"], one["share"], one["received"]) for one in found)
        return Shares(row.salt, members, await _releases(db, row))

    @reading
    async def share_digests(self, db: SqlConnection, campaign_id: str) -> ShareDigests:
        """A mark that changes whenever a share does."""
        row = await campaigns.row(db, campaign_id)
        columns = "node, received, digest, checked"
        shares = await db.fetch(f"SELECT {columns} FROM shares WHERE campaign = $1", row.number)
        found = {one["node"]: one["digest"] for one in shares if sound("shares", one, row.id)}
        return tuple((node, found.get(node), sent) for node, sent in await _releases(db, row))


def _has_say(token: StoredToken | None, node: str, now: datetime) -> bool:
    """Tell whether a token may still change a node's share: it may have been revoked since its request began."""
    return token is not None and token.is_in_use(now) and token.node == node


async def _is_open(db: SqlConnection, row: CampaignRow) -> bool:
    """It is not decided what a campaign takes."""
    return row.may_become_federated and not await campaigns.reports(db, row)


async def _count_release(db: SqlConnection, row: CampaignRow, node: str, share: bytes) -> None:
    """Count a share once, whatever became of it since. A node's first one has nothing to differ from.

    Of two first ones that meet, neither sees the other, and neither is believed to be of other rows.
    """
    sent = await db.fetchrow("SELECT 1 FROM releases WHERE campaign = $1 AND node = $2 LIMIT 1", row.number, node)
    other_rows = int(has_other_rows(share) and sent is not None)
    await insert_release(db, row, {"node": node, "digest": digest_of(share), "other_rows": other_rows})


async def _replacements(db: SqlConnection, row: CampaignRow, node: str, share: bytes) -> int:
    """Count the replacements of a node once a share is counted; 0 if it was before, or is of other rows."""
    sent = {one["digest"]: one["other_rows"] for one in await sent_shares(db, row) if one["node"] == node}
    if digest_of(share) in sent or (sent and has_other_rows(share)):
        return 0
    return len(sent) - sum(map(int, sent.values()))


async def insert_release(db: SqlConnection, row: CampaignRow, values: Mapping[str, Any]) -> None:
    """Write down a share that was sent; one that is known stays as it is."""
    await insert(db, "releases", values, (row.number, row.id), "ON CONFLICT DO NOTHING")


async def sent_shares(db: SqlConnection, row: CampaignRow) -> list[Row]:
    """Every share that was ever sent to a campaign: node, digest, and whether it is of other rows; sorted by node."""
    columns = "node, digest, other_rows, checked"
    found = await db.fetch(f"SELECT {columns} FROM releases WHERE campaign = $1 ORDER BY node", row.number)
    return [sound("releases", one, row.id) for one in found]


async def _releases(db: SqlConnection, row: CampaignRow) -> tuple[tuple[str, Releases], ...]:
    """Count the shares of every node that ever sent one to the campaign, sorted."""
    found: dict[str, list[int]] = {}
    for one in await sent_shares(db, row):
        found.setdefault(one["node"], []).append(one["other_rows"])
    return tuple((node, Releases(len(of_one) - sum(of_one) - 1, sum(of_one))) for node, of_one in found.items())


async def stored_shares(db: SqlConnection, number: int) -> Sequence[Row]:
    """Every row, as it stands there."""
    columns = "node, received, digest, checked, share"
    return await db.fetch(f"SELECT {columns} FROM shares WHERE campaign = $1 ORDER BY node", number)
