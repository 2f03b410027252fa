"""One campaign: what it asks and promises, what was learned so far, its models; and the forms that train and close
it.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any, Final

from aiohttp import web
from markupsafe import Markup

from ldp_aggregator.counting.tally import Tally
from ldp_aggregator.dashboard.drawing.findings import Finding, class_prior, of_features
from ldp_aggregator.dashboard.drawing.models import ModelRow, model_row
from ldp_aggregator.dashboard.drawing.plots import curve
from ldp_aggregator.dashboard.drawing.precision import Precision, precisions
from ldp_aggregator.dashboard.drawing.promises import More, Promises, more_devices, of_campaign
from ldp_aggregator.dashboard.handlers.entrance import see
from ldp_aggregator.dashboard.handlers.overview import IN_A_TABLE, devices_of, event
from ldp_aggregator.dashboard.history import thinned
from ldp_aggregator.dashboard.pages import PageError, page
from ldp_aggregator.dashboard.sources import Sources
from ldp_aggregator.dashboard.visit import Visit
from ldp_aggregator.estimation.estimates import estimate
from ldp_aggregator.service.acting import recorded
from ldp_aggregator.service.publishing import UntrainableError, publish_trained, tally_to_publish
from ldp_aggregator.store.campaign_state import CampaignState
from protocols import Campaign
from protocols.document.campaign import MODEL

MOST_LIARS: Final = 1_000_000
MOST_BATCH: Final = 1_000_000_000
DEFAULT_BATCH: Final = 1000
MOST_VERSIONS: Final = 20
"""Shown, the latest; every one can be downloaded by its number."""


@dataclass(frozen=True)
class Shown:
    """What is computed for a campaign's page."""

    devices: int
    questions: list[Precision]
    promises: Promises
    prior: Finding | None
    findings: list[Finding]
    more: list[More]


async def get_campaign(visit: Visit, sources: Sources) -> web.Response:
    """The page of a campaign."""
    state = await sources.store.state(visit.campaign_id)
    campaign = await sources.campaign(state.id)
    return page("campaign.html", **await _values(visit, sources, state, campaign), **visit.common())


async def get_live(visit: Visit, sources: Sources) -> web.Response:
    """The numbers of reports now, as one server-sent event."""
    state = await sources.store.state(visit.campaign_id)
    if state.federated:
        return event({"reports": {state.id: state.shares}})
    tally = await sources.store.tally(state.id)
    version = state.model_version or 0
    return event({"reports": {state.id: state.reports}, "questions": tally.n.tolist(), "version": version})


async def get_model(visit: Visit, sources: Sources) -> web.Response:
    """A version of the model as a file, by default the latest; of a federated campaign the one there is now."""
    state = await sources.store.state(visit.campaign_id)
    text = visit.query.get("version")
    if text is not None and not (text.isascii() and text.isdigit() and 0 < len(text) < 10):
        raise PageError(404, "No such version", "Versions count from 1.")
    if state.federated and text is None:
        body = await sources.federated_model(await sources.campaign(state.id))
        name = "model.json"
    else:
        model = await sources.store.model(state.id, None if text is None else int(text))
        body = None if model is None else model.document.encode()
        name = "" if model is None else f"model-{model.version}.json"
    if body is None:
        raise PageError(404, "No such model", "The campaign has no model yet, or not this version. Train it first.")
    return download(body, name)


async def get_document(visit: Visit, sources: Sources) -> web.Response:
    """The document bytes as a file."""
    return download(await sources.store.document(visit.campaign_id), "campaign.json")


def download(body: bytes, name: str) -> web.Response:
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return web.Response(body=body, content_type="application/json", headers=headers)


async def post_train(visit: Visit, sources: Sources) -> web.Response:
    """Train on what was counted so far and publish the model under the next version."""
    state = await sources.store.state(visit.campaign_id)
    try:
        async with recorded(sources.store, visit.actor, "publish model", state.id):
            _, (model,) = await publish_trained(sources.store, [state.id], anyway=visit.form.get("anyway") == "yes")
    except UntrainableError as error:
        campaign = await sources.campaign(state.id)
        values = await _values(visit, sources, state, campaign)
        return page("campaign.html", 409, **{**values, "problem": f"Nothing was published: {error}."}, **visit.common())
    sources.mutated("model-published")
    return see(f"/campaigns/{state.id}?trained={model.version}#models")


async def post_close(visit: Visit, sources: Sources) -> web.Response:
    """Accept no more reports, once the form says that this is meant."""
    state = await sources.store.state(visit.campaign_id)
    if visit.form.get("sure") != "yes":
        raise PageError(400, "Nothing was closed", "Tick the box beside the button, and send it again.")
    async with recorded(sources.store, visit.actor, "close campaign", state.id):
        await sources.store.close_campaign(state.id)
    sources.mutated("campaign-closed")
    return see(f"/campaigns/{state.id}")


async def _values(visit: Visit, sources: Sources, state: CampaignState, campaign: Campaign) -> dict[str, Any]:
    liars = _number(visit.query.get("liars"), 0, MOST_LIARS)
    batch = _number(visit.query.get("batch"), DEFAULT_BATCH, MOST_BATCH)
    shown = None
    if not state.federated:
        # What estimates and devices see, and what no release shows yet, as the HTTP API has it.
        counted = await sources.store.tally(state.id)
        released = await tally_to_publish(sources.store, campaign) if campaign.asks == MODEL else counted
        shown = await asyncio.to_thread(_shown, campaign, counted, released, liars, max(batch, 1))
    points = [*sources.history.of(state.id), (sources.clock(), state.reports)]
    return {
        "state": state,
        "campaign": campaign,
        "document": json.loads(campaign.document),
        "status": state.status(sources.clock()),
        "shown": shown,
        "plot": Markup("") if state.federated else curve(points, title="Reports against time"),
        "points": thinned(points, IN_A_TABLE),
        "since": sources.history.since,
        "liars": liars,
        "slider_most": slider_most(shown.devices if shown else 0, liars),
        "batch": max(batch, 1),
        "models": await _models(sources, state),
        "nodes": await sources.store.shares(state.id) if state.federated else None,
        "trained": _number(visit.query.get("trained"), 0, 10**9),
        "problem": "",
    }


def slider_most(devices: int, liars: int) -> int:
    """A twentieth of the devices, and no less than what is chosen."""
    return max(20, -(-devices // 20), liars)


def _shown(campaign: Campaign, counted: Tally, released: Tally, liars: int, batch: int) -> Shown:
    devices = devices_of(campaign, counted)
    numbers = counted.n.tolist()
    promised = of_campaign(campaign, released, batch)
    more = more_devices(campaign, devices)
    if campaign.asks != MODEL:
        return Shown(devices, precisions(campaign, devices, numbers), promised, None, [], more)
    estimates = estimate(campaign, released)
    return Shown(
        devices,
        precisions(campaign, devices, numbers, estimates),
        promised,
        class_prior(estimates, liars),
        list(of_features(estimates, liars)),
        more,
    )


async def _models(sources: Sources, state: CampaignState) -> list[ModelRow]:
    latest = state.model_version or 0
    found = [
        await sources.store.model(state.id, number) for number in range(latest, max(0, latest - MOST_VERSIONS), -1)
    ]
    return [model_row(model) for model in found if model is not None]


def _number(text: str | None, default: int, most: int) -> int:
    """A number of an address; the default for anything that is none, and never more than ``most``."""
    return min(int(text), most) if text and text.isascii() and text.isdigit() and len(text) < 16 else default
