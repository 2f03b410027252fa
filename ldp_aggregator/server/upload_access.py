"""Which campaigns take uploads with a token only: kept for a moment, because every upload asks."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from ldp_aggregator.store.contract import CampaignStore

KEPT_SECONDS: Final = 2.0
"""How long a change made elsewhere may go unnoticed here."""
MOST_KEPT: Final = 1024


class UploadAccess:
    """``everywhere`` is the scope that this server asks of uploads to campaigns that ask for none."""

    def __init__(
        self, store: CampaignStore, everywhere: str | None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._store = store
        self._everywhere = everywhere
        self._clock = clock
        self._kept: dict[str, tuple[float, str | None]] = {}

    async def uploads_need(self, campaign_id: str) -> str | None:
        """The scope that uploads to a campaign need, None where anybody may upload. Raises UnknownCampaignError."""
        now = self._clock()
        until, scope = self._kept.get(campaign_id, (now, None))
        if now < until:
            return scope
        if campaign_id in self._kept:
            self._kept[campaign_id] = (now + KEPT_SECONDS, scope)  # One reads it again; the others need not wait.
        try:
            scope = (await self._store.terms(campaign_id)).uploads_need or self._everywhere
        except BaseException:
            self.forget(campaign_id)
            raise
        if len(self._kept) >= MOST_KEPT:
            self._kept.clear()
        self._kept[campaign_id] = (now + KEPT_SECONDS, scope)
        return scope

    def is_known_open(self, campaign_id: str) -> bool:
        """Whether anybody may upload, as far as was read lately; who does not know asks :meth:`uploads_need`."""
        until, scope = self._kept.get(campaign_id, (0.0, None))
        return scope is None and self._clock() < until

    def forget(self, campaign_id: str) -> None:
        """It was changed here."""
        self._kept.pop(campaign_id, None)
