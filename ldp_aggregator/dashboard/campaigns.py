"""One campaign: what it asks and promises, what was learned so far, what it refused, its models; and the forms that
change it: train, publish an evaluated model, draft an evaluation, close, reopen, seal.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from aiohttp import web
from markupsafe import Markup

from ldp_aggregator.counting.tally import Arrivals, Tally
from ldp_aggregator.dashboard.creation import DEFAULT_DEVICES, show_draft
from ldp_aggregator.dashboard.drawing.evaluations import ModelRow, drawn, figure_text, model_row
from ldp_aggregator.dashboard.drawing.learned_features import (
    Answer,
    FeatureFigure,
    OverTime,
    believed,
    class_prior,
    health,
    lies,
    of_features,
    over_time,
    quality,
)
from ldp_aggregator.dashboard.drawing.plots import curve
from ldp_aggregator.dashboard.drawing.precision import Precision, Promises, Reach, of_campaign, precisions, reaches
from ldp_aggregator.dashboard.overview import IN_A_TABLE, devices_of, event, nodes_of, points_of
from ldp_aggregator.dashboard.page_sources import Readings, Refused, Sources, refused_by, thinned
from ldp_aggregator.dashboard.pages import PageError, page
from ldp_aggregator.dashboard.session import Visit, see
from ldp_aggregator.estimation.estimates import estimate
from ldp_aggregator.service.publishing import (
    UntrainableError,
    draft_evaluation,
    evaluation_so_far,
    publish_evaluated,
    publish_trained,
    tally_to_publish,
    tally_to_show,
    trained_on,
)
from ldp_aggregator.service.rights import recorded
from ldp_aggregator.store.contract import ABSENT, REFUSED, CampaignState, StoreError
from ldp_protocols import Campaign
from ldp_protocols.document.authored import MOMENTS, SCORE, STATISTICS
from ldp_protocols.errors import LdpError

MOST_LIARS: Final = 1_000_000
MOST_BATCH: Final = 1_000_000_000
DEFAULT_BATCH: Final = 1000
USUAL_LIARS: Final = 100
"""One device in so many is taken to lie, unless the page is asked for another number."""
MOST_VERSIONS: Final = 20
"""Shown, the latest; every one can be downloaded by its number."""


@dataclass(frozen=True)
class Shown:
    """The numbers of a campaign's page."""

    devices: int
    questions: list[Precision]
    promises: Promises
    more: list[Reach]
    prior: FeatureFigure | None = None
    findings: Sequence[FeatureFigure] = ()
    over_time: OverTime | None = None


async def get_live(visit: Visit, sources: Sources) -> web.Response:
    """The numbers of reports now, as one server-sent event."""
    state = await sources.store.state(visit.campaign_id)
    if state.federated:
        return event({"reports": {state.id: state.shares}})
    tally = await tally_to_show(sources.store, await sources.campaign(state.id))
    version = state.model_version or 0
    return event({"reports": {state.id: state.reports}, "questions": tally.pooled().n.tolist(), "version": version})


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


async def campaign_page(visit: Visit, sources: Sources, problem: str = "", status: int = 200) -> web.Response:
    """The page of a campaign; with what is wrong, where a form was about something that cannot be done."""
    state = await sources.store.state(visit.campaign_id)
    values = await _values(visit, sources, state, await sources.campaign(state.id))
    return page("campaign.html", status, problem=problem, **values, **visit.common())


async def _values(visit: Visit, sources: Sources, state: CampaignState, campaign: Campaign) -> dict[str, Any]:
    liars = _number(visit.query.get("liars"), None, MOST_LIARS)
    batch = _number(visit.query.get("batch"), DEFAULT_BATCH, MOST_BATCH)
    shown, evaluation = None, None
    if not state.federated:
        # What estimates and devices see, and what no release shows yet, as the HTTP API has it.
        counted = await tally_to_show(sources.store, campaign)
        released = counted if campaign.asks == MOMENTS else await tally_to_publish(sources.store, campaign)
        if liars is None:
            liars = -(-devices_of(campaign, counted) // (USUAL_LIARS * campaign.answers_of_a_person))
        shown = await asyncio.to_thread(_shown, campaign, counted, released, state.arrivals, liars, max(batch, 1))
        evaluation = await _evaluation(campaign, released)
    readings = await asyncio.to_thread(sources.readings)
    points = points_of(state, sources)
    status, models = state.status(sources.clock()), await _models(sources, state)
    refused = refused_by(readings, state.id, sources.report_codes, sources.upload_codes)
    return {
        "state": state,
        "campaign": campaign,
        "document": json.loads(campaign.document),
        "status": status,
        "is_keyless": state.id in readings.keyless,
        "verdict": _verdict(state, shown, readings, refused, models, liars or 0, status),
        "shown": shown,
        "plot": Markup("") if state.federated else curve(points, title="Reports against time"),
        "points": thinned(points, IN_A_TABLE),
        "since": sources.history.since,
        "liars": liars or 0,
        "slider_most": slider_most(shown.devices if shown else 0, liars or 0),
        "batch": max(batch, 1),
        "guarantee": await _guarantee(sources, campaign) if state.federated else None,
        "refused": refused,
        "evaluation": evaluation,
        "drawn": drawn(evaluation) if evaluation else [],
        "figure_text": figure_text,
        "trained_on": trained_on(campaign) if campaign.asks == SCORE else [],
        "models": models,
        "federated": await nodes_of(sources, state) if state.federated else None,
        "trained": _number(visit.query.get("trained"), 0, 10**9),
    }


def _verdict(
    state: CampaignState,
    shown: Shown | None,
    readings: Readings,
    refused: Sequence[Refused],
    models: Sequence[ModelRow],
    liars: int,
    status: str,
) -> dict[str, Answer] | None:
    """Return the answers at the top of the page, of a campaign whose devices tell classes or values."""
    if shown is None or not shown.findings:
        return None
    shares = shown.findings if shown.prior is None else [shown.prior]
    width = max((one.reached for one in shown.questions if one.is_share and one.reached is not None), default=math.inf)
    return {
        "health": health(status, state.reports, refused, width, readings.wrong_with(state.id)),
        "quality": quality(models),
        "lies": lies(liars, shown.devices, shares, refused),
    }


def slider_most(devices: int, liars: int) -> int:
    """A twentieth of the devices, and no less than what is chosen."""
    return max(20, -(-devices // 20), liars)


def _shown(campaign: Campaign, counted: Tally, released: Tally, arrivals: Arrivals, liars: int, batch: int) -> Shown:
    numbers = counted.pooled().n.tolist()
    devices = devices_of(campaign, counted)
    promised = of_campaign(campaign, released, arrivals, batch)
    more = reaches(campaign, devices)
    if campaign.asks == MOMENTS:
        return Shown(devices, precisions(campaign, devices, numbers), promised, more)
    estimates = estimate(campaign, released)
    reached = precisions(campaign, devices, numbers, estimates)
    if campaign.asks == SCORE:
        return Shown(devices, reached, promised, more)
    if campaign.asks == STATISTICS:
        findings = of_features(estimates, None, liars)
        return Shown(devices, reached, promised, more, None, findings, over_time(campaign, released))
    try:
        belief = believed(estimates)
    except ValueError:  # More than can be believed together; whoever trains is told.
        return Shown(devices, reached, promised, more)
    prior, features = class_prior(estimates, belief, liars), of_features(estimates, belief, liars)
    return Shown(devices, reached, promised, more, prior, features, over_time(campaign, released))


async def _evaluation(campaign: Campaign, released: Tally) -> dict[str, Any] | None:
    """The figures of an evaluation round whose libraries are installed; else None."""
    if campaign.asks != SCORE:
        return None
    try:
        return (await evaluation_so_far(campaign, released)).to_json()
    except LdpError as error:
        if error.code != "not-installed":
            raise
        return None


async def _guarantee(sources: Sources, campaign: Campaign) -> Mapping[str, Any] | None:
    """The guarantee in the model of today's shares, which counts all that were ever sent."""
    body = await sources.federated_model(campaign)
    found = None if body is None else json.loads(body).get("training", {}).get("guarantee")
    return found if isinstance(found, dict) else None


async def _models(sources: Sources, state: CampaignState) -> list[ModelRow]:
    latest = state.model_version or 0
    found = [
        await sources.store.model(state.id, number) for number in range(latest, max(0, latest - MOST_VERSIONS), -1)
    ]
    return [model_row(model) for model in found if model is not None]


_Default = TypeVar("_Default", int, None)


def _number(text: str | None, default: _Default, most: int) -> int | _Default:
    """A number of an address; the default for anything that is none, and never more than ``most``."""
    return min(int(text), most) if text and text.isascii() and text.isdigit() and len(text) < 16 else default


async def post_train(visit: Visit, sources: Sources) -> web.Response:
    """Train on what was counted so far and publish the model under the next version."""
    state = await sources.store.state(visit.campaign_id)
    try:
        async with recorded(sources.store, visit.actor, "publish model", state.id):
            _, (model,) = await publish_trained(
                sources.store, [state.id], anyway=visit.form.get("anyway") == "yes", apart=True
            )
    except UntrainableError as error:
        return await campaign_page(visit, sources, f"Nothing was published: {error}.", 409)
    sources.mutated("model-published")
    return see(f"/campaigns/{state.id}?trained={model.version}#models")


async def post_choose(visit: Visit, sources: Sources) -> web.Response:
    """Publish the model of an evaluation round, for the campaigns it was trained on and for the round."""
    campaign = await sources.campaign((await sources.store.state(visit.campaign_id)).id)
    names = trained_on(campaign)
    try:
        async with AsyncExitStack() as acts:
            for name in dict.fromkeys((*names, campaign.id)):
                await sources.store.state(name)
                await acts.enter_async_context(recorded(sources.store, visit.actor, "publish model", name))
            _, models = await publish_evaluated(sources.store, names, campaign.id)
    except UntrainableError as error:
        return await campaign_page(visit, sources, f"Nothing was published: {error}.", 409)
    except StoreError as error:
        if error.code not in ABSENT:
            raise
        problem = f"Nothing was published: the model comes from campaign {name}, which is not here."
        return await campaign_page(visit, sources, problem, 409)
    sources.mutated("model-published")
    return see(f"/campaigns/{campaign.id}?trained={models[-1].version}#models")


async def post_round(visit: Visit, sources: Sources) -> web.Response:
    """Show the form that creates a campaign, with the draft of an evaluation round in it; nothing is published."""
    state = await sources.store.state(visit.campaign_id)
    try:
        draft = await draft_evaluation(sources.store, [state.id], apart=True)
    except UntrainableError as error:
        return await campaign_page(visit, sources, f"There is no draft of an evaluation yet: {error}.", 409)
    text = json.dumps(draft, indent=2, ensure_ascii=False)
    return await show_draft(visit, {"draft": text, "devices": str(state.reports or DEFAULT_DEVICES)})


ENDS: Final = {"close": "closed", "reopen": "reopened", "seal": "sealed"}


async def post_end(act: str, visit: Visit, sources: Sources) -> web.Response:
    """Once confirmed, stop accepting reports, resume while ids are kept, or drop a closed campaign's ids for good."""
    store = sources.store
    change = {"close": store.close_campaign, "reopen": store.reopen_campaign, "seal": store.seal_campaign}[act]
    state = await store.state(visit.campaign_id)
    if visit.form.get("sure") != "yes":
        raise PageError(400, f"Nothing was {ENDS[act]}", "Tick the box beside the button, and send it again.")
    try:
        async with recorded(store, visit.actor, f"{act} campaign", state.id):
            await change(state.id)
    except StoreError as error:
        if error.code not in REFUSED:
            raise
        return await campaign_page(visit, sources, f"Nothing was {ENDS[act]}: {error}.", 409)
    sources.mutated(f"campaign-{ENDS[act]}")
    return see(f"/campaigns/{state.id}#end")
