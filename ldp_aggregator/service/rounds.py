"""Evaluation rounds: their drafts from what was counted, and the model that is published with what they tell."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ldp_aggregator.counting.arrivals import Arrivals
from ldp_aggregator.counting.tally import Tally
from ldp_aggregator.service.publishing import (
    UntrainableError,
    counts_to_publish,
    counts_to_train,
    needing_trainers,
    trained,
)
from ldp_aggregator.store import Store
from ldp_aggregator.store.contract import PublishedModel
from protocols import Campaign
from protocols.document.evaluation import MOST_BINS
from protocols.model import Model

if TYPE_CHECKING:
    from ldp_aggregator.learning.evaluation import Evaluated


async def publish_evaluated(
    store: Store, campaign_ids: Sequence[str], evaluation_id: str
) -> tuple[Evaluated, tuple[PublishedModel, ...]]:
    """Publish the model of an evaluation round for the devices of these campaigns, and of the round.

    It is the model that the round's document carries, with what its devices told, and another threshold where that is
    clearly better; nothing is trained again. Returns what the round tells and every campaign's published version.
    """
    campaign = Campaign.parse(await store.document(evaluation_id), evaluation_id)
    if campaign.evaluation is None:
        raise UntrainableError(f'campaign {evaluation_id} has "asks": "{campaign.asks}"; an evaluation has "score"')
    sources = trained_on(campaign)
    if sources and set(sources) != set(campaign_ids):
        raise UntrainableError(
            f"the model of evaluation {evaluation_id} was trained on {', '.join(sorted(sources))}, not on "
            f"{', '.join(sorted(campaign_ids))}; name the campaigns that the model comes from"
        )
    tally, arrivals = await counts_to_publish(store, campaign)
    evaluated, document = await asyncio.to_thread(_evaluate, campaign, tally, arrivals)
    ids = dict.fromkeys((*campaign_ids, evaluation_id))
    return evaluated, tuple([await store.publish_model(one, document) for one in ids])


async def evaluation_so_far(campaign: Campaign, tally: Tally) -> Evaluated:
    """Return what the answers to an evaluation round tell. Raises NotInstalledError."""

    def look() -> Evaluated:
        with needing_trainers():
            from ldp_aggregator.learning.evaluation import evaluate

            return evaluate(campaign, tally)

    return await asyncio.to_thread(look)


def trained_on(campaign: Campaign) -> list[str]:
    """Return the campaigns that an evaluation round's model comes from; none where it comes from elsewhere."""
    told = campaign.evaluation.model.training.get("campaigns") if campaign.evaluation else None
    return [name for name in told if isinstance(name, str)] if isinstance(told, list) else []


async def draft_evaluation(
    store: Store,
    campaign_ids: Sequence[str],
    *,
    model: Model | None = None,
    bins: int = MOST_BINS,
    title: str | None = None,
) -> dict[str, Any]:
    """Return the draft of a round that tells how good a model is: the one that is trained on what campaigns about the
    same features have counted so far, or ``model``, which may come from elsewhere.
    """
    if model is not None:
        campaigns = [Campaign.parse(await store.document(one), one) for one in dict.fromkeys(campaign_ids)]
    else:
        pairs, arrivals = await counts_to_train(store, campaign_ids)
        campaigns, model = [campaign for campaign, _ in pairs], (await trained(pairs, arrivals)).model_
    return await asyncio.to_thread(_draft, campaigns, model, bins, title)


def _evaluate(campaign: Campaign, tally: Tally, arrivals: Arrivals) -> tuple[Evaluated, str]:
    with needing_trainers():
        from ldp_aggregator.learning.evaluation import evaluate, evaluated_model

        return evaluate(campaign, tally), evaluated_model(campaign, tally, arrivals).to_json()


def _draft(campaigns: Sequence[Campaign], model: Model, bins: int, title: str | None) -> dict[str, Any]:
    with needing_trainers():
        from ldp_aggregator.learning.evaluation import evaluation_draft

        return evaluation_draft(campaigns, model, bins=bins, title=title)
