"""The statements of the PostgreSQL store that look after it: a write that changes nothing, and the audit."""

from __future__ import annotations

import asyncpg

from ldp_aggregator.store.consistency import Finding, StoredCampaign, audit_campaign, unreadable
from ldp_aggregator.store.decisions import CampaignRow
from ldp_aggregator.store.postgres import campaigns, ids, shares
from ldp_aggregator.store.postgres.sessions import Connection


async def heartbeat(db: Connection) -> None:
    """Write a row as it is. A standby refuses, and so does a database that its provider made read-only."""
    await db.execute("UPDATE schema_version SET version = version")


async def audit(db: Connection) -> list[Finding]:
    """Everything that is wrong."""
    findings: list[Finding] = []
    for row in await campaigns.rows(db):
        try:
            async with db.transaction():
                findings += audit_campaign(await _stored(db, row))
        except (asyncpg.SyntaxOrAccessError, asyncpg.DataCorruptedError) as error:  # noqa: PERF203 - the next may be sound
            findings.append(unreadable(row.id, error))
    return findings


async def _stored(db: Connection, row: CampaignRow) -> StoredCampaign:
    kept = await ids.stored(db, row.number) if row.life.sealed is None else None
    return StoredCampaign(
        row.id,
        await campaigns.document(db, row.id),
        row.salt,
        await campaigns.parts(db, row.number),
        kept,
        row.overlap,
        await shares.stored(db, row.number),
    )
