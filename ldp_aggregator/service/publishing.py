"""From what a store holds to estimates and published models: what the server and the command line both do."""

from __future__ import annotations

import asyncio
import json
import resource
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.counting.tally import Arrivals, Tally
from ldp_aggregator.estimation.estimates import estimate
from ldp_aggregator.estimation.simplex import POSTERIOR
from ldp_aggregator.guarantees import counted_twice, published_by, relayed
from ldp_aggregator.learning.series import ALL_WINDOWS
from ldp_aggregator.node_statistics import decode_share
from ldp_aggregator.store import Store
from ldp_aggregator.store.contract import PublishedModel, Shares
from ldp_protocols import Campaign, LdpError
from ldp_protocols.document.authored import MOST_BINS
from ldp_protocols.document.model import Model

if TYPE_CHECKING:
    from ldp_aggregator.evaluation.figures import Evaluated
    from ldp_aggregator.trainers.node_overview import NodeOverview

USELESS: Final = "useless-model"

TRAINING_BYTES: Final = 2 << 30
"""The most memory that a training beside a server takes; one of the largest that are not refused takes half."""

_HELD: Final = Path("/proc/self/statm")
"""Pages that a process holds, where there is such a file: elsewhere nothing is limited."""

_Counted = tuple[bytes, str, NDArray[np.int64], list[NDArray[np.int64]]]
"""A campaign's document and identifier, and the two attributes of its tally."""


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
        why = (
            f"features that tell nothing would look like these in {expected['p_value']:.0%} of campaigns; collect more"
        )
    else:
        why = (
            "they tell something, but whether it is enough to say another class than the most frequent one is not "
            f"known: if they know different things the model gains {expected['gain']:.3f} ± "
            f"{2 * expected['gain_error']:.3f}"
        )
    return UntrainableError(
        f"with {reports:,} answers the model cannot be told from always guessing the most frequent class, which is "
        f"right for {expected['majority']:.1%} of the people: {why}",
        USELESS,
    )


async def tally_to_publish(store: Store, campaign: Campaign) -> Tally:
    """The tally to publish now: all that was counted, or as of the last release where there are releases."""
    every = campaign.privacy.release_every
    return await (store.tally(campaign.id) if every is None else store.released_tally(campaign, every))


async def tally_to_show(store: Store, campaign: Campaign) -> Tally:
    """The tally that the operator sees: all that was counted, and of a crowd what is to be published."""
    return await (store.tally(campaign.id) if campaign.privacy.crowd is None else tally_to_publish(store, campaign))


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
    store: Store,
    campaign_ids: Sequence[str],
    post: str = POSTERIOR,
    *,
    window: str = ALL_WINDOWS,
    anyway: bool = False,
    apart: bool = False,
) -> tuple[int, tuple[PublishedModel, ...]]:
    """Train on the tallies of campaigns about the same features, of a series on all windows or as of ``now``, and
    publish the model for the devices of each.

    A model whose features are not known to tell anything of the class is published only ``anyway``. ``apart`` is as in
    :func:`trained`.
    Raises UntrainableError, and LdpError where a library is missing. Returns the number of reports and each campaign's
    published version.
    """
    pairs, arrivals = await counts_to_train(store, campaign_ids)
    reports = int(sum(tally.n.sum() for _, tally in pairs))
    for campaign, _ in pairs:
        if window != ALL_WINDOWS and campaign.windows is None:
            raise UntrainableError(f"campaign {campaign.id} has no windows; leave out what is to be of {window}")
    document = await trained(pairs, arrivals, post, window, apart=apart)
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
        if not campaign.label:
            raise UntrainableError(
                f"campaign {campaign_id} has no label to learn a model of; what it tells is in its estimates"
            )
        tally, came = await counts_to_publish(store, campaign)
        pairs.append((campaign, tally))
        arrivals.append(came)
    if not any(tally.n.any() for _, tally in pairs):
        waiting = [campaign.privacy.release_every for campaign, _ in pairs if campaign.privacy.release_every]
        until = f"; the document releases nothing before {max(waiting):,} devices have answered" if waiting else ""
        raise UntrainableError(f"no report has been {'released' if waiting else 'counted'} yet{until}")
    return pairs, arrivals


def derive_model(campaign: Campaign, shares: Shares) -> str:
    """The model of a federated campaign's shares, in the same bytes in any order. Raises LdpError without a library."""
    with needing_trainers():
        from ldp_aggregator.trainers.federation import FederatedState

    shares_by_node = {member.node: member.share for member in shares.members}
    state = FederatedState(campaign, shares_by_node, dict(shares.releases))
    return state.model(salt=shares.salt).to_json()


def check_share(campaign: Campaign, share: bytes) -> None:
    """Refuse what is no share of the campaign, or none that a table can give. Raises DocumentError."""
    decode_share(share, campaign)
    with suppress(ModuleNotFoundError):  # Where nothing can be made of a share, nothing is.
        from ldp_aggregator.trainers.node_overview import check_possible

        check_possible(campaign, share)


def look_at_nodes(campaign: Campaign, shares: Shares) -> tuple[dict[str, NodeOverview], str | None]:
    """The overview of every node with a share, and a warning where tables are of unlike sizes.

    Raises LdpError without a library.
    """
    with needing_trainers():
        from ldp_aggregator.trainers.federation import default_groups
        from ldp_aggregator.trainers.node_overview import overviews, unlike_sizes

    nodes = overviews(campaign, {member.node: member.share for member in shares.members})
    return nodes, unlike_sizes(nodes.values(), default_groups(campaign, len(nodes)))


async def trained(
    pairs: Sequence[tuple[Campaign, Tally]],
    arrivals: Sequence[Arrivals],
    post: str = POSTERIOR,
    window: str = ALL_WINDOWS,
    *,
    apart: bool = False,
) -> str:
    """Train on tallies in a thread, or ``apart`` in a process of its own with :data:`TRAINING_BYTES` of memory.

    Returns the model document. Raises UntrainableError, and LdpError where a library is missing.
    """
    counted = [(one.document, one.id, tally.n, tally.counts) for one, tally in pairs]

    def in_a_process() -> str:
        try:
            with ProcessPoolExecutor(1, get_context("spawn")) as process:
                return process.submit(_train, counted, arrivals, post, window, TRAINING_BYTES).result()
        except (MemoryError, BrokenProcessPool):
            raise UntrainableError(
                f"training was ended, most likely because it took more than {TRAINING_BYTES >> 20:,} MiB; merge values "
                "or leave out features, or run 'ldp-aggregator train' where there is more memory"
            ) from None

    return await asyncio.to_thread(in_a_process if apart else partial(_train, counted, arrivals, post, window))


def _limit_memory(most: int) -> None:
    """Let this process take so many bytes more than it has."""
    if _HELD.exists():
        resident = int(_HELD.read_text(encoding="ascii").split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (resident + most, resource.getrlimit(resource.RLIMIT_AS)[1]))


def _train(
    counted: Sequence[_Counted], arrivals: Sequence[Arrivals], post: str, window: str, most: int | None = None
) -> str:
    with needing_trainers():
        # scikit-learn takes a second to import; serving does not need it, and need not have it.
        from ldp_aggregator.learning.training import train

        if most is not None:
            _limit_memory(most)
        pairs = []
        for document, campaign_id, n, counts in counted:
            campaign = Campaign.parse(document, campaign_id)
            pairs.append((campaign, Tally(campaign, n, counts)))
        return train(pairs, post=post, arrivals=arrivals, window=window).to_json()


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
            from ldp_aggregator.evaluation.figures import evaluate

            return evaluate(campaign, tally)

    return await asyncio.to_thread(look)


def trained_on(campaign: Campaign) -> list[str]:
    """The campaigns that an evaluation round's model comes from; none where it comes from elsewhere."""
    campaigns = campaign.evaluation.model.training.get("campaigns") if campaign.evaluation else None
    return [name for name in campaigns if isinstance(name, str)] if isinstance(campaigns, list) else []


async def draft_evaluation(
    store: Store,
    campaign_ids: Sequence[str],
    *,
    model: Model | None = None,
    bins: int = MOST_BINS,
    apart: bool = False,
) -> dict[str, Any]:
    """Draft of a round that evaluates ``model``, or the one trained on campaigns about the same features so far;
    ``apart`` as in :func:`trained`.
    """
    if model is not None:
        campaigns = [Campaign.parse(await store.document(one), one) for one in dict.fromkeys(campaign_ids)]
    else:
        pairs, arrivals = await counts_to_train(store, campaign_ids)
        campaigns = [campaign for campaign, _ in pairs]
        model = Model.from_json(await trained(pairs, arrivals, apart=apart))
    return await asyncio.to_thread(_draft, campaigns, model, bins)


def _evaluate(campaign: Campaign, tally: Tally, arrivals: Arrivals) -> tuple[Evaluated, str]:
    with needing_trainers():
        from ldp_aggregator.evaluation.figures import evaluate
        from ldp_aggregator.evaluation.rounds import evaluated_model

        return evaluate(campaign, tally), evaluated_model(campaign, tally, arrivals).to_json()


def _draft(campaigns: Sequence[Campaign], model: Model, bins: int) -> dict[str, Any]:
    with needing_trainers():
        from ldp_aggregator.evaluation.rounds import evaluation_draft

        return evaluation_draft(campaigns, model, bins=bins)
