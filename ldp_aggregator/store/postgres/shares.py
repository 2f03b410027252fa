"""The statements of the PostgreSQL store about shares of nodes. Each runs inside a transaction of the store's.

A share is put or withdrawn under a lock of its campaign that others share, so that none changes once it is closed, and
under a lock on its token's row, so that one that is being revoked or rotated is so before or after, never meanwhile.
"""

from __future__ import annotations

import hashlib
import os
from datetime import datetime

from ldp_aggregator.store.contract import SALT_BYTES, ShareDigests, Shares, StoredShare
from ldp_aggregator.store.decisions import decide_share, has_say, refuse_withdrawal
from ldp_aggregator.store.postgres import campaigns, releases
from ldp_aggregator.store.postgres.rights import tokens
from ldp_aggregator.store.postgres.sessions import Connection


async def may_decide(db: Connection, campaign_id: str) -> bool:
    """Whether a share may be the first thing that a campaign takes, and decide what it takes."""
    row = await campaigns.row(db, campaign_id)
    return row.may_become_federated and not await campaigns.has_reports(db, row.number)


async def put(db: Connection, campaign_id: str, node: str, share: bytes, token: str, now: datetime) -> str | None:
    row = await campaigns.row(db, campaign_id)
    # What decides a campaign's kind waits for the uploads under way, and they wait for it.
    alone = row.may_become_federated and not await campaigns.has_reports(db, row.number)
    row = await campaigns.locked(db, row, campaigns.ALONE if alone else campaigns.TOGETHER)
    counted = int(await campaigns.has_reports(db, row.number)) if row.may_become_federated else 0
    decision = decide_share(row, counted, now, token_in_use=has_say(await tokens.locked(db, token), node, now))
    if decision.becomes_federated:
        await db.execute("UPDATE campaigns SET salt = $1 WHERE number = $2", os.urandom(SALT_BYTES), row.number)
    if decision.refused is None:
        # A repeated share keeps its time: nothing has changed.
        await db.execute(
            "INSERT INTO shares (campaign, node, share, digest, received) VALUES ($1, $2, $3, $4, $5) "
            "ON CONFLICT (campaign, node) DO UPDATE SET share = excluded.share, digest = excluded.digest, "
            "received = excluded.received WHERE shares.digest <> excluded.digest",
            row.number,
            node,
            share,
            hashlib.sha256(share).digest(),
            now,
        )
        await releases.keep(db, row.number, node, share)
    return decision.refused


async def withdraw(db: Connection, campaign_id: str, node: str, token: str, now: datetime) -> str | None:
    row = await campaigns.locked(db, await campaigns.row(db, campaign_id), campaigns.TOGETHER)
    refused = refuse_withdrawal(row, now, token_in_use=has_say(await tokens.locked(db, token), node, now))
    if refused is None:
        await db.execute("DELETE FROM shares WHERE campaign = $1 AND node = $2", row.number, node)
    return refused


async def withdraw_node(db: Connection, node: str) -> int:
    return len(await db.fetch("DELETE FROM shares WHERE node = $1 RETURNING campaign", node))


async def kept(db: Connection, campaign_id: str) -> Shares | None:
    row = await campaigns.row(db, campaign_id)
    if row.salt is None:
        return None
    found = await db.fetch("SELECT node, share, received FROM shares WHERE campaign = $1 ORDER BY node", row.number)
    members = tuple(StoredShare(**one) for one in found)
    return Shares(row.salt, members, await releases.read(db, row.number))


async def digests(db: Connection, campaign_id: str) -> ShareDigests:
    number = (await campaigns.row(db, campaign_id)).number
    found = dict(await db.fetch("SELECT node, digest FROM shares WHERE campaign = $1", number))
    return tuple((node, found.get(node), sent) for node, sent in await releases.read(db, number))


async def stored(db: Connection, number: int) -> list[tuple[str, bytes, bytes, bool]]:
    """Node, share and digest of every row, as they stand there, and whether the share is counted."""
    rows = await db.fetch(
        "SELECT node, share, digest, EXISTS (SELECT 1 FROM releases WHERE releases.campaign = shares.campaign "
        "AND releases.node = shares.node AND releases.digest = shares.digest) "
        "FROM shares WHERE campaign = $1 ORDER BY node",
        number,
    )
    return [tuple(row) for row in rows]
