"""What operators ask, on a listener of its own and with an admin token; and whether this instance is well."""

from __future__ import annotations

import asyncio
from typing import Final

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST

from ldp_aggregator.estimation.simplex import POSTERIOR, TRAINING_MODES
from ldp_aggregator.server.api.authorisation import authorise
from ldp_aggregator.server.api.bodies import held_body
from ldp_aggregator.server.api.query import campaign_id, parameters, whole_number
from ldp_aggregator.server.api.rows import JSON, STORED, Operation
from ldp_aggregator.server.context import Context
from ldp_aggregator.server.problems import RETRY_SECONDS, ProblemError, retry_later
from ldp_aggregator.service.drafts import ANOTHER_KIND, check_kind, compile_draft
from ldp_aggregator.service.publishing import TrainingOptions, UntrainableError, UselessModelError, publish_trained
from ldp_aggregator.store.clock import utc_now
from ldp_aggregator.store.contract import TAKES_REPORTS, UNKNOWN
from protocols import DraftError

TOML: Final = "application/toml"
EXPOSITION: Final = "text/plain"


async def post_campaign(request: web.Request, context: Context) -> web.Response:
    """Compile and publish a draft. The same draft gives the same id; the second time nothing is made (200).

    A ``federated`` campaign takes shares of nodes and no reports from the start; others become so by a first share.
    """
    await authorise(request, context.store, "admin")
    values = parameters(request, ["max_reports", "federated"])
    most = whole_number(values, "max_reports")
    if values.get("federated", "false") not in ("true", "false"):
        raise ProblemError("malformed-query", "federated must be true or false")
    federated = values.get("federated") == "true"
    async with held_body(request, context, (JSON, TOML)) as body:
        try:
            campaign = await asyncio.to_thread(compile_draft, body, toml=request.content_type == TOML)
            check_kind(campaign, federated=federated, max_reports=most)
        except DraftError as error:
            raise ProblemError(error.code, str(error), members={"field": error.field}) from None
    created = await context.store.create_campaign(campaign, max_reports=most, federated=federated)
    if not created and federated and not await context.campaigns.is_federated(campaign.id):
        raise ProblemError(TAKES_REPORTS, ANOTHER_KIND)
    if created:
        context.metrics.mutations.labels("campaign-created").inc()
    headers = {"Location": f"/v1/campaigns/{campaign.id}"}
    return web.json_response({"id": campaign.id}, status=201 if created else 200, headers=headers)


async def get_campaigns(request: web.Request, context: Context) -> web.Response:
    """All campaigns and their state, oldest first."""
    await authorise(request, context.store, "admin")
    parameters(request, ())
    return web.json_response({"campaigns": [state.to_json(utc_now()) for state in await context.store.campaigns()]})


async def close_campaign(request: web.Request, context: Context) -> web.Response:
    """Accept no more reports. The ids are dropped after the final tally."""
    await authorise(request, context.store, "admin")
    parameters(request, ())
    state = await context.store.close_campaign(campaign_id(request))
    context.metrics.mutations.labels("campaign-closed").inc()
    return web.json_response(state.to_json(utc_now()))


async def train_campaign(request: web.Request, context: Context) -> web.Response:
    """Train on what was counted so far and publish the model under the next version.

    One that cannot be expected to be above always saying the most frequent class only with ``anyway``.
    """
    await authorise(request, context.store, "admin")
    values = parameters(request, ["post", "anyway"])
    post, anyway = values.get("post", POSTERIOR), values.get("anyway", "false")
    if post not in TRAINING_MODES:
        raise ProblemError("malformed-query", f"post must be one of {', '.join(TRAINING_MODES)}")
    if anyway not in ("true", "false"):
        raise ProblemError("malformed-query", "anyway must be true or false")
    options = TrainingOptions(post=post)
    try:
        reports, (model,) = await publish_trained(
            context.store, [campaign_id(request)], options, anyway=anyway == "true"
        )
    except UselessModelError as error:
        raise ProblemError("useless-model", f"{error}; anyway=true publishes it") from None
    except UntrainableError as error:
        raise ProblemError("nothing-to-train", str(error)) from None
    context.metrics.mutations.labels("model-published").inc()
    return web.json_response({"version": model.version, "reports": reports})


async def get_health(_request: web.Request, _context: Context) -> web.Response:
    """The process runs."""
    return web.json_response({"status": "ok"})


async def get_metrics(_request: web.Request, context: Context) -> web.Response:
    """Counts and times in Prometheus' exposition format."""
    body = await asyncio.to_thread(context.metrics.render)
    return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_LATEST})


async def get_readiness(_request: web.Request, context: Context) -> web.Response:
    """The store takes writes, as the writer last saw it; 503 otherwise."""
    if not context.ingest.health.is_well:
        raise retry_later("store-unavailable", RETRY_SECONDS)
    return web.json_response({"status": "ready"})


_STATE: Final = {
    "type": "object",
    "required": ["id", "title", "status", "created", "reports"],
    "properties": {
        "id": {"type": "string"},
        "title": {"type": "string"},
        "status": {"enum": ["waiting", "open", "closed"]},
        "reports": {"type": "integer"},
        "max_reports": {"type": ["integer", "null"]},
        "model_version": {"type": ["integer", "null"]},
        "federated": {"type": "boolean"},
        "shares": {"type": ["integer", "null"]},
    },
}
_CREATED: Final = {"type": "object", "required": ["id"], "properties": {"id": {"type": "string"}}}
_TRAINED: Final = {
    "type": "object",
    "required": ["version", "reports"],
    "properties": {"version": {"type": "integer"}, "reports": {"type": "integer"}},
}
_STATUS: Final = {"type": "object", "required": ["status"], "properties": {"status": {"type": "string"}}}

OPERATIONS: Final = (
    Operation(
        "POST",
        "/admin/v1/campaigns",
        post_campaign,
        scopes=("admin",),
        query={"max_reports": {"type": "integer", "minimum": 1}, "federated": {"type": "boolean"}},
        bodies={JSON: {"type": "object"}, TOML: {"type": "string"}},
        answers={200: (JSON, _CREATED), 201: (JSON, _CREATED)},
        codes=("invalid-draft", TAKES_REPORTS, "malformed-query", *STORED),
    ),
    Operation(
        "GET",
        "/admin/v1/campaigns",
        get_campaigns,
        scopes=("admin",),
        answers={200: (JSON, {"type": "object", "properties": {"campaigns": {"type": "array", "items": _STATE}}})},
        codes=("malformed-query", *STORED),
    ),
    Operation(
        "POST",
        "/admin/v1/campaigns/{id}/close",
        close_campaign,
        scopes=("admin",),
        answers={200: (JSON, _STATE)},
        codes=(UNKNOWN, "malformed-query", *STORED),
    ),
    Operation(
        "POST",
        "/admin/v1/campaigns/{id}/train",
        train_campaign,
        scopes=("admin",),
        query={"post": {"enum": list(TRAINING_MODES)}, "anyway": {"type": "boolean"}},
        answers={200: (JSON, _TRAINED)},
        codes=(UNKNOWN, "nothing-to-train", "useless-model", "malformed-query", *STORED),
    ),
    Operation("GET", "/healthz", get_health, answers={200: (JSON, _STATUS)}),
    Operation("GET", "/readyz", get_readiness, answers={200: (JSON, _STATUS)}, codes=STORED),
    Operation("GET", "/metrics", get_metrics, answers={200: (EXPOSITION, {"type": "string"})}),
)
