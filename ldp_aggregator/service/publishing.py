"""From what a store holds to estimates and published models: what the server and the command line both do."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from ldp_aggregator.counting.tally import Arrivals, Tally
from ldp_aggregator.estimation.estimates import estimate
from ldp_aggregator.estimation.simplex import POSTERIOR
from ldp_aggregator.learning.published import counted_twice, published_by, relayed
from ldp_aggregator.learning.series import ALL_WINDOWS
from ldp_aggregator.store import Store
from ldp_aggregator.store.contract import PublishedModel, Shares
from ldp_protocols import Campaign, LdpError
from ldp_protocols.document.authored import MOST_BINS
from ldp_protocols.document.model import Model

if TYPE_CHECKING:
    from ldp_aggregator.learning.evaluation_round import Evaluated
    from ldp_aggregator.learning.naive_bayes import NaiveBayes

USELESS: Final = "useless-model"


class UntrainableError(LdpError):
    """Nothing is published: the reports that were counted so far do not give a model (``nothing-to-train``), or give
    one whose features are not known to tell anything of the class (:data:`USELESS`).
    """

    def __init__(self, problem: str, code: str = "nothing-to-train") -> None:
        super().__init__(code, problem)


@contextmanager
def needing_trainers() -> Iterator[None]:
    """Import in the block what trains, and use it. Raises LdpError without it, UntrainableError for a ValueError."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise LdpError(
            "not-installed",
            f"{error.name} is not installed here, and models are not trained without it; run 'ldp-aggregator train' on "
            "this store where ldp-bayes[aggregator] is",
        ) from None
    except ValueError as error:
        raise UntrainableError(str(error)) from None


def _useless(reports: int, expected: Mapping[str, Any]) -> UntrainableError:
    with needing_trainers():
        from ldp_aggregator.learning.expected_accuracy import FALSE_ALARMS

    if expected["p_value"] > FALSE_ALARMS:
        why = f"features that tell nothing would look like these in {expected['p_value']:.0%} of campaigns"
    else:
        why = (
            "they tell something, but whether it is enough to say another class than the most frequent one is not "
            f"known: if they know different things the model gains {expected['gain']:.3f} ± "
            f"{2 * expected['gain_error']:.3f}"
        )
    return UntrainableError(
        f"{reports:,} reports do not show that the features tell anything of the class, or not enough of it; the most "
        f"frequent class is right for {expected['majority']:.3f} of the people; {why}",
        USELESS,
    )


async def tally_to_publish(store: Store, campaign: Campaign) -> Tally:
    """The tally to publish now: all that was counted, or as of the last release where there are releases."""
    every = campaign.privacy.release_every
    return await (store.tally(campaign.id) if every is None else store.released_tally(campaign, every))


async def counts_to_publish(store: Store, campaign: Campaign) -> tuple[Tally, Arrivals]:
    """The tally to publish now, and how the reports came: those of the tally at least."""
    return await tally_to_publish(store, campaign), (await store.state(campaign.id)).arrivals


def told_estimates(campaign: Campaign, tally: Tally, arrivals: Arrivals, post: str) -> dict[str, Any]:
    """Estimates as JSON, with what every number of them costs a device."""
    return {
        **estimate(campaign, tally, post=post).to_json(),
        "published": published_by([(campaign, tally)], [arrivals]).to_json(),
        "relayed": relayed(campaign, arrivals).to_json(),
        "counted_twice": counted_twice([arrivals]),
    }


async def publish_trained(
    store: Store, campaign_ids: Sequence[str], post: str = POSTERIOR, *, window: str = ALL_WINDOWS, anyway: bool = False
) -> tuple[int, tuple[PublishedModel, ...]]:
    """Train on the tallies of campaigns about the same features, of a series on all windows or as of ``now``, and
    publish the model for the devices of each.

    A model whose features are not known to tell anything of the class is published only ``anyway``.
    Raises UntrainableError, and LdpError where a library is missing. Returns the number of reports and each campaign's
    published version.
    """
    pairs, arrivals = await counts_to_train(store, campaign_ids)
    reports = int(sum(tally.n.sum() for _, tally in pairs))
    for campaign, _ in pairs:
        if window != ALL_WINDOWS and campaign.windows is None:
            raise UntrainableError(f"campaign {campaign.id} has no windows; leave out what is to be of {window}")
    document = (await trained(pairs, arrivals, post, window)).to_json()
    expected = json.loads(document)["training"]["expected"]
    if not (expected["tells_something"] or anyway):
        raise _useless(reports, expected)
    return reports, tuple([await store.publish_model(campaign.id, document) for campaign, _ in pairs])


async def counts_to_train(
    store: Store, campaign_ids: Sequence[str]
) -> tuple[list[tuple[Campaign, Tally]], list[Arrivals]]:
    """Campaigns, what may be published of them, and how their reports came. Raises UntrainableError without any."""
    pairs, arrivals = [], []
    for campaign_id in dict.fromkeys(campaign_ids):
        if (await store.state(campaign_id)).federated:
            raise UntrainableError(
                f"campaign {campaign_id} is federated: its model is that of the shares there are whenever it is read, "
                "so there is nothing to train"
            )
        campaign = Campaign.parse(await store.document(campaign_id), campaign_id)
        tally, came = await counts_to_publish(store, campaign)
        pairs.append((campaign, tally))
        arrivals.append(came)
    if not any(tally.n.any() for _, tally in pairs):
        waiting = [campaign.privacy.release_every for campaign, _ in pairs if campaign.privacy.release_every]
        until = f"; the document releases nothing before {max(waiting):,} devices have answered" if waiting else ""
        raise UntrainableError(f"no report has been {'released' if waiting else 'counted'} yet{until}")
    return pairs, arrivals


def derive_model(campaign: Campaign, shares: Shares, groups: int = 1) -> str:
    """The model of a federated campaign's shares, in the same bytes in any order. Raises LdpError without a library."""
    with needing_trainers():
        from ldp_aggregator.trainers.federation import FederatedState

    kept = {member.node: member.share for member in shares.members}
    state = FederatedState(campaign, kept, dict(shares.releases))
    return state.model(groups=groups, salt=shares.salt).to_json()


async def trained(
    pairs: Sequence[tuple[Campaign, Tally]],
    arrivals: Sequence[Arrivals],
    post: str = POSTERIOR,
    window: str = ALL_WINDOWS,
) -> NaiveBayes:
    """Train on tallies, in a thread. Raises UntrainableError, and LdpError where a library is missing."""

    def work() -> NaiveBayes:
        with needing_trainers():
            # scikit-learn takes a second to import; serving does not need it, and need not have it.
            from ldp_aggregator.learning.training import train

            return train(pairs, post=post, arrivals=arrivals, window=window)

    return await asyncio.to_thread(work)


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
    """The figures of an evaluation round. Raises LdpError where a library is missing."""

    def look() -> Evaluated:
        with needing_trainers():
            from ldp_aggregator.learning.evaluation_round import evaluate

            return evaluate(campaign, tally)

    return await asyncio.to_thread(look)


def trained_on(campaign: Campaign) -> list[str]:
    """Return the campaigns that an evaluation round's model comes from; none where it comes from elsewhere."""
    told = campaign.evaluation.model.training.get("campaigns") if campaign.evaluation else None
    return [name for name in told if isinstance(name, str)] if isinstance(told, list) else []


async def draft_evaluation(
    store: Store, campaign_ids: Sequence[str], *, model: Model | None = None, bins: int = MOST_BINS
) -> dict[str, Any]:
    """Draft of a round that evaluates ``model``, or the one trained on campaigns about the same features so far."""
    if model is not None:
        campaigns = [Campaign.parse(await store.document(one), one) for one in dict.fromkeys(campaign_ids)]
    else:
        pairs, arrivals = await counts_to_train(store, campaign_ids)
        campaigns, model = [campaign for campaign, _ in pairs], (await trained(pairs, arrivals)).model_
    return await asyncio.to_thread(_draft, campaigns, model, bins)


def _evaluate(campaign: Campaign, tally: Tally, arrivals: Arrivals) -> tuple[Evaluated, str]:
    with needing_trainers():
        from ldp_aggregator.learning.evaluation_round import evaluate, evaluated_model

        return evaluate(campaign, tally), evaluated_model(campaign, tally, arrivals).to_json()


def _draft(campaigns: Sequence[Campaign], model: Model, bins: int) -> dict[str, Any]:
    with needing_trainers():
        from ldp_aggregator.learning.evaluation_round import evaluation_draft

        return evaluation_draft(campaigns, model, bins=bins)
