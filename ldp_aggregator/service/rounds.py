"""The further rounds of a study: their drafts from what was counted, and the model that an evaluation chose."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ldp_aggregator.counting.arrivals import Arrivals
from ldp_aggregator.counting.tally import Tally
from ldp_aggregator.service.publishing import (
    TrainableStore,
    UntrainableError,
    counts_to_publish,
    counts_to_train,
    needing_trainers,
)
from ldp_aggregator.store.contract import PublishedModel
from protocols import Campaign
from protocols.document.campaign import SCORE

if TYPE_CHECKING:
    from ldp_aggregator.learning.rounds.evaluation import Evaluation


async def publish_evaluated(
    store: TrainableStore, campaign_ids: Sequence[str], evaluation_id: str
) -> tuple[Evaluation, tuple[PublishedModel, ...]]:
    """Publish the winner of an evaluation round for the devices of the campaigns it was trained on, and of the round.

    It is the model that the round's document carries and that its devices voted on; nothing is trained again. Returns
    the evaluation and every campaign's published version.
    """
    campaign = Campaign.parse(await store.document(evaluation_id), evaluation_id)
    if campaign.asks != SCORE:
        raise UntrainableError(f'campaign {evaluation_id} has "asks": "{campaign.asks}"; an evaluation has "{SCORE}"')
    wanted = set(campaign_ids)
    for one in campaign.candidates:
        trained = one.model.training.get("campaigns")
        if not isinstance(trained, list) or set(trained) != wanted:
            raise UntrainableError(
                f"candidate {one.name} of evaluation {evaluation_id} was trained on {trained}, not on "
                f"{', '.join(sorted(wanted))}; name the campaigns that the candidates come from"
            )
    tally, arrivals = await counts_to_publish(store, campaign)
    evaluation, document = await asyncio.to_thread(_evaluate, campaign, tally, arrivals)
    ids = dict.fromkeys((*campaign_ids, evaluation_id))
    return evaluation, tuple([await store.publish_model(one, document) for one in ids])


async def evaluation_so_far(campaign: Campaign, tally: Tally) -> Evaluation:
    """What the votes of an evaluation round say. Raises NotInstalledError."""

    def look() -> Evaluation:
        with needing_trainers():
            from ldp_aggregator.learning.rounds.evaluation import evaluate

        return evaluate(campaign, tally)

    return await asyncio.to_thread(look)


def trained_on(campaign: Campaign) -> list[str]:
    """The campaigns that an evaluation round's candidates come from, as far as they say."""
    told = (one.model.training.get("campaigns") for one in campaign.candidates)
    named = [name for names in told if isinstance(names, list) for name in names if isinstance(name, str)]
    return list(dict.fromkeys(named))


async def draft_evaluation(
    store: TrainableStore, campaign_ids: Sequence[str], names: Sequence[str] | None = None, title: str | None = None
) -> dict[str, Any]:
    """The draft of a round that evaluates models of what campaigns about the same features have counted so far."""
    pairs, arrivals = await counts_to_train(store, campaign_ids)
    return await asyncio.to_thread(_draft, pairs, arrivals, names, title)


async def draft_second_round(store: TrainableStore, campaign_ids: Sequence[str], title: str | None) -> dict[str, Any]:
    """The draft of the round that asks more about what the first ones found to tell the class."""
    pairs, _ = await counts_to_train(store, campaign_ids)
    return await asyncio.to_thread(_draft_second, pairs, title)


def _evaluate(campaign: Campaign, tally: Tally, arrivals: Arrivals) -> tuple[Evaluation, str]:
    with needing_trainers():
        from ldp_aggregator.learning.rounds.evaluation import evaluate, evaluated_model

    evaluation = evaluate(campaign, tally)
    try:
        return evaluation, evaluated_model(evaluation, tally, arrivals).to_json()
    except ValueError as error:
        raise UntrainableError(str(error)) from None


def _draft(
    pairs: Sequence[tuple[Campaign, Tally]],
    arrivals: Sequence[Arrivals],
    names: Sequence[str] | None,
    title: str | None,
) -> dict[str, Any]:
    with needing_trainers():
        from ldp_aggregator.learning.rounds.candidates import DEFAULT, evaluation_draft, make_candidates

    try:
        candidates = make_candidates(pairs, DEFAULT if names is None else names, arrivals=arrivals)
        return evaluation_draft([campaign for campaign, _ in pairs], candidates, title)
    except ValueError as error:
        raise UntrainableError(str(error)) from None


def _draft_second(pairs: Sequence[tuple[Campaign, Tally]], title: str | None) -> dict[str, Any]:
    with needing_trainers():
        from ldp_aggregator.learning.rounds.second import second_round_draft

    try:
        return second_round_draft(pairs, title=title)
    except ValueError as error:
        raise UntrainableError(str(error)) from None
