"""From what a store holds to a published model: what the server and the command line both do."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Protocol

from ldp_aggregator.counting.tally import Tally
from ldp_aggregator.estimation.moments import DEFAULT_VARIANCE_FLOOR
from ldp_aggregator.estimation.simplex import NORM_SUB
from ldp_aggregator.store.contract import CampaignStore, CountStore, ModelStore, PublishedModel, Shares
from protocols import Campaign
from protocols.document.campaign import SCORE

if TYPE_CHECKING:
    from ldp_aggregator.learning.rounds.evaluation import Evaluation


class TrainableStore(CampaignStore, CountStore, ModelStore, Protocol):
    """What training reads, and where its model goes."""


class UntrainableError(ValueError):
    """What was counted so far does not give a model."""


@dataclass(frozen=True)
class TrainingOptions:
    """The options of ``ldp_aggregator.train`` that an operator chooses."""

    post: str = NORM_SUB
    prior: str = "pooled"
    variance_floor: float = DEFAULT_VARIANCE_FLOOR


async def tally_to_publish(store: CountStore, campaign: Campaign) -> Tally:
    """What may be published now: all that was counted, or as of the last release where the document fixes releases."""
    every = campaign.privacy.release_every
    return await (store.tally(campaign.id) if every is None else store.released_tally(campaign.id, every))


async def publish_trained(
    store: TrainableStore, campaign_ids: Sequence[str], options: TrainingOptions = TrainingOptions()
) -> tuple[int, tuple[PublishedModel, ...]]:
    """Train on the tallies of campaigns about the same features and publish the model for the devices of each.

    Returns the number of reports and each campaign's published version.
    """
    pairs = await _pairs(store, campaign_ids)
    document = await asyncio.to_thread(_train, pairs, options)
    reports = int(sum(tally.n.sum() for _, tally in pairs))
    return reports, tuple([await store.publish_model(campaign.id, document) for campaign, _ in pairs])


async def _pairs(store: TrainableStore, campaign_ids: Sequence[str]) -> list[tuple[Campaign, Tally]]:
    """Campaigns with what may be published of them. Raises UntrainableError where that is nothing."""
    pairs = []
    for campaign_id in dict.fromkeys(campaign_ids):
        if (await store.state(campaign_id)).federated:
            raise UntrainableError(
                f"campaign {campaign_id} is federated: its model is that of the shares there are whenever it is read, "
                "so there is nothing to train"
            )
        campaign = Campaign.parse(await store.document(campaign_id), campaign_id)
        pairs.append((campaign, await tally_to_publish(store, campaign)))
    if not any(tally.n.any() for _, tally in pairs):
        waiting = [campaign.privacy.release_every for campaign, _ in pairs if campaign.privacy.release_every]
        until = f"; the document releases nothing before {max(waiting):,} devices have answered" if waiting else ""
        raise UntrainableError(f"no report has been {'released' if waiting else 'counted'} yet{until}")
    return pairs


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
    evaluation, document = await asyncio.to_thread(_evaluate, campaign, await tally_to_publish(store, campaign))
    ids = dict.fromkeys((*campaign_ids, evaluation_id))
    return evaluation, tuple([await store.publish_model(one, document) for one in ids])


async def draft_evaluation(
    store: TrainableStore, campaign_ids: Sequence[str], names: Sequence[str] | None = None, title: str | None = None
) -> dict[str, Any]:
    """The draft of a round that evaluates models of what campaigns about the same features have counted so far."""
    pairs = await _pairs(store, campaign_ids)
    return await asyncio.to_thread(_draft, pairs, names, title)


async def draft_second_round(store: TrainableStore, campaign_ids: Sequence[str], title: str | None) -> dict[str, Any]:
    """The draft of the round that asks more about what the first ones found to tell the class."""
    return await asyncio.to_thread(_draft_second, await _pairs(store, campaign_ids), title)


def derive_model(campaign: Campaign, shares: Shares, groups: int = 1) -> str:
    """The model document of a federated campaign's shares; the same bytes whatever order they came in."""
    from ldp_aggregator.trainers.federation.state import FederatedState

    kept = {member.node: member.share for member in shares.members}
    state = FederatedState(campaign, kept, dict(shares.releases))
    return state.model(groups=groups, salt=shares.salt).to_json()


def _evaluate(campaign: Campaign, tally: Tally) -> tuple[Evaluation, str]:
    from ldp_aggregator.learning.rounds.evaluation import evaluate, evaluated_model

    evaluation = evaluate(campaign, tally)
    try:
        return evaluation, evaluated_model(evaluation, tally).to_json()
    except ValueError as error:
        raise UntrainableError(str(error)) from None


def _draft(pairs: Sequence[tuple[Campaign, Tally]], names: Sequence[str] | None, title: str | None) -> dict[str, Any]:
    from ldp_aggregator.learning.rounds.candidates import DEFAULT, evaluation_draft, make_candidates

    try:
        candidates = make_candidates(pairs, DEFAULT if names is None else names)
        return evaluation_draft([campaign for campaign, _ in pairs], candidates, title)
    except ValueError as error:
        raise UntrainableError(str(error)) from None


def _draft_second(pairs: Sequence[tuple[Campaign, Tally]], title: str | None) -> dict[str, Any]:
    from ldp_aggregator.learning.rounds.second import second_round_draft

    try:
        return second_round_draft(pairs, title=title)
    except ValueError as error:
        raise UntrainableError(str(error)) from None


def _train(pairs: Sequence[tuple[Campaign, Tally]], options: TrainingOptions) -> str:
    from ldp_aggregator.learning.training import (
        train,  # scikit-learn takes a second to import; serving does not need it.
    )

    try:
        return train(pairs, **asdict(options)).to_json()
    except ValueError as error:
        raise UntrainableError(str(error)) from None
