"""Where campaigns, reports, models and tokens are kept: one contract, SQLite or PostgreSQL behind it."""

from ldp_aggregator.store.campaign_state import CampaignState, Life
from ldp_aggregator.store.consistency import Finding
from ldp_aggregator.store.contract import (
    SCOPES,
    Outcome,
    PublishedModel,
    Store,
    StoredToken,
    StoreError,
    Submission,
    UnknownCampaignError,
)
from ldp_aggregator.store.location import open_store
from ldp_aggregator.store.sqlite.store import SqliteStore

__all__ = [
    "SCOPES",
    "CampaignState",
    "Finding",
    "Life",
    "Outcome",
    "PublishedModel",
    "SqliteStore",
    "Store",
    "StoreError",
    "StoredToken",
    "Submission",
    "UnknownCampaignError",
    "open_store",
]
