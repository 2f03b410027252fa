"""The statements of the PostgreSQL store about shares of nodes. Each runs inside a transaction of the store's.

A share is put or withdrawn under the shared lock of its campaign, so that none changes once it is closed, and under a
lock on its token's row, so that a token that is being revoked or rotated is revoked before or after, never meanwhile.
"""

from __future__ import annotations

import hashlib
import os
from datetime import datetime
from typing import Any

from ldp_aggregator.store.contract import (
    REVOKED,
    SALT_BYTES,
    TAKES_REPORTS,
    Life,
    ShareDigests,
    Shares,
    StoredShare,
    StoredToken,
    StoreError,
)
from ldp_aggregator.store.postgres import releases
from ldp_aggregator.store.postgres import statements as sql

Connection = sql.Connection


async def put(db: Connection, campaign_id: str, node: str, share: bytes, now: datetime) -> str | None:
    row = await sql.row(db, campaign_id)
    may_decide = row["salt"] is None and row["max_reports"] is None
    # What decides a campaign's kind waits for the uploads under way, and they wait for it.
    number, salt, refused = await _lock(db, row["number"], node, now, shared=not may_decide)
    decides = may_decide and salt is None and not await sql.reports(db, number)
    if salt is None and not decides:
        refused = TAKES_REPORTS
    if refused is None:
        if decides:
            await db.execute("UPDATE campaigns SET salt = $1 WHERE number = $2", os.urandom(SALT_BYTES), number)
        # A repeated share keeps its time: nothing has changed.
        await db.execute(
            "INSERT INTO shares (campaign, node, share, digest, received) VALUES ($1, $2, $3, $4, $5) "
            "ON CONFLICT (campaign, node) DO UPDATE SET share = excluded.share, digest = excluded.digest, "
            "received = excluded.received WHERE shares.digest <> excluded.digest",
            number,
            node,
            share,
            hashlib.sha256(share).digest(),
            now,
        )
        await releases.keep(db, number, node, share)
    return refused


async def withdraw(db: Connection, campaign_id: str, node: str, now: datetime) -> str | None:
    number, salt, refused = await _lock(db, (await sql.row(db, campaign_id))["number"], node, now, shared=True)
    if salt is None:
        return TAKES_REPORTS
    if refused is None:
        await db.execute("DELETE FROM shares WHERE campaign = $1 AND node = $2", number, node)
    return refused


async def withdraw_node(db: Connection, node: str) -> int:
    return len(await db.fetch("DELETE FROM shares WHERE node = $1 RETURNING campaign", node))


async def shares(db: Connection, campaign_id: str) -> Shares | None:
    row = await sql.row(db, campaign_id)
    if row["salt"] is None:
        return None
    found = await db.fetch("SELECT node, share, received FROM shares WHERE campaign = $1 ORDER BY node", row["number"])
    members = tuple(StoredShare(**one) for one in found)
    return Shares(row["salt"], members, await releases.read(db, row["number"]))


async def digests(db: Connection, campaign_id: str) -> ShareDigests:
    number = (await sql.row(db, campaign_id))["number"]
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


async def rotate(db: Connection, name: str, token: StoredToken, now: datetime) -> bool:
    if not await revoke(db, name, now):
        # Another try of a rotation whose commit was lost on the way back finds it done.
        return await db.fetchval("SELECT true FROM tokens WHERE digest = $1", token.digest) is True
    await add_token(db, token)
    await db.execute("UPDATE shares SET node = $1 WHERE node = $2", token.name, name)
    await releases.rename(db, name, token.name)
    return True


async def revoke(db: Connection, name: str, now: datetime) -> bool:
    revoked: bool | None = await db.fetchval(
        "UPDATE tokens SET revoked = $2 WHERE name = $1 AND revoked IS NULL RETURNING true", name, now
    )
    return bool(revoked)


async def add_token(db: Connection, token: StoredToken) -> None:
    added = await db.fetchval(
        "INSERT INTO tokens (name, scope, digest, created) VALUES ($1, $2, $3, $4) "
        "ON CONFLICT (name) DO NOTHING RETURNING name",
        token.name,
        token.scope,
        token.digest,
        token.created,
    )
    if added is None:
        raise StoreError(f"a token with the name {token.name!r} exists already; choose another name")


async def _lock(
    db: Connection, number: int, node: str, now: datetime, *, shared: bool
) -> tuple[int, bytes | None, str | None]:
    """The campaign's number and salt, and the code that refuses a change of the node's share."""
    await sql.lock(db, number, shared=shared)
    in_use = await db.fetchval("SELECT true FROM tokens WHERE name = $1 AND revoked IS NULL FOR SHARE", node)
    # Read after the lock: a campaign that was being closed is closed now.
    row: Any = await db.fetchrow("SELECT opens, closes, closed, salt FROM campaigns WHERE number = $1", number)
    refused = Life(row["opens"], row["closes"], row["closed"]).refusal(now) if in_use else REVOKED
    return number, row["salt"], refused
