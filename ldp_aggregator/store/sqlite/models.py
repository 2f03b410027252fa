"""The statements of the SQLite store about published models."""

from __future__ import annotations

import sqlite3
from datetime import datetime

from ldp_aggregator.store.clock import from_text, to_text
from ldp_aggregator.store.contract import PublishedModel
from ldp_aggregator.store.sqlite import campaigns


def publish(db: sqlite3.Connection, campaign_id: str, document: str, now: datetime) -> PublishedModel:
    version = db.execute(
        "INSERT INTO models (campaign, version, document, created) "
        "SELECT ?1, max(coalesce(max(version), 0), (SELECT version_floor FROM origin)) + 1, ?2, ?3 FROM models "
        "WHERE campaign = ?1 RETURNING version",
        (campaigns.row(db, campaign_id).number, document, to_text(now)),
    ).fetchone()[0]
    return PublishedModel(version, document, now)


def model(db: sqlite3.Connection, campaign_id: str, version: int | None) -> PublishedModel | None:
    found = db.execute(
        "SELECT version, document, created FROM models WHERE campaign = ?1 AND version = coalesce(?2, version) "
        "ORDER BY version DESC LIMIT 1",
        (campaigns.row(db, campaign_id).number, version),
    ).fetchone()
    return found and PublishedModel(found["version"], found["document"], from_text(found["created"]))
