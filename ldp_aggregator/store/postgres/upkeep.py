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
                findings += await _audit(db, row)
        except (asyncpg.SyntaxOrAccessError, asyncpg.DataCorruptedError) as error:  # noqa: PERF203 - the next may be sound
            findings.append(unreadable(row.id, error))
    return findings


async def _audit(db: Connection, row: CampaignRow) -> list[Finding]:
    kept = await ids.stored(db, row.number)
    sealed = row.life.sealed is not None
    stored = StoredCampaign(
        row.id,
        await campaigns.document(db, row.id),
        row.salt,
        await campaigns.parts(db, row.number),
        None if sealed else kept,
        row.overlap - await campaigns.moved(db, row.number),
        await shares.stored(db, row.number),
    )
    findings = audit_campaign(stored)
    if sealed and kept:
        findings.append(Finding(row.id, f"it is sealed, and {kept} ids are left; 'campaign seal' drops them"))
    return findings
