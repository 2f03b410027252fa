"""Where campaigns, reports, models and tokens are kept: one contract, SQLite or PostgreSQL behind it."""

from ldp_aggregator.store.consistency import Finding
from ldp_aggregator.store.contract import (
    CampaignState,
    Life,
    Outcome,
    PublishedModel,
    RefusedError,
    StoreError,
    Submission,
    UnknownCampaignError,
)
from ldp_aggregator.store.location import open_store
from ldp_aggregator.store.rights import SCOPES, Act, StoredToken
from ldp_aggregator.store.sql.store import Store
from ldp_aggregator.store.sqlite.store import SqliteStore

__all__ = [
    "SCOPES",
    "Act",
    "CampaignState",
    "Finding",
    "Life",
    "Outcome",
    "PublishedModel",
    "RefusedError",
    "SqliteStore",
    "Store",
    "StoreError",
    "StoredToken",
    "Submission",
    "UnknownCampaignError",
    "open_store",
]
