"""The public listener: campaigns, models and what publishers have signed for devices, estimates for collectors; and
where reports arrive, and the noisy statistics of nodes, which are named by the first token they had.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from functools import partial
from typing import Final

from aiohttp import web

from ldp_aggregator.estimation.simplex import MODES, NORM_SUB
from ldp_aggregator.node_statistics import MEDIA_TYPE as SHARE
from ldp_aggregator.node_statistics import most_bytes
from ldp_aggregator.server.access import CHALLENGE
from ldp_aggregator.server.api.routing import JSON, STORED, AdmittedRequest, Operation, object_of
from ldp_aggregator.server.caches import ID_PATTERN
from ldp_aggregator.server.problems import REPORT_CODES, ProblemError, refused_by_store
from ldp_aggregator.server.upload_queue import answer_to
from ldp_aggregator.service.publishing import check_share, counts_to_publish, told_estimates
from ldp_aggregator.store.contract import (
    CLOSED,
    CLOSING,
    NOT_OPEN,
    REPLACED,
    REVOKED,
    STANDINGS,
    TAKES_REPORTS,
    TAKES_SHARES,
    UNSETTLED,
)
from ldp_protocols import DocumentError
from ldp_protocols.document.authored import MODEL
from ldp_protocols.wire import MEDIA_TYPE

FOREVER: Final = "public, max-age=31536000, immutable"
LATEST: Final = "public, no-cache"
A_MINUTE: Final = "public, max-age=60"


async def get_campaign(request: AdmittedRequest) -> web.Response:
    """The document bytes; the id is their hash, so it is the strong ETag too, and they may be cached for ever."""
    campaign_id = request.campaign_id
    return request.cacheable(await request.context.campaigns.document(campaign_id), campaign_id, FOREVER)


async def get_state(request: AdmittedRequest) -> web.Response:
    """The campaign's state, the same for everybody. Devices fetch it before they ask a person."""
    body = await request.context.campaigns.standing(request.campaign_id)
    return web.Response(body=body, content_type=JSON, headers={"Cache-Control": A_MINUTE})


async def post_reports(request: AdmittedRequest) -> web.Response:
    """Count an upload; answered after the commit that holds it is on disk."""
    intake = request.context.intake
    try:
        bounds = await intake.bounds(request.campaign_id, request.http.headers)
        intake.begin(bounds, request.check_head())
        outcome = await intake.counted(bounds, await request.body(), request.http.headers.get("Authorization"))
        return web.Response(body=answer_to(outcome), content_type=JSON)
    except ProblemError as problem:
        intake.note_refused(request.campaign_id, problem.code)
        raise


async def get_model(request: AdmittedRequest) -> web.Response:
    """The latest model, or the version asked for; of a federated campaign, the model of its current shares."""
    version = request.values.get("version")
    model = await request.store.model(request.campaign_id, version)
    if model is not None:
        body = model.document.encode()
        response = request.cacheable(body, model.tag, LATEST if version is None else FOREVER)
        response.headers["Model-Version"] = str(model.version)
        return response
    if not (await request.store.terms(request.campaign_id)).federated:
        raise ProblemError("no-model")
    if version is not None:
        raise ProblemError("no-model", "the model of a federated campaign follows its shares and has no versions")
    body = await request.context.federated_models.body(await request.context.campaigns.get(request.campaign_id))
    return request.cacheable(body, hashlib.sha256(body).hexdigest(), LATEST)


async def get_directory(request: AdmittedRequest) -> web.Response:
    """The newest directory that was signed with this key. A server can withhold one, and cannot make one."""
    body = await request.store.directory(publisher_key(request))
    if body is None:
        raise ProblemError("no-directory")
    return request.cacheable(body, hashlib.sha256(body).hexdigest(), LATEST)


async def get_estimates(request: AdmittedRequest) -> web.Response:
    """Frequencies, variances and intervals of what was counted so far; for collectors."""
    return await answer_estimates(request)


async def answer_estimates(request: AdmittedRequest) -> web.Response:
    """The same answer to a collector here and to an administrator on the other listener."""
    campaign = await request.context.campaigns.get(request.campaign_id)
    if (await request.store.terms(campaign.id)).federated:
        raise ProblemError(TAKES_SHARES, "it has a model, and no estimates")
    tally, arrivals = await counts_to_publish(request.store, campaign)
    post = request.values.get("post", NORM_SUB)
    estimates = await asyncio.to_thread(lambda: json.dumps(told_estimates(campaign, tally, arrivals, post)))
    return web.Response(body=estimates.encode(), content_type=JSON)


async def post_statistics(request: AdmittedRequest) -> web.Response:
    """Keep a node's share in place of the one it sent before; answered after the commit that holds it is on disk."""
    campaign = await request.context.campaigns.get(request.campaign_id)
    body = await request.body(most_bytes(campaign))
    try:
        await asyncio.to_thread(check_share, campaign, body)
    except DocumentError as error:
        request.context.metrics.shares.labels(error.code).inc()
        raise ProblemError(error.code, str(error)) from None
    token = request.token
    refused: str | None = TAKES_REPORTS
    if campaign.asks == MODEL:
        most = None if campaign.federation is None else campaign.federation.replacements
        refused = await request.store.put_share(campaign.id, token.node, body, token=token.name, most_replacements=most)
    _settle(request, refused, "kept")
    return web.json_response({"node": token.node})


async def delete_statistics(request: AdmittedRequest) -> web.Response:
    """Take a node's share out of the model; done even if there is none. Answered after the commit is on disk."""
    refused = await request.store.withdraw_share(request.campaign_id, request.token.node, token=request.token.name)
    _settle(request, refused, "withdrawn")
    return web.Response(status=204)


def publisher_key(request: AdmittedRequest) -> str:
    """The public key in the path, which has the form of a campaign's id."""
    text = request.http.match_info["key"]
    if not ID_PATTERN.fullmatch(text):
        raise ProblemError("no-directory")
    return text


def _settle(request: AdmittedRequest, refused: str | None, done: str) -> None:
    request.context.metrics.shares.labels(refused or done).inc()
    if refused is not None:
        raise refused_by_store(refused, headers=CHALLENGE if refused == REVOKED else {})


_OBJECT: Final = {"type": "object"}
_ID_AND_CODE: Final = [{"type": "string", "pattern": "^[0-9a-f]{32}$"}, {"enum": sorted(REPORT_CODES)}]
_REJECTED: Final = object_of(rejected={"type": "array", "items": {"type": "array", "prefixItems": _ID_AND_CODE}})

_CAMPAIGN: Final = "/v1/campaigns/{id}"
_ENDS: Final = (CLOSED, CLOSING, NOT_OPEN, UNSETTLED)
_CODES: Final = (*_ENDS, TAKES_REPORTS, *STORED)
_STATE: Final = {
    "type": "object",
    "required": ["state"],
    "properties": {"state": {"enum": list(STANDINGS)}, "ends": {"type": "string", "format": "date"}},
}

_GET, _POST, _DELETE = (partial(Operation, method) for method in ("GET", "POST", "DELETE"))
OPERATIONS: Final = (  # Paths are tried in this order; uploads are nearly all there is.
    _POST(
        f"{_CAMPAIGN}/reports",
        post_reports,
        query=None,
        for_pages=True,
        scopes=("device", "relay"),
        optional_scopes=True,
        bodies={MEDIA_TYPE: {"type": "string", "format": "binary"}},
        answers={200: (JSON, _REJECTED)},
        codes=(
            *(*_ENDS, TAKES_SHARES, "malformed-upload"),
            *("missing-answer-token", "wrong-answer-token"),
            *("too-many-reports", "not-admitted", "not-mixed", "too-many-uploads", *STORED),
        ),
    ),
    _GET(_CAMPAIGN, get_campaign, for_pages=True, answers={200: (JSON, _OBJECT), 304: None}),
    _GET(
        f"{_CAMPAIGN}/state",
        get_state,
        for_pages=True,
        answers={200: (JSON, _STATE)},
        codes=(UNSETTLED, *STORED),
    ),
    _GET(
        f"{_CAMPAIGN}/model",
        get_model,
        for_pages=True,
        query={"version": {"type": "integer", "minimum": 1}},
        answers={200: (JSON, _OBJECT), 304: None},
        codes=("no-model", "not-installed", *STORED),
    ),
    _GET(
        f"{_CAMPAIGN}/estimates",
        get_estimates,
        scopes=("collector",),
        query={"post": {"enum": list(MODES)}},
        answers={200: (JSON, _OBJECT)},
        codes=(TAKES_SHARES, *STORED),
    ),
    _POST(
        f"{_CAMPAIGN}/statistics",
        post_statistics,
        scopes=("node",),
        bodies={SHARE: {"type": "string", "format": "binary"}},
        answers={200: (JSON, object_of(node={"type": "string"}))},
        codes=("malformed-share", "impossible-share", REPLACED, *_CODES),
    ),
    _DELETE(
        f"{_CAMPAIGN}/statistics", delete_statistics, query=None, scopes=("node",), answers={204: None}, codes=_CODES
    ),
    _GET(
        "/v1/directories/{key}",
        get_directory,
        answers={200: (JSON, {"type": "object", "required": ["statement", "signature"]}), 304: None},
        codes=("no-directory", *STORED),
        for_pages=True,
    ),
)
