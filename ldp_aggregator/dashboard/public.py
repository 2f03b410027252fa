"""Pages for everybody: a campaign's page (what is asked, how it is hidden, who learns what, a lab that shows it)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final

from aiohttp import web

from ldp_aggregator.dashboard.drawing.precision import subject
from ldp_aggregator.dashboard.page_sources import Sources
from ldp_aggregator.dashboard.pages import PageError, asset, cacheable, render
from ldp_aggregator.dashboard.session import Visit
from ldp_aggregator.service.words import plain_number
from ldp_aggregator.store.contract import CampaignState
from ldp_protocols import Campaign
from ldp_protocols.document.authored import MODEL, SCORE, STATISTICS
from ldp_protocols.features import Feature

TRY_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; worker-src blob:; form-action 'none'; base-uri 'none'; "
    "frame-ancestors 'none'"
)

MOST_KEPT: Final = 32
"""Pages in memory; one of a large campaign has 300 KB."""


@dataclass(frozen=True)
class FeatureForm:
    """One declared feature, in words, and what the lab's form offers for it."""

    name: str
    says: str
    values: tuple[str, ...]
    low: float | None
    high: float | None


async def get_asset(visit: Visit, _sources: Sources) -> web.Response:
    """A file of the pages: styles, scripts."""
    found = asset(visit.request.match_info["name"])
    if found is None:
        raise PageError(404, "Nothing here", "There is no file of this name.")
    return cacheable(visit.request, *found, "no-cache")


async def get_try(visit: Visit, _sources: Sources) -> web.Response:
    """A file of the page that explains local privacy by doing: it computes in workers, and may send nothing."""
    found = asset(visit.request.match_info.get("name") or "index.html", "static/try")
    if found is None:
        raise PageError(404, "Nothing here", "There is no file of this name.")
    response = cacheable(visit.request, *found, "no-cache")
    response.headers["Content-Security-Policy"] = TRY_POLICY
    return response


async def get_try_folder(_visit: Visit, _sources: Sources) -> web.Response:
    """Lead to the folder, from which the page's own addresses go on."""
    return web.Response(status=308, headers={"Location": "/try/"})


async def get_start(visit: Visit, _sources: Sources) -> web.Response:
    """Say what this server is; which campaigns it has is nobody's business who does not know their address."""
    return cacheable(visit.request, render("start.html", session=None).encode(), "text/html", "public, max-age=3600")


async def get_page(visit: Visit, sources: Sources) -> web.Response:
    """A page for people, without token or counts, but whether answers are taken; drawn once per state, off the loop."""
    state = await sources.store.state(visit.campaign_id)
    status = state.status(sources.clock())
    key, pages = (state.id, status, state.federated), sources.public_pages
    drawing = pages.get(key)
    if drawing is None:
        drawing = pages[key] = asyncio.create_task(_drawn(state, status, sources))
        drawing.add_done_callback(lambda done: pages.pop(key, None) if done.cancelled() or done.exception() else None)
        if len(pages) > MOST_KEPT:
            del pages[next(iter(pages))]
    body = await asyncio.shield(drawing)  # Who hangs up leaves it to the others.
    return cacheable(visit.request, body, "text/html", "public, max-age=60")


async def _drawn(state: CampaignState, status: str, sources: Sources) -> bytes:
    campaign = await sources.campaign(state.id)
    return await asyncio.to_thread(_draw, state, status, campaign, sources)


def _draw(state: CampaignState, status: str, campaign: Campaign, sources: Sources) -> bytes:
    return render(
        "public.html",
        state=state,
        status=status,
        campaign=campaign,
        asked=[_asked(feature) for feature in campaign.features],
        questions=[(subject(campaign, question), question) for question in campaign.questions],
        learns=_learns(campaign, "records" if state.federated else "devices"),
        is_archived=sources.is_archived and not state.federated,
        has_try=sources.has_try,
        has_lab=campaign.asks in (MODEL, STATISTICS) and not state.federated,
        session=None,
    ).encode()


def _asked(feature: Feature) -> FeatureForm:
    number = feature.number
    if number is None:
        in_order = ", in this order" if feature.ordered else ""
        return FeatureForm(feature.name, feature.wanted() + in_order, feature.names, None, None)
    says = f"a number from {plain_number(number.low)} to {plain_number(number.high)}"
    steps = "" if number.moments else f", in {number.size} steps"
    return FeatureForm(feature.name, says + steps, (), float(number.low), float(number.high))


def _learns(campaign: Campaign, of: str) -> str:
    classes = ", ".join(campaign.label.classes)
    if campaign.asks == SCORE:
        return f"How often each of several models is right, over all {of} together, and the one that is chosen by that."
    if campaign.asks == STATISTICS:
        return (
            f"How often each answer is given, and averages of numbers, over all {of} together. No model is made of it."
        )
    if campaign.asks != MODEL:
        return f"Sums over all {of}, from which a later campaign is prepared."
    return f"How often each answer goes with each of {classes}, over all {of} together, and a model made of that."
