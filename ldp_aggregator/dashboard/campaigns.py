"""One campaign: four answers on every page of it, and behind tabs what was learned, its model, its health, what it
promises, its settings; and the forms that change it: train, publish an evaluated model, draft an evaluation, close,
reopen, seal.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar

from aiohttp import web

from ldp_aggregator.dashboard.campaign_facts import (
    Numbers,
    evaluation_of,
    facts_of,
    liars_of,
    model_of,
    refused_of,
    shown_of,
)
from ldp_aggregator.dashboard.creation import DEFAULT_DEVICES, show_draft
from ldp_aggregator.dashboard.drawing import learned_features as drawing
from ldp_aggregator.dashboard.drawing.evaluations import confusion_of, drawn, figure_text
from ldp_aggregator.dashboard.drawing.learned_features import FeatureFigure
from ldp_aggregator.dashboard.drawing.plots import curve, legend_mark
from ldp_aggregator.dashboard.drawing.precision import of_campaign
from ldp_aggregator.dashboard.overview import IN_A_TABLE, event, nodes_of, points_of
from ldp_aggregator.dashboard.page_sources import Sources, thinned
from ldp_aggregator.dashboard.pages import PageError, page
from ldp_aggregator.dashboard.session import Visit, see
from ldp_aggregator.service.publishing import (
    UntrainableError,
    draft_evaluation,
    publish_evaluated,
    publish_trained,
    tally_to_show,
    trained_on,
)
from ldp_aggregator.service.rights import recorded
from ldp_aggregator.service.verdicts import HEALTH, LEARNED, LIES, MODEL, Facts, Verdict, decide
from ldp_aggregator.store.contract import ABSENT, REFUSED, CampaignState, StoreError
from ldp_protocols import Campaign
from ldp_protocols.document.authored import SCORE, STATISTICS

MOST_LIED: Final = 10.0
"""Percent of the devices that may be taken to lie."""
MOST_BATCH: Final = 1_000_000_000
DEFAULT_BATCH: Final = 1000
MOST_VERSIONS: Final = 20
"""Shown, the latest; every one can be downloaded by its number."""
TOP: Final = 3
"""Features that are drawn at first."""
MOST_ROWS: Final = 240
"""Rows of a table of numbers on a page; ``ldp-aggregator estimates`` has all."""

TABS: Final = ("learned", "model", "health", "privacy", "settings")


@dataclass(frozen=True)
class Question:
    """One of the four answers at the top of a campaign's pages, and the tab that has more on it."""

    asks: str
    verdict: Verdict
    tab: str


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


async def campaign_page(
    visit: Visit, sources: Sources, problem: str = "", status: int = 200, tab: str | None = None
) -> web.Response:
    """A tab of a campaign, by default its first; with what is wrong, where a form was about something that cannot be
    done.
    """
    state = await sources.store.state(visit.campaign_id)
    campaign = await sources.campaign(state.id)
    tabs = tabs_of(state, campaign)
    current = tab or tabs[0]
    if problem and current not in tabs:
        current = tabs[0]
    if current not in tabs:
        raise PageError(
            404,
            "No such page",
            "This campaign has no such page: a federated one has a model, one without a label has none.",
        )
    numbers = None if state.federated else await shown_of(sources, campaign, state)
    readings = await asyncio.to_thread(sources.readings)
    facts = await facts_of(sources, state, readings, await sources.store.campaigns(), numbers)
    values = {
        "state": state,
        "campaign": campaign,
        "numbers": numbers,
        "is_behind": numbers is not None and numbers.reports < state.reports,
        "status": facts.status,
        "is_keyless": state.id in readings.keyless,
        "facts": facts,
        "answers": _answers(facts),
        "tabs": tabs,
        "tab": current,
        "trained": _number(visit.query.get("trained"), 0, 10**9),
        "trained_on": trained_on(campaign) if campaign.asks == SCORE else [],
        **await _TABS[current](visit, sources, state, campaign, numbers),
    }
    return page("campaign.html", status, problem=problem, **values, **visit.common())


def tabs_of(state: CampaignState, campaign: Campaign) -> tuple[str, ...]:
    """The tabs of a campaign, the first of which has the campaign's own address; without a label there is no model."""
    if state.federated:
        return TABS[1:]
    return tuple(tab for tab in TABS if tab != "model" or campaign.asks != STATISTICS)


def _answers(facts: Facts) -> list[Question]:
    health, model = decide(HEALTH, facts), decide(MODEL, facts)
    if facts.federated:
        return [Question("How good is the model?", model, "model"), Question("Is it healthy?", health, "health")]
    learned = Question("What was learned?", decide(LEARNED, facts), "learned")
    return [
        *([] if facts.is_round else [learned]),
        *([] if facts.shares else [Question("How good is the model?", model, "model")]),
        Question("Is it healthy?", health, "health"),
        Question("Is somebody lying?", decide(LIES, facts), "health"),
    ]


async def _learned(
    visit: Visit, sources: Sources, _state: CampaignState, campaign: Campaign, numbers: Numbers | None
) -> dict[str, Any]:
    if numbers is None or campaign.asks != SCORE:
        return await _figures(visit, sources, numbers)
    evaluation = await evaluation_of(sources, numbers)
    return {
        "evaluation": evaluation,
        "confusion": confusion_of(evaluation) if evaluation else None,
        "drawn": drawn(evaluation) if evaluation else [],
        "figure_text": figure_text,
        "shade": drawing.shade,
    }


async def _figures(visit: Visit, sources: Sources, numbers: Numbers | None) -> dict[str, Any]:
    """Classes and features: those that tell most, or the one that is asked for."""
    if numbers is None or numbers.estimates is None or not numbers.features:
        return {"features": []}
    campaign, lied = numbers.campaign, _percent(visit.query.get("lied"))
    liars = liars_of(campaign, numbers.devices, lied / 100)
    features = numbers.features
    if liars:
        work = partial(asyncio.to_thread, numbers.features_if, liars)
        features = await sources.latest.soon(("lied", campaign.id, lied), numbers.reports, work)
    chosen = _chosen(features, visit.query.get("feature"))
    values = {"features": features, "chosen": chosen, "lied": lied, "liars": liars, "most_lied": MOST_LIED}
    return values | await asyncio.to_thread(_drawn, sources, numbers, [chosen] if chosen else features[:TOP], liars)


def _drawn(sources: Sources, numbers: Numbers, findings: list[FeatureFigure], liars: int) -> dict[str, Any]:
    """Plots of the classes and of these features, which take long enough to keep other visitors waiting."""
    campaign = numbers.campaign
    prior = None
    if numbers.estimates is not None and numbers.belief is not None:
        prior = drawing.class_prior(numbers.estimates, numbers.belief, liars)
    return {
        "prior": prior,
        "findings": findings,
        "plots": drawing.draw((*filter(None, [prior]), *findings), campaign.label.classes),
        "legend": [(legend_mark(place), name) for place, name in enumerate(campaign.label.classes)],
        "shade": partial(drawing.shade, highest=drawing.highest_cell(findings)),
        "is_drawn": any(one.n and one.more is None for one in findings),
        "most_rows": MOST_ROWS,
        "series": numbers.over_time(sources.clock(), findings[0].title if findings else None),
    }


def _chosen(features: list[FeatureFigure], key: str | None) -> FeatureFigure | None:
    if key is None:
        return None
    found = next((one for one in features if one.key == f"feature-{key}"), None)
    if found is None:
        raise PageError(404, "No such feature", "The campaign asks about fewer features, or about none of this number.")
    return found


async def _model(
    _visit: Visit, sources: Sources, state: CampaignState, _campaign: Campaign, _numbers: Numbers | None
) -> dict[str, Any]:
    latest = state.model_version or 0
    found = [await model_of(sources, state, number) for number in range(latest, max(0, latest - MOST_VERSIONS), -1)]
    return {
        "models": [model for model in found if model is not None],
        "nodes": await nodes_of(sources, state) if state.federated else None,
    }


async def _health(
    _visit: Visit, sources: Sources, state: CampaignState, _campaign: Campaign, numbers: Numbers | None
) -> dict[str, Any]:
    readings = await asyncio.to_thread(sources.readings)
    points = points_of(state, sources)
    return {
        "refused": refused_of(state, readings, sources),
        "plot": "" if state.federated else curve(points, title="Reports against time"),
        "points": thinned(points, IN_A_TABLE),
        "since": sources.history.since,
        "more": numbers.reaches if numbers else [],
    }


async def _privacy(
    visit: Visit, sources: Sources, state: CampaignState, campaign: Campaign, numbers: Numbers | None
) -> dict[str, Any]:
    batch = max(_number(visit.query.get("batch"), DEFAULT_BATCH, MOST_BATCH), 1)
    promises = None
    if numbers is not None:
        work = partial(asyncio.to_thread, of_campaign, campaign, numbers.released, state.arrivals, batch)
        key, version = ("promises", campaign.id, batch), (numbers.reports, state.arrivals)
        promises = await sources.latest.soon(key, version, work)
    return {
        "batch": batch,
        "promises": promises,
        "guarantee": await _guarantee(sources, campaign) if state.federated else None,
    }


async def _settings(
    _visit: Visit, _sources: Sources, _state: CampaignState, _campaign: Campaign, _numbers: Numbers | None
) -> dict[str, Any]:
    return {}


_TABS: Final = {"learned": _learned, "model": _model, "health": _health, "privacy": _privacy, "settings": _settings}


async def _guarantee(sources: Sources, campaign: Campaign) -> Mapping[str, Any] | None:
    """The guarantee in the model of today's shares, which counts all that were ever sent."""
    body = await sources.federated_model(campaign)
    found = None if body is None else json.loads(body).get("training", {}).get("guarantee")
    return found if isinstance(found, dict) else None


def _percent(text: str | None) -> float:
    """A percentage of an address; 0 for anything that is none, and never more than :data:`MOST_LIED`."""
    try:
        found = float(text) if text and len(text) < 16 else 0.0
    except ValueError:
        return 0.0
    return min(found, MOST_LIED) if found > 0 else 0.0


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
        return await campaign_page(visit, sources, f"Nothing was published: {error}.", 409, "model")
    sources.mutated("model-published")
    return see(f"/campaigns/{state.id}/model?trained={model.version}")


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
        return await campaign_page(visit, sources, f"Nothing was published: {error}.", 409, "model")
    except StoreError as error:
        if error.code not in ABSENT:
            raise
        problem = f"Nothing was published: the model comes from campaign {name}, which is not here."
        return await campaign_page(visit, sources, problem, 409, "model")
    sources.mutated("model-published")
    return see(f"/campaigns/{campaign.id}/model?trained={models[-1].version}")


async def post_round(visit: Visit, sources: Sources) -> web.Response:
    """Show the form that creates a campaign, with the draft of an evaluation round in it; nothing is published."""
    state = await sources.store.state(visit.campaign_id)
    try:
        draft = await draft_evaluation(sources.store, [state.id], apart=True)
    except UntrainableError as error:
        return await campaign_page(visit, sources, f"There is no draft of an evaluation yet: {error}.", 409, "model")
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
        return await campaign_page(visit, sources, f"Nothing was {ENDS[act]}: {error}.", 409, "settings")
    sources.mutated(f"campaign-{ENDS[act]}")
    return see(f"/campaigns/{state.id}/settings")
