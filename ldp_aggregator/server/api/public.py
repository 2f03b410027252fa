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


async def get_campaign(asked: AdmittedRequest) -> web.Response:
    """The document bytes; the id is their hash, so it is the strong ETag too, and they may be cached for ever."""
    return asked.cacheable(await asked.context.campaigns.document(asked.campaign_id), asked.campaign_id, FOREVER)


async def get_state(asked: AdmittedRequest) -> web.Response:
    """The campaign's state, the same for everybody. Devices fetch it before they ask a person."""
    body = await asked.context.campaigns.standing(asked.campaign_id)
    return web.Response(body=body, content_type=JSON, headers={"Cache-Control": A_MINUTE})


async def post_reports(asked: AdmittedRequest) -> web.Response:
    """Count an upload; answered after the commit that holds it is on disk."""
    intake = asked.context.intake
    try:
        terms = await intake.terms(asked.campaign_id, asked.request.headers)
        intake.begin(terms, asked.check_head())
        outcome = await intake.counted(terms, await asked.body(), asked.request.headers.get("Authorization"))
        return web.Response(body=answer_to(outcome), content_type=JSON)
    except ProblemError as problem:
        intake.note_refused(asked.campaign_id, problem.code)
        raise


async def get_model(asked: AdmittedRequest) -> web.Response:
    """The latest model, or the version asked for; of a federated campaign, the model of its current shares."""
    version = asked.values.get("version")
    model = await asked.store.model(asked.campaign_id, version)
    if model is not None:
        body = model.document.encode()
        response = asked.cacheable(body, model.tag, LATEST if version is None else FOREVER)
        response.headers["Model-Version"] = str(model.version)
        return response
    if not (await asked.store.terms(asked.campaign_id)).federated:
        raise ProblemError("no-model")
    if version is not None:
        raise ProblemError("no-model", "the model of a federated campaign follows its shares and has no versions")
    body = await asked.context.federated_models.body(await asked.context.campaigns.get(asked.campaign_id))
    return asked.cacheable(body, hashlib.sha256(body).hexdigest(), LATEST)


async def get_directory(asked: AdmittedRequest) -> web.Response:
    """The newest directory that was signed with this key. A server can withhold one, and cannot make one."""
    body = await asked.store.directory(publisher_key(asked))
    if body is None:
        raise ProblemError("no-directory")
    return asked.cacheable(body, hashlib.sha256(body).hexdigest(), LATEST)


async def get_estimates(asked: AdmittedRequest) -> web.Response:
    """Frequencies, variances and intervals of what was counted so far; for collectors."""
    return await answer_estimates(asked)


async def answer_estimates(asked: AdmittedRequest) -> web.Response:
    """The same answer to a collector here and to an administrator on the other listener."""
    campaign = await asked.context.campaigns.get(asked.campaign_id)
    if (await asked.store.terms(campaign.id)).federated:
        raise ProblemError(TAKES_SHARES, "it has a model, and no estimates")
    tally, arrivals = await counts_to_publish(asked.store, campaign)
    post = asked.values.get("post", NORM_SUB)
    estimates = await asyncio.to_thread(lambda: json.dumps(told_estimates(campaign, tally, arrivals, post)))
    return web.Response(body=estimates.encode(), content_type=JSON)


async def post_statistics(asked: AdmittedRequest) -> web.Response:
    """Keep a node's share in place of the one it sent before; answered after the commit that holds it is on disk."""
    campaign = await asked.context.campaigns.get(asked.campaign_id)
    body = await asked.body(most_bytes(campaign))
    try:
        await asyncio.to_thread(check_share, campaign, body)
    except DocumentError as error:
        asked.context.metrics.shares.labels(error.code).inc()
        raise ProblemError(error.code, str(error)) from None
    node = asked.shown.node
    refused: str | None = TAKES_REPORTS
    if campaign.asks == MODEL:
        most = None if campaign.federation is None else campaign.federation.replacements
        refused = await asked.store.put_share(campaign.id, node, body, token=asked.shown.name, most_replacements=most)
    _settle(asked, refused, "kept")
    return web.json_response({"node": node})


async def delete_statistics(asked: AdmittedRequest) -> web.Response:
    """Take a node's share out of the model; done even if there is none. Answered after the commit is on disk."""
    refused = await asked.store.withdraw_share(asked.campaign_id, asked.shown.node, token=asked.shown.name)
    _settle(asked, refused, "withdrawn")
    return web.Response(status=204)


def publisher_key(asked: AdmittedRequest) -> str:
    """The public key in the path, which has the form of a campaign's id."""
    text = asked.request.match_info["key"]
    if not ID_PATTERN.fullmatch(text):
        raise ProblemError("no-directory")
    return text


def _settle(asked: AdmittedRequest, refused: str | None, done: str) -> None:
    asked.context.metrics.shares.labels(refused or done).inc()
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
