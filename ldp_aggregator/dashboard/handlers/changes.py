"""The forms that change a campaign: train, publish an evaluated model, draft an evaluation, close, reopen, seal."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Final

from aiohttp import web

from ldp_aggregator.dashboard.handlers.campaigns import campaign_page
from ldp_aggregator.dashboard.handlers.creation import DEFAULT_DEVICES, show_draft
from ldp_aggregator.dashboard.handlers.entrance import see
from ldp_aggregator.dashboard.page_sources import Sources
from ldp_aggregator.dashboard.pages import PageError
from ldp_aggregator.dashboard.session import Visit
from ldp_aggregator.service.publishing import (
    UntrainableError,
    draft_evaluation,
    publish_evaluated,
    publish_trained,
    trained_on,
)
from ldp_aggregator.service.rights import recorded
from ldp_aggregator.store.contract import CampaignState, RefusedError, UnknownCampaignError


async def post_train(visit: Visit, sources: Sources) -> web.Response:
    """Train on what was counted so far and publish the model under the next version."""
    state = await sources.store.state(visit.campaign_id)
    try:
        async with recorded(sources.store, visit.actor, "publish model", state.id):
            _, (model,) = await publish_trained(sources.store, [state.id], anyway=visit.form.get("anyway") == "yes")
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
    except UnknownCampaignError as error:
        problem = f"Nothing was published: the model comes from campaign {error.campaign_id}, which is not here."
        return await campaign_page(visit, sources, problem, 409)
    sources.mutated("model-published")
    return see(f"/campaigns/{campaign.id}?trained={models[-1].version}#models")


async def post_round(visit: Visit, sources: Sources) -> web.Response:
    """Show the form that creates a campaign, with the draft of an evaluation round in it; nothing is published."""
    state = await sources.store.state(visit.campaign_id)
    try:
        draft = await draft_evaluation(sources.store, [state.id])
    except UntrainableError as error:
        return await campaign_page(visit, sources, f"There is no draft of an evaluation yet: {error}.", 409)
    text = json.dumps(draft, indent=2, ensure_ascii=False)
    return await show_draft(visit, {"draft": text, "devices": str(state.reports or DEFAULT_DEVICES)})


async def post_close(visit: Visit, sources: Sources) -> web.Response:
    """Accept no more reports, once the form says that this is meant."""
    return await _end(visit, sources, "close", sources.store.close_campaign)


async def post_reopen(visit: Visit, sources: Sources) -> web.Response:
    """Take a closing back, for as long as the ids are there."""
    return await _end(visit, sources, "reopen", sources.store.reopen_campaign)


async def post_seal(visit: Visit, sources: Sources) -> web.Response:
    """Drop the ids of a closed campaign, for good."""
    return await _end(visit, sources, "seal", sources.store.seal_campaign)


_DONE: Final = {"close": "closed", "reopen": "reopened", "seal": "sealed"}


async def _end(
    visit: Visit, sources: Sources, act: str, change: Callable[[str], Awaitable[CampaignState]]
) -> web.Response:
    state = await sources.store.state(visit.campaign_id)
    if visit.form.get("sure") != "yes":
        raise PageError(400, f"Nothing was {_DONE[act]}", "Tick the box beside the button, and send it again.")
    try:
        async with recorded(sources.store, visit.actor, f"{act} campaign", state.id):
            await change(state.id)
    except RefusedError as error:
        return await campaign_page(visit, sources, f"Nothing was {_DONE[act]}: {error}.", 409)
    sources.mutated(f"campaign-{_DONE[act]}")
    return see(f"/campaigns/{state.id}#end")
