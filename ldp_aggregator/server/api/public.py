"""What devices and collectors ask: the campaign, the model, the estimates; and where reports arrive."""

from __future__ import annotations

import asyncio
import hashlib
import json
from dataclasses import replace
from http import HTTPStatus
from typing import Final

from aiohttp import web

from ldp_aggregator.estimation.simplex import MODES, NORM_SUB
from ldp_aggregator.server.api import shares
from ldp_aggregator.server.api.authorisation import authorise, authorise_upload
from ldp_aggregator.server.api.bodies import held_body
from ldp_aggregator.server.api.query import cacheable, campaign_id, parameters, whole_number
from ldp_aggregator.server.api.rows import JSON, STORED, Operation
from ldp_aggregator.server.context import Context
from ldp_aggregator.server.metrics import UPLOAD
from ldp_aggregator.server.problems import REPORT_CODES, ProblemError, retry_later
from ldp_aggregator.server.uploads.answers import rejected_body
from ldp_aggregator.server.uploads.limits import most_from_a_device, most_from_a_relay
from ldp_aggregator.server.uploads.reading import read_upload
from ldp_aggregator.service.publishing import counts_to_publish, told_estimates
from ldp_aggregator.store.contract import CLOSED, NOT_OPEN, TAKES_SHARES, UNAVAILABLE, UNKNOWN
from protocols.wire.upload import MEDIA_TYPE

FOREVER: Final = "public, max-age=31536000, immutable"
BATCH_HEADER: Final = "LDP-Relay-Batch"
"""With it a relay vouches that the reports were mixed in a batch of at least so many devices."""
LARGEST_BATCH: Final = 2**53
_REPORTS: Final = (MEDIA_TYPE,)


async def get_campaign(request: web.Request, context: Context) -> web.Response:
    """The document bytes; the id is their hash, so it is the strong ETag too, and they may be cached for ever."""
    parameters(request, ())
    name = campaign_id(request)
    return cacheable(request, await context.campaigns.document(name), name, FOREVER)


async def post_reports(request: web.Request, context: Context) -> web.Response:
    """Count an upload; answered after the commit that holds it is on disk."""
    try:
        return await _count_upload(request, context)
    except ProblemError as problem:
        if problem.code != UNKNOWN:
            context.metrics.count_refused(request.match_info["id"], UPLOAD, problem.code)
        raise


async def _count_upload(request: web.Request, context: Context) -> web.Response:
    batch, unknown = await _sender(request, context)
    campaign = await context.campaigns.get(request.match_info["id"])
    limits = context.settings.limits
    most = most_from_a_relay(limits) if unknown is None else most_from_a_device(campaign, limits)
    if unknown is not None:
        await context.admission.check(campaign.id, request.headers)
        context.admission.count(campaign.id)
    try:
        async with held_body(request, context, _REPORTS, most=most.bytes) as body:
            submission = replace(read_upload(campaign, body, most=most.reports), batch=batch)
            outcome = await context.ingest.submit(submission, submission.reports)
    except ProblemError as problem:
        # Too much for a device; who has shown a token learns what is wrong with that.
        if problem.status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE and "Authorization" in request.headers and unknown:
            raise unknown from None
        raise
    if outcome.refused == UNAVAILABLE:
        raise retry_later(outcome.refused)
    if outcome.refused:
        raise ProblemError(outcome.refused)
    return web.Response(body=rejected_body(outcome), content_type=JSON)


async def _sender(request: web.Request, context: Context) -> tuple[int | None, ProblemError | None]:
    """The batch that a relay vouches for, and why the sender is no relay, None where it is one.

    Raises ProblemError where a token is needed that was not shown.
    """
    name = campaign_id(request)
    shown = await authorise_upload(request, context, name)
    batch = _vouched_batch(request)
    if batch is None and (shown is not None or "Authorization" not in request.headers):
        is_relay = shown is not None and shown.scope == "relay"
        return None, None if is_relay else ProblemError("missing-token")
    try:
        await authorise(request, context.store, "relay", campaign_id=name)
    except ProblemError as problem:
        if batch is not None:
            raise
        return None, problem
    return batch, None


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


def _vouched_batch(request: web.Request) -> int | None:
    """How many devices a relay says it mixed; None without a token, which otherwise has to be a relay's.

    Nobody else's word counts, and a relay's that is not understood is refused: it would be lost for good.
    """
    text = request.headers.get(BATCH_HEADER)
    if text is None or "Authorization" not in request.headers:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 16 and 1 <= int(text) <= LARGEST_BATCH):
        raise ProblemError("malformed-request", f"{BATCH_HEADER} must be a whole number from 1 to {LARGEST_BATCH}")
    return int(text)


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
    *shares.OPERATIONS,
)
