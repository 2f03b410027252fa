"""What devices and collectors ask: the campaign, the model, the estimates; and where reports arrive, and the noisy
statistics of nodes, which are named by the first token they had.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from typing import Final

from aiohttp import web

from ldp_aggregator.counting.shares import MEDIA_TYPE as SHARE
from ldp_aggregator.counting.shares import ShareError, decode_share, most_bytes
from ldp_aggregator.estimation.simplex import MODES, NORM_SUB
from ldp_aggregator.server.admission import CHALLENGE, authorise
from ldp_aggregator.server.api.query import cacheable, campaign_id, check_head, parameters, read_body, whole_number
from ldp_aggregator.server.api.rows import JSON, STORED, Operation
from ldp_aggregator.server.context import Context
from ldp_aggregator.server.problems import REPORT_CODES, ProblemError
from ldp_aggregator.server.uploads import answer_to
from ldp_aggregator.service.publishing import counts_to_publish, told_estimates
from ldp_aggregator.store.contract import CLOSED, NOT_OPEN, REVOKED, TAKES_REPORTS, TAKES_SHARES, UNKNOWN
from protocols.document.authored import MODEL
from protocols.wire.upload import MEDIA_TYPE

_PATH: Final = "/v1/campaigns/{id}/statistics"
FOREVER: Final = "public, max-age=31536000, immutable"


async def get_campaign(request: web.Request, context: Context) -> web.Response:
    """The document bytes; the id is their hash, so it is the strong ETag too, and they may be cached for ever."""
    parameters(request, ())
    name = campaign_id(request)
    return cacheable(request, await context.campaigns.document(name), name, FOREVER)


async def post_reports(request: web.Request, context: Context) -> web.Response:
    """Count an upload; answered after the commit that holds it is on disk."""
    desk = context.desk
    try:
        terms = await desk.terms(campaign_id(request), request.headers)
        desk.begin(terms, check_head(request, (MEDIA_TYPE,)))
        body = await read_body(request, context, (MEDIA_TYPE,))
        return web.Response(body=answer_to(await desk.counted(terms, body)), content_type=JSON)
    except ProblemError as problem:
        desk.note_refused(request.match_info["id"], problem.code)
        raise


async def get_model(request: web.Request, context: Context) -> web.Response:
    """The latest model, or the version asked for; of a federated campaign, the one of the shares there are now."""
    version = whole_number(parameters(request, ["version"]), "version")
    model = await context.store.model(campaign_id(request), version)
    if model is None:
        if await context.campaigns.is_federated(campaign_id(request)):
            return await _federated_model(request, context, version)
        raise ProblemError("no-model")
    body = model.document.encode()
    tag = hashlib.sha256(body).hexdigest()
    response = cacheable(request, body, tag, "public, no-cache" if version is None else FOREVER)
    response.headers["Model-Version"] = str(model.version)
    return response


async def _federated_model(request: web.Request, context: Context, version: int | None) -> web.Response:
    if version is not None:
        raise ProblemError("no-model", "the model of a federated campaign follows its shares and has no versions")
    body = await context.federated_models.body(await context.campaigns.get(campaign_id(request)))
    return cacheable(request, body, hashlib.sha256(body).hexdigest(), "public, no-cache")


async def get_estimates(request: web.Request, context: Context) -> web.Response:
    """Frequencies, variances and intervals of what was counted so far; for collectors."""
    await authorise(request, context.store, "collector", campaign_id=campaign_id(request))
    return await answer_estimates(request, context)


async def answer_estimates(request: web.Request, context: Context) -> web.Response:
    """The same answer to a collector here and to an administrator on the other listener."""
    values = parameters(request, ["post"])
    post = values.get("post", NORM_SUB)
    if post not in MODES:
        raise ProblemError("malformed-query", f"post must be one of {', '.join(MODES)}")
    campaign = await context.campaigns.get(campaign_id(request))
    if await context.campaigns.is_federated(campaign.id):
        raise ProblemError(TAKES_SHARES, "it has a model, and no estimates")
    tally, arrivals = await counts_to_publish(context.store, campaign)
    estimates = await asyncio.to_thread(lambda: json.dumps(told_estimates(campaign, tally, arrivals, post)))
    return web.Response(body=estimates.encode(), content_type=JSON)


async def post_statistics(request: web.Request, context: Context) -> web.Response:
    """Keep a node's share in place of the one it sent before; answered after the commit that holds it is on disk."""
    token = await authorise(request, context.store, "node", campaign_id=request.match_info["id"])
    parameters(request, ())
    campaign = await context.campaigns.get(request.match_info["id"])
    body = await read_body(request, context, (SHARE,), most=most_bytes(campaign))
    try:
        await asyncio.to_thread(decode_share, body, campaign)
    except ShareError as error:
        context.metrics.shares.labels(error.code).inc()
        raise ProblemError(error.code, str(error)) from None
    refused = None if campaign.asks == MODEL else TAKES_REPORTS
    if refused is None:
        refused = await context.store.put_share(campaign.id, token.node, body, token=token.name)
    _settle(context, refused, "kept")
    return web.json_response({"node": token.node})


async def delete_statistics(request: web.Request, context: Context) -> web.Response:
    """Take a node's share out of the model; done, too, where there is none. Answered after the commit is on disk."""
    token = await authorise(request, context.store, "node", campaign_id=request.match_info["id"])
    parameters(request, ())
    campaign = await context.campaigns.get(request.match_info["id"])
    _settle(context, await context.store.withdraw_share(campaign.id, token.node, token=token.name), "withdrawn")
    return web.Response(status=204)


def _settle(context: Context, refused: str | None, done: str) -> None:
    context.metrics.shares.labels(refused or done).inc()
    if refused is not None:
        raise ProblemError(refused, headers=CHALLENGE if refused == REVOKED else {})


_OBJECT: Final = {"type": "object"}
_REJECTED: Final = {
    "type": "object",
    "required": ["rejected"],
    "properties": {
        "rejected": {
            "type": "array",
            "items": {
                "type": "array",
                "prefixItems": [{"type": "string", "pattern": "^[0-9a-f]{32}$"}, {"enum": sorted(REPORT_CODES)}],
            },
        }
    },
}

_CODES: Final = (UNKNOWN, CLOSED, NOT_OPEN, TAKES_REPORTS, "malformed-query", *STORED)

OPERATIONS: Final = (  # Paths are tried in this order; uploads are nearly all there is.
    Operation(
        "POST",
        "/v1/campaigns/{id}/reports",
        post_reports,
        for_pages=True,
        scopes=("device", "relay"),
        optional_scopes=True,
        bodies={MEDIA_TYPE: {"type": "string", "format": "binary"}},
        answers={200: (JSON, _REJECTED)},
        codes=(
            UNKNOWN,
            CLOSED,
            NOT_OPEN,
            TAKES_SHARES,
            "malformed-upload",
            "too-many-reports",
            "not-admitted",
            "too-many-uploads",
            *STORED,
        ),
    ),
    Operation(
        "GET",
        "/v1/campaigns/{id}",
        get_campaign,
        for_pages=True,
        answers={200: (JSON, _OBJECT), 304: None},
        codes=(UNKNOWN, "malformed-query", *STORED),
    ),
    Operation(
        "GET",
        "/v1/campaigns/{id}/model",
        get_model,
        for_pages=True,
        query={"version": {"type": "integer", "minimum": 1}},
        answers={200: (JSON, _OBJECT), 304: None},
        codes=(UNKNOWN, "no-model", "not-installed", "malformed-query", *STORED),
    ),
    Operation(
        "GET",
        "/v1/campaigns/{id}/estimates",
        get_estimates,
        scopes=("collector",),
        query={"post": {"enum": list(MODES)}},
        answers={200: (JSON, _OBJECT)},
        codes=(UNKNOWN, TAKES_SHARES, "malformed-query", *STORED),
    ),
    Operation(
        "POST",
        _PATH,
        post_statistics,
        scopes=("node",),
        bodies={SHARE: {"type": "string", "format": "binary"}},
        answers={200: (JSON, {"type": "object", "required": ["node"], "properties": {"node": {"type": "string"}}})},
        codes=("malformed-share", "distributed-share", *_CODES),
    ),
    Operation("DELETE", _PATH, delete_statistics, scopes=("node",), answers={204: None}, codes=_CODES),
)
