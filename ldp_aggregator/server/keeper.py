"""What a server does by itself, every half minute: close campaigns that are over."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from ldp_aggregator.server.metrics import Metrics
from ldp_aggregator.store.clock import Clock, utc_now
from ldp_aggregator.store.closing import close_due
from ldp_aggregator.store.contract import CampaignStore, StoreError

LOG: Final = logging.getLogger("ldp_aggregator")

DUE_SECONDS: Final = 30.0
"""How often. Uploads are refused on time anyway; this closes what has been over for a day."""


async def keep(store: CampaignStore, metrics: Metrics, clock: Clock = utc_now) -> None:
    """Until cancelled. A campaign that cannot be closed is told of and keeps no other open."""
    while True:
        await close_once(store, metrics, clock)
        await asyncio.sleep(DUE_SECONDS)


async def close_once(store: CampaignStore, metrics: Metrics, clock: Clock) -> None:
    try:
        closed = await close_due(store, clock())
    except StoreError as error:
        metrics.store_errors.inc()
        LOG.error("store error", extra={"reason": str(error)})
        return
    for campaign_id in closed.ids:
        LOG.info("campaign closed", extra={"campaign": campaign_id})
    for campaign_id, failure in closed.failed.items():
        metrics.store_errors.inc()
        reason = str(failure) if isinstance(failure, StoreError) else type(failure).__name__
        LOG.error("campaign not closed", extra={"campaign": campaign_id, "reason": reason}, exc_info=failure)
