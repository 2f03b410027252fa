"""Ending what is over: campaigns past their end, and full ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from ldp_aggregator.store.contract import CampaignStore
from ldp_aggregator.store.decisions import due


@dataclass(frozen=True, slots=True)
class Closed:
    """The campaigns that were closed, and those that could not be, with what was in the way."""

    ids: tuple[str, ...]
    failed: Mapping[str, Exception]


async def close_due(store: CampaignStore, now: datetime) -> Closed:
    """Close the campaigns whose ``closes`` has passed or that are full, a grace period after that was first seen.

    Uploads are refused on time anyway. One that fails keeps no other open. Raises StoreError where the campaigns cannot
    be listed.
    """
    closed, failed = [], {}
    for campaign_id in due(await store.campaigns(), now):
        try:
            state = await store.end_campaign(campaign_id)
        except Exception as error:  # noqa: PERF203 - whatever is wrong with one, the next gets its turn
            failed[campaign_id] = error
        else:
            if state.life.closed is not None:
                closed.append(campaign_id)
    return Closed(tuple(closed), failed)
