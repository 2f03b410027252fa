"""What devices and collectors ask: the campaign, the model, the estimates; and where reports arrive."""

from __future__ import annotations

import asyncio
import hashlib
import json
from http import HTTPStatus
from typing import Any, Final

from aiohttp import ETag, web

from ldp_aggregator.counting.tally import Tally
from ldp_aggregator.estimation.estimates import estimate
from ldp_aggregator.estimation.simplex import MODES, NORM_SUB
from ldp_aggregator.learning.published import published_by
from ldp_aggregator.server.api import shares
from ldp_aggregator.server.api.authorisation import authorise
from ldp_aggregator.server.api.bodies import held_body
from ldp_aggregator.server.api.query import campaign_id, parameters, whole_number
from ldp_aggregator.server.api.rows import JSON, STORED, Operation
from ldp_aggregator.server.context import Context
from ldp_aggregator.server.problems import REPORT_CODES, ProblemError
from ldp_aggregator.server.uploads.answers import rejected_body
from ldp_aggregator.server.uploads.limits import most_from_a_device, most_from_a_relay
from ldp_aggregator.server.uploads.reading import read_upload
from ldp_aggregator.service.publishing import tally_to_publish
from ldp_aggregator.store.contract import CLOSED, NOT_OPEN, TAKES_SHARES, UNKNOWN
from protocols import Campaign
from protocols.wire.upload import MEDIA_TYPE

FOREVER: Final = "public, max-age=31536000, immutable"
_REPORTS: Final = (MEDIA_TYPE,)


async def get_campaign(request: web.Request, context: Context) -> web.Response:
    """The document bytes; the id is their hash, so it is the strong ETag too, and they may be cached for ever."""
    parameters(request, ())
    campaign = await context.campaigns.get(campaign_id(request))
    return _cacheable(request, campaign.document, campaign.id, FOREVER)


async def post_reports(request: web.Request, context: Context) -> web.Response:
    """Count an upload; answered after the commit that holds it is on disk."""
    unknown = await _refuse_relay(request, context)
    campaign = await context.campaigns.get(request.match_info["id"])
    limits = context.settings.limits
    most = most_from_a_relay(limits) if unknown is None else most_from_a_device(campaign, limits)
    if unknown is not None:
        await context.admission.check(campaign.id, request.headers)
        context.admission.count(campaign.id)
    try:
        async with held_body(request, context, _REPORTS, most=most.bytes) as body:
            submission = read_upload(campaign, body, most=most.reports)
            outcome = await context.ingest.submit(submission, submission.reports)
    except ProblemError as problem:
        # Too much for a device; who has shown a token learns what is wrong with that.
        if problem.status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE and "Authorization" in request.headers and unknown:
            raise unknown from None
        raise
    if outcome.refused:
        raise ProblemError(outcome.refused)
    return web.Response(body=rejected_body(outcome), content_type=JSON)


async def _refuse_relay(request: web.Request, context: Context) -> ProblemError | None:
    """Why this is no relay, None where it is one; raised where only relays may upload."""
    try:
        if context.settings.uploads_need_token or "Authorization" in request.headers:
            await authorise(request, context.store, "relay")
            return None
    except ProblemError as problem:
        if context.settings.uploads_need_token:
            raise
        return problem
    return ProblemError("missing-token")


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
    response = _cacheable(request, body, tag, "public, no-cache" if version is None else FOREVER)
    response.headers["Model-Version"] = str(model.version)
    return response


async def _federated_model(request: web.Request, context: Context, version: int | None) -> web.Response:
    if version is not None:
        raise ProblemError("no-model", "the model of a federated campaign follows its shares and has no versions")
    body = await context.federated_models.body(await context.campaigns.get(campaign_id(request)))
    return _cacheable(request, body, hashlib.sha256(body).hexdigest(), "public, no-cache")


async def get_estimates(request: web.Request, context: Context) -> web.Response:
    """Frequencies, variances and intervals of what was counted so far; for collectors and admins."""
    await authorise(request, context.store, "collector", "admin")
    values = parameters(request, ["post"])
    post = values.get("post", NORM_SUB)
    if post not in MODES:
        raise ProblemError("malformed-query", f"post must be one of {', '.join(MODES)}")
    campaign = await context.campaigns.get(campaign_id(request))
    if await context.campaigns.is_federated(campaign.id):
        raise ProblemError(TAKES_SHARES, "it has a model, and no estimates")
    tally = await tally_to_publish(context.store, campaign)
    estimates = await asyncio.to_thread(lambda: json.dumps(_estimates(campaign, tally, post)))
    return web.Response(body=estimates.encode(), content_type=JSON)


def _estimates(campaign: Campaign, tally: Tally, post: str) -> dict[str, Any]:
    return {**estimate(campaign, tally, post=post).to_json(), "published": published_by([(campaign, tally)]).to_json()}


def _cacheable(request: web.Request, body: bytes, tag: str, cache: str) -> web.Response:
    """A 200, or a 304 where the client has it already."""
    headers = {"ETag": f'"{tag}"', "Cache-Control": cache}
    have = request.if_none_match
    if have and any(entry.value in ("*", tag) for entry in have if isinstance(entry, ETag)):
        return web.Response(status=304, headers=headers)
    return web.Response(body=body, content_type=JSON, headers=headers)


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

_UPLOAD_CODES: Final = ("malformed-upload", "too-many-reports", "not-admitted", "too-many-uploads")

OPERATIONS: Final = (  # Paths are tried in this order; uploads are nearly all there is.
    Operation(
        "POST",
        "/v1/campaigns/{id}/reports",
        post_reports,
        scopes=("relay",),
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
        answers={200: (JSON, _OBJECT), 304: None},
        codes=(UNKNOWN, "malformed-query", *STORED),
    ),
    Operation(
        "GET",
        "/v1/campaigns/{id}/model",
        get_model,
        query={"version": {"type": "integer", "minimum": 1}},
        answers={200: (JSON, _OBJECT), 304: None},
        codes=(UNKNOWN, "no-model", "malformed-query", *STORED),
    ),
    Operation(
        "GET",
        "/v1/campaigns/{id}/estimates",
        get_estimates,
        scopes=("collector", "admin"),
        query={"post": {"enum": list(MODES)}},
        answers={200: (JSON, _OBJECT)},
        codes=(UNKNOWN, TAKES_SHARES, "malformed-query", *STORED),
    ),
    *shares.OPERATIONS,
)
