"""The statements of the PostgreSQL store about published models."""

from __future__ import annotations

from datetime import datetime

from ldp_aggregator.store.contract import PublishedModel
from ldp_aggregator.store.postgres import campaigns
from ldp_aggregator.store.postgres.sessions import Connection


async def publish(db: Connection, campaign_id: str, document: str, now: datetime) -> PublishedModel:
    number = (await campaigns.locked(db, await campaigns.row(db, campaign_id), campaigns.IN_TURN)).number
    version = await db.fetchval(
        "INSERT INTO models (campaign, version, document, created) "
        "SELECT $1, greatest(coalesce(max(version), 0), (SELECT version_floor FROM origin)) + 1, $2, $3 FROM models "
        "WHERE campaign = $1 RETURNING version",
        number,
        document,
        now,
    )
    return PublishedModel(version, document, now)


async def model(db: Connection, campaign_id: str, version: int | None) -> PublishedModel | None:
    found = await db.fetchrow(
        "SELECT version, document, created FROM models WHERE campaign = $1 "
        "AND version = coalesce($2, version) ORDER BY version DESC LIMIT 1",
        (await campaigns.row(db, campaign_id)).number,
        version,
    )
    return found and PublishedModel(**found)
