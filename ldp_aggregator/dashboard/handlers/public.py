"""The public page of a campaign: what is asked, how it is hidden, who learns what, and a lab that shows it."""

from __future__ import annotations

from dataclasses import dataclass

from aiohttp import web

from ldp_aggregator.dashboard.drawing.precision import subject
from ldp_aggregator.dashboard.pages import page
from ldp_aggregator.dashboard.sources import Sources
from ldp_aggregator.dashboard.visit import Visit
from protocols import Campaign
from protocols.document.campaign import MODEL, SCORE
from protocols.document.schema import CategoricalFeature, Feature


@dataclass(frozen=True)
class Asked:
    """One declared feature, in words, and what the lab's form offers for it."""

    name: str
    says: str
    values: tuple[str, ...]
    low: float | None
    high: float | None


async def get_page(visit: Visit, sources: Sources) -> web.Response:
    """For people, without a token; nothing of what was counted is on it but whether answers are still taken."""
    state = await sources.store.state(visit.campaign_id)
    campaign = await sources.campaign(state.id)
    return page(
        "public.html",
        state=state,
        status=state.status(sources.clock()),
        campaign=campaign,
        asked=[_asked(feature) for feature in campaign.features],
        questions=[(subject(campaign, question), question) for question in campaign.questions],
        learns=_learns(campaign, "records" if state.federated else "devices"),
        is_archived=sources.is_archived and not state.federated,
        has_lab=campaign.asks == MODEL and not state.federated,
        session=None,
    )


def _asked(feature: Feature) -> Asked:
    if isinstance(feature, CategoricalFeature):
        in_order = ", in this order" if feature.ordered else ""
        return Asked(feature.name, "one of " + ", ".join(feature.values) + in_order, feature.values, None, None)
    binned = f", in {feature.bins} steps" if feature.bins else ""
    low, high = float(feature.low), float(feature.high)
    return Asked(feature.name, f"a number from {low:g} to {high:g}{binned}", (), low, high)


def _learns(campaign: Campaign, of: str) -> str:
    classes = ", ".join(campaign.label.classes)
    if campaign.asks == SCORE:
        return f"How often each of several models is right, over all {of} together, and the one that is chosen by that."
    if campaign.asks != MODEL:
        return f"Sums over all {of}, from which a later campaign is prepared."
    return f"How often each answer goes with each of {classes}, over all {of} together, and a model made of that."
