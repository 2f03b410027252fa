"""Where campaigns, reports, models and tokens are kept: one contract, SQLite or PostgreSQL behind it."""

from protocols.names import loaded_on_use

with loaded_on_use(globals()):
    from ldp_aggregator.store.consistency import Finding as Finding
    from ldp_aggregator.store.contract import CampaignState as CampaignState
    from ldp_aggregator.store.contract import Life as Life
    from ldp_aggregator.store.contract import Outcome as Outcome
    from ldp_aggregator.store.contract import PublishedModel as PublishedModel
    from ldp_aggregator.store.contract import RefusedError as RefusedError
    from ldp_aggregator.store.contract import StoreError as StoreError
    from ldp_aggregator.store.contract import Submission as Submission
    from ldp_aggregator.store.contract import UnknownCampaignError as UnknownCampaignError
    from ldp_aggregator.store.location import open_store as open_store
    from ldp_aggregator.store.rights import SCOPES as SCOPES
    from ldp_aggregator.store.rights import Act as Act
    from ldp_aggregator.store.rights import StoredToken as StoredToken
    from ldp_aggregator.store.sql.store import Store as Store
    from ldp_aggregator.store.sqlite.store import SqliteStore as SqliteStore
