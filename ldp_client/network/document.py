"""A campaign's document: at hand, or fetched; believed only as far as it was verified."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from ldp_client.errors import NotFetchedError
from ldp_client.network.aggregator import Aggregator, read_campaign
from protocols import DocumentError

if TYPE_CHECKING:
    from ldp_client.network.cache import Cache
    from protocols import Campaign


class Document:
    """One campaign's, in memory, in the cache, or at the aggregator."""

    def __init__(self, aggregator: Aggregator, cache: Cache) -> None:
        self._aggregator = aggregator
        self._cache = cache
        self._key = f"campaign/{aggregator.campaign_id}"
        self._campaign: Campaign | None = None

    def load(self, document: bytes) -> Campaign:
        """The campaign of these bytes, from now on. Raises DocumentError."""
        self._campaign = read_campaign(document, self._aggregator.campaign_id)
        return self._campaign

    def at_hand(self) -> Campaign | None:
        """The campaign from memory or the cache."""
        if self._campaign is None and (stored := self._cache.get(self._key)) is not None:
            # A stored document that was damaged is fetched again.
            with contextlib.suppress(DocumentError):
                self.load(stored)
        return self._campaign

    def needed(self) -> Campaign:
        """The same. Raises NotFetchedError where there is none."""
        campaign = self.at_hand()
        if campaign is None:
            raise NotFetchedError
        return campaign

    def fetched(self) -> Campaign:
        """The campaign at hand, or from the aggregator. Raises DocumentError, ServerError or TransportError."""
        return self.at_hand() or self.load(self._aggregator.campaign())

    def keep(self, campaign: Campaign) -> None:
        """Have it in the cache, if that can be done."""
        self._cache.put(self._key, campaign.document)
