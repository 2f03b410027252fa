"""What handlers share: the store, the queue, the settings and the documents that cannot change."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from ldp_aggregator.server.derived_models import FederatedModels
from ldp_aggregator.server.ingest import Ingest
from ldp_aggregator.server.metrics import Metrics
from ldp_aggregator.server.uploads.admission import Admission
from ldp_aggregator.service.settings import Settings
from ldp_aggregator.store.contract import CampaignStore, Store, UnknownCampaignError
from protocols import Campaign

CACHED_CAMPAIGNS: Final = 64
ID_PATTERN: Final = re.compile(r"[A-Za-z0-9_-]{43}")
"""A campaign id: 32 bytes in base64url without padding."""


class CampaignCache:
    """Parsed campaigns by id. They never change, so they may be kept; whether one is open is never asked here."""

    def __init__(self, store: CampaignStore) -> None:
        self._store = store
        self._parsed: dict[str, Campaign] = {}
        self._federated: set[str] = set()

    async def get(self, campaign_id: str) -> Campaign:
        """Raises UnknownCampaignError."""
        campaign = self._parsed.get(campaign_id)
        if campaign is None:
            if not ID_PATTERN.fullmatch(campaign_id):
                raise UnknownCampaignError(campaign_id)
            campaign = Campaign.parse(await self._store.document(campaign_id), campaign_id)
            if len(self._parsed) >= CACHED_CAMPAIGNS:
                del self._parsed[next(iter(self._parsed))]
            self._parsed[campaign_id] = campaign
        return campaign

    def known(self, campaign_id: str) -> Campaign | None:
        """A campaign that was asked for before, where it is still kept."""
        return self._parsed.get(campaign_id)

    async def is_federated(self, campaign_id: str) -> bool:
        """Whether it takes shares of nodes; once it does, it always will. Raises UnknownCampaignError."""
        if campaign_id in self._federated:
            return True
        if not (await self._store.state(campaign_id)).federated:
            return False
        if len(self._federated) >= CACHED_CAMPAIGNS:
            self._federated.clear()
        self._federated.add(campaign_id)
        return True


@dataclass(frozen=True, slots=True)
class Context:
    """Passed to every handler."""

    store: Store
    ingest: Ingest
    metrics: Metrics
    settings: Settings
    campaigns: CampaignCache
    federated_models: FederatedModels
    admission: Admission
