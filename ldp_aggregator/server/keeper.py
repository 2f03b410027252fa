"""What a server does by itself, every half minute: close campaigns that are over, delete what need not be kept."""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta
from typing import Final

from ldp_aggregator.server.metrics import Metrics
from ldp_aggregator.service.acting import SERVER, recorded
from ldp_aggregator.store.campaign_state import CampaignState
from ldp_aggregator.store.clock import Clock, utc_now
from ldp_aggregator.store.closing import close_due
from ldp_aggregator.store.contract import CampaignStore, Store, StoreError, UnknownCampaignError
from ldp_aggregator.store.failures import kind_of

LOG: Final = logging.getLogger("ldp_aggregator")

DUE_SECONDS: Final = 30.0
"""How often. Uploads are refused on time anyway; this closes what has been over for a day."""


async def keep(store: Store, metrics: Metrics, clock: Clock = utc_now, *, keep_closed_days: int | None = None) -> None:
    """Until cancelled. A campaign that cannot be closed or deleted is told of and keeps no other."""
    while True:
        await close_once(store, metrics, clock)
        if keep_closed_days is not None:
            await delete_once(store, metrics, clock, timedelta(days=keep_closed_days))
        await tell_once(store, metrics)
        await asyncio.sleep(DUE_SECONDS)


async def close_once(store: CampaignStore, metrics: Metrics, clock: Clock) -> None:
    try:
        closed = await close_due(store, clock())
    except StoreError as error:
        metrics.store_errors.inc()
        LOG.error("store error", extra={"reason": kind_of(error)})
        return
    for campaign_id in closed.ids:
        LOG.info("campaign closed", extra={"campaign": campaign_id})
    for campaign_id, failure in closed.failed.items():
        metrics.store_errors.inc()
        LOG.error("campaign not closed", extra={"campaign": campaign_id, "reason": kind_of(failure)}, exc_info=failure)


async def delete_once(store: Store, metrics: Metrics, clock: Clock, kept: timedelta) -> None:
    """Delete the campaigns that were closed longer ago than they are kept."""
    for state in await _campaigns(store, metrics):
        if state.life.closed is None or clock() - state.life.closed < kept:
            continue
        try:
            detail = f"closed for {kept.days} days"
            async with recorded(store, SERVER, "delete campaign", state.id, detail):
                await store.delete_campaign(state.id)
        except UnknownCampaignError:
            continue  # Another instance was faster.
        except Exception as error:
            metrics.store_errors.inc()
            LOG.error("campaign not deleted", extra={"campaign": state.id, "reason": kind_of(error)}, exc_info=error)
        else:
            LOG.info("campaign deleted", extra={"campaign": state.id})


async def tell_once(store: CampaignStore, metrics: Metrics) -> None:
    """Let the metrics know how many ids every open campaign has: as many as reports."""
    states = await _campaigns(store, metrics)
    metrics.told.open_campaigns({state.id: state.reports for state in states if state.life.closed is None})


async def _campaigns(store: CampaignStore, metrics: Metrics) -> list[CampaignState]:
    try:
        return await store.campaigns()
    except StoreError as error:
        metrics.store_errors.inc()
        LOG.error("store error", extra={"reason": kind_of(error)})
        return []
