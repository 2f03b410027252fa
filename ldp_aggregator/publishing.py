"""From what a store holds to a published model: what the server and the command line both do."""

from __future__ import annotations

import asyncio

from ldp_aggregator.simplex import NORM_SUB
from ldp_aggregator.store.contract import PublishedModel, Store
from ldp_aggregator.tally import Tally
from protocols import Campaign


class UntrainableError(ValueError):
    """What was counted so far does not give a model."""


async def publish_trained(store: Store, campaign_id: str, post: str = NORM_SUB) -> tuple[int, PublishedModel]:
    """Train on the campaign's tally and publish under the next version; returns the number of reports, too."""
    campaign = Campaign.parse(await store.document(campaign_id), campaign_id)
    tally = await store.tally(campaign_id)
    reports = int(tally.n.sum())
    if not reports:
        raise UntrainableError("no report has been counted yet")
    document = await asyncio.to_thread(_train, campaign, tally, post)
    return reports, await store.publish_model(campaign_id, document)


def _train(campaign: Campaign, tally: Tally, post: str) -> str:
    from ldp_aggregator.training import train  # scikit-learn takes a second to import; serving does not need it.

    try:
        return train(campaign, tally, post=post).to_json()
    except ValueError as error:
        raise UntrainableError(str(error)) from None
