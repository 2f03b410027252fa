"""From what a store holds to a published model: what the server and the command line both do."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Protocol

from ldp_aggregator.counting.tally import Tally
from ldp_aggregator.estimation.moments import DEFAULT_VARIANCE_FLOOR
from ldp_aggregator.estimation.simplex import POSTERIOR
from ldp_aggregator.store.contract import CampaignStore, CountStore, ModelStore, PublishedModel, Shares
from protocols import Campaign


class TrainableStore(CampaignStore, CountStore, ModelStore, Protocol):
    """What training reads, and where its model goes."""


class UntrainableError(ValueError):
    """What was counted so far does not give a model."""


class UselessModelError(UntrainableError):
    """The model cannot be expected to be better than always saying the most frequent class."""

    def __init__(self, reports: int, predicted: Mapping[str, float]) -> None:
        best = predicted["prior"] + predicted["gain"]
        super().__init__(
            f"{reports:,} reports are too few for a model that is above always saying the most frequent class: that is "
            f"right for {predicted['prior']:.3f} of the people, the model for {best:.3f} at best"
        )


@dataclass(frozen=True)
class TrainingOptions:
    """The options of ``ldp_aggregator.train`` that an operator chooses."""

    post: str = POSTERIOR
    prior: str = "pooled"
    variance_floor: float = DEFAULT_VARIANCE_FLOOR


async def tally_to_publish(store: CountStore, campaign: Campaign) -> Tally:
    """What may be published now: all that was counted, or as of the last release where the document fixes releases."""
    every = campaign.privacy.release_every
    return await (store.tally(campaign.id) if every is None else store.released_tally(campaign.id, every))


async def publish_trained(
    store: TrainableStore,
    campaign_ids: Sequence[str],
    options: TrainingOptions = TrainingOptions(),
    *,
    anyway: bool = False,
) -> tuple[int, tuple[PublishedModel, ...]]:
    """Train on the tallies of campaigns about the same features and publish the model for the devices of each.

    A model that cannot be expected to be above the prior alone is published only ``anyway``; else UselessModelError.
    Returns the number of reports and each campaign's published version.
    """
    pairs = await pairs_to_train(store, campaign_ids)
    reports = int(sum(tally.n.sum() for _, tally in pairs))
    document = await asyncio.to_thread(_train, pairs, options)
    predicted = json.loads(document)["training"]["predicted_accuracy"]
    if not (predicted["above_prior"] or anyway):
        raise UselessModelError(reports, predicted)
    return reports, tuple([await store.publish_model(campaign.id, document) for campaign, _ in pairs])


async def pairs_to_train(store: TrainableStore, campaign_ids: Sequence[str]) -> list[tuple[Campaign, Tally]]:
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


def derive_model(campaign: Campaign, shares: Shares, groups: int = 1) -> str:
    """The model document of a federated campaign's shares; the same bytes whatever order they came in."""
    from ldp_aggregator.trainers.federation.state import FederatedState

    kept = {member.node: member.share for member in shares.members}
    state = FederatedState(campaign, kept, dict(shares.releases))
    return state.model(groups=groups, salt=shares.salt).to_json()


def _train(pairs: Sequence[tuple[Campaign, Tally]], options: TrainingOptions) -> str:
    from ldp_aggregator.learning.training import (
        train,  # scikit-learn takes a second to import; serving does not need it.
    )

    try:
        return train(pairs, **asdict(options)).to_json()
    except ValueError as error:
        raise UntrainableError(str(error)) from None
