"""What operators ask, on a listener of its own and with an admin token; and whether this instance is well."""

from __future__ import annotations

import asyncio

from aiohttp import web

from ldp_aggregator.drafts import compile_draft
from ldp_aggregator.publishing import UntrainableError, publish_trained
from ldp_aggregator.server.context import STORE
from ldp_aggregator.server.problems import ProblemError
from ldp_aggregator.server.public import JSON
from ldp_aggregator.server.requests import authorise, campaign_id, held_body, parameters, whole_number
from ldp_aggregator.simplex import FLOOR, NORM_SUB
from ldp_aggregator.store.clock import utc_now
from protocols import DraftError

TOML: dict[str, bool] = {JSON: False, "application/toml": True}
"""Media type of a draft, and whether it is TOML."""


async def post_campaign(request: web.Request) -> web.Response:
    """Compile and publish a draft. The same draft gives the same id; the second time nothing is made (200)."""
    await authorise(request, "admin")
    most = whole_number(parameters(request, ["max_reports"]), "max_reports")
    async with held_body(request, TOML) as body:
        try:
            campaign = await asyncio.to_thread(compile_draft, body, toml=TOML[request.content_type])
        except DraftError as error:
            raise ProblemError(error.code, str(error), members={"field": error.field}) from None
    created = await request.app[STORE].create_campaign(campaign, max_reports=most)
    headers = {"Location": f"/v1/campaigns/{campaign.id}"}
    return web.json_response({"id": campaign.id}, status=201 if created else 200, headers=headers)


async def get_campaigns(request: web.Request) -> web.Response:
    await authorise(request, "admin")
    parameters(request, ())
    return web.json_response(
        {"campaigns": [state.to_json(utc_now()) for state in await request.app[STORE].campaigns()]}
    )


async def close_campaign(request: web.Request) -> web.Response:
    await authorise(request, "admin")
    parameters(request, ())
    state = await request.app[STORE].close_campaign(campaign_id(request))
    return web.json_response(state.to_json(utc_now()))


async def train_campaign(request: web.Request) -> web.Response:
    """Train on what was counted so far and publish the model under the next version."""
    await authorise(request, "admin")
    post = parameters(request, ["post"]).get("post", NORM_SUB)
    if post not in (NORM_SUB, FLOOR):
        raise ProblemError("malformed-query", f"post must be {NORM_SUB} or {FLOOR}")
    try:
        reports, model = await publish_trained(request.app[STORE], campaign_id(request), post)
    except UntrainableError as error:
        raise ProblemError("nothing-to-train", str(error)) from None
    return web.json_response({"version": model.version, "reports": reports})


async def get_health(_request: web.Request) -> web.Response:
    """The process runs."""
    return web.json_response({"status": "ok"})


async def get_readiness(request: web.Request) -> web.Response:
    """The store takes writes; 503 otherwise."""
    await request.app[STORE].check()
    return web.json_response({"status": "ready"})


def routes() -> list[web.RouteDef]:
    return [
        web.post("/admin/v1/campaigns", post_campaign),
        web.get("/admin/v1/campaigns", get_campaigns),
        web.post("/admin/v1/campaigns/{id}/close", close_campaign),
        web.post("/admin/v1/campaigns/{id}/train", train_campaign),
        web.get("/healthz", get_health),
        web.get("/readyz", get_readiness),
    ]
