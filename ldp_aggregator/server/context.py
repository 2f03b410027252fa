"""What handlers share: the store, the queue, the settings and the documents that cannot change."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from ldp_aggregator.server.derived_models import FederatedModels
from ldp_aggregator.server.ingest import Ingest
from ldp_aggregator.server.metrics import Metrics
from ldp_aggregator.server.upload_access import UploadAccess
from ldp_aggregator.server.uploads.admission import Admission
from ldp_aggregator.service.settings import Settings
from ldp_aggregator.store.contract import CampaignStore, Store, StoreError, UnknownCampaignError
from protocols import Campaign
from protocols.document.campaign import document_id

DOCUMENT_BYTES: Final = 32 << 20
"""Documents in memory: as many as fit, whoever asks for however many campaigns."""
PARSED_BYTES: Final = 4 << 20
"""Documents whose campaigns are in memory, parsed, which takes several times as much."""
FEDERATED_IDS: Final = 4096
ID_PATTERN: Final = re.compile(r"[A-Za-z0-9_-]{43}")
"""A campaign id: 32 bytes in base64url without padding."""

Value = TypeVar("Value")


class SizedCache(Generic[Value]):
    """The values that were asked for last, by key, as long as their sizes add up to at most ``most``; one at least."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: dict[str, tuple[Value, int]] = {}
        self._size = 0

    def get(self, key: str) -> Value | None:
        found = self._kept.pop(key, None)
        if found is None:
            return None
        self._kept[key] = found  # At the end: the one that goes last.
        return found[0]

    def put(self, key: str, value: Value, size: int) -> None:
        self._size += size - self._kept.pop(key, (None, 0))[1]
        self._kept[key] = value, size
        while self._size > self._most and len(self._kept) > 1:
            oldest = next(iter(self._kept))
            self._size -= self._kept.pop(oldest)[1]


class CampaignCache:
    """Documents and campaigns by id. They never change, so they may be kept; whether one is open is never asked here.

    Who reads a document gets its bytes; only who counts or estimates has it parsed, in a thread and once for all who
    wait for it.
    """

    def __init__(
        self, store: CampaignStore, *, document_bytes: int = DOCUMENT_BYTES, parsed_bytes: int = PARSED_BYTES
    ) -> None:
        self._store = store
        self._documents: SizedCache[bytes] = SizedCache(document_bytes)
        self._parsed: SizedCache[Campaign] = SizedCache(parsed_bytes)
        self._parsing: dict[str, asyncio.Task[Campaign]] = {}
        self._federated: set[str] = set()

    async def document(self, campaign_id: str) -> bytes:
        """The document, byte for byte. Raises UnknownCampaignError, and StoreError where it is damaged."""
        document = self._documents.get(campaign_id)
        if document is None:
            if not ID_PATTERN.fullmatch(campaign_id):
                raise UnknownCampaignError(campaign_id)
            document = await self._store.document(campaign_id)
            if document_id(document) != campaign_id:  # Caches on the way would keep it for a year.
                raise StoreError(f"the document of campaign {campaign_id} is damaged; 'ldp-aggregator fsck' tells more")
            self._documents.put(campaign_id, document, len(document))
        return document

    async def get(self, campaign_id: str) -> Campaign:
        """Raises what :meth:`document` raises."""
        campaign = self._parsed.get(campaign_id)
        if campaign is not None:
            return campaign
        parsing = self._parsing.get(campaign_id)
        if parsing is None:
            parsing = self._parsing[campaign_id] = asyncio.create_task(self._parse(campaign_id))
            parsing.add_done_callback(lambda _: self._parsing.pop(campaign_id))
        return await asyncio.shield(parsing)  # Who hangs up leaves it to the others.

    async def _parse(self, campaign_id: str) -> Campaign:
        document = await self.document(campaign_id)
        campaign = await asyncio.to_thread(Campaign.parse, document, campaign_id)
        self._parsed.put(campaign_id, campaign, len(document))
        return campaign

    def known(self, campaign_id: str) -> Campaign | None:
        """A campaign that was asked for before, where it is still kept."""
        return self._parsed.get(campaign_id)

    async def is_federated(self, campaign_id: str) -> bool:
        """Whether it takes shares of nodes; once it does, it always will. Raises UnknownCampaignError."""
        if campaign_id in self._federated:
            return True
        if not (await self._store.terms(campaign_id)).federated:
            return False
        if len(self._federated) >= FEDERATED_IDS:
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
    access: UploadAccess
    leaving: asyncio.Event
    """Set once this instance wants no more requests."""
    admission: Admission
