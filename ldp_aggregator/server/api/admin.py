"""The listeners for operators: the admin listener, with an admin token, for campaigns, their ends, models, the log,
what publishers have signed; and the operations listener, for those who watch this instance, without secrets or tokens.

What changes anything is written down first.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from functools import partial, wraps
from typing import Final, TypeVar
from urllib.parse import urlsplit

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST

from ldp_aggregator.estimation.simplex import MODES, POSTERIOR, TRAINING_MODES
from ldp_aggregator.server.api.public import answer_estimates, publisher_key
from ldp_aggregator.server.api.routing import JSON, STORED, AdmittedRequest, Operation, object_of
from ldp_aggregator.server.problems import ProblemError, retry_later
from ldp_aggregator.service.drafts import ANOTHER_KIND, check_kind, compile_draft
from ldp_aggregator.service.publishing import USELESS, UntrainableError, publish_trained
from ldp_aggregator.service.rights import uploads_act
from ldp_aggregator.service.signing import described
from ldp_aggregator.store import contract
from ldp_aggregator.store.contract import utc_now
from ldp_protocols import DocumentError, DraftError
from ldp_protocols.document.directory import LARGEST_DIRECTORY, read_directory

Result = TypeVar("Result")

TOML: Final = "application/toml"
MOST_ACTS: Final = 1000
"""Entries of the log in one answer."""


async def post_campaign(request: AdmittedRequest) -> web.Response:
    """Compile and publish a draft. The same draft gives the same id; the second time nothing is made (200).

    A ``federated`` campaign takes shares of nodes and no reports from the start; others become so by a first share.
    A draft with a gateway's key that is not here is refused, unless ``elsewhere`` says that another server opens it.
    """
    most, federated = request.values.get("max_reports"), request.values.get("federated", False)
    body = await request.body()
    try:
        campaign = await asyncio.to_thread(compile_draft, body, toml=request.http.content_type == TOML)
        check_kind(campaign, federated=federated, max_reports=most)
        if not request.values.get("elsewhere", False):
            request.context.gateway.check_receivable(campaign)
    except DraftError as error:
        raise ProblemError(error.code, str(error), members={"field": error.field}) from None
    store, need = request.store, request.values.get("uploads_need_token")
    async with request.recorded("create campaign", campaign.id, campaign.title):
        created = await store.create_campaign(campaign, max_reports=most, federated=federated, uploads_need=need)
    if not created and federated and not (await store.terms(campaign.id)).federated:
        raise ProblemError(contract.TAKES_REPORTS, ANOTHER_KIND)
    if created:
        request.context.metrics.mutations.labels("campaign-created").inc()
    headers = {"Location": f"/v1/campaigns/{campaign.id}"}
    return web.json_response({"id": campaign.id}, status=201 if created else 200, headers=headers)


async def get_campaigns(request: AdmittedRequest) -> web.Response:
    """All campaigns and their state, oldest first."""
    return web.json_response({"campaigns": [state.to_json(utc_now()) for state in await request.store.campaigns()]})


async def get_estimates(request: AdmittedRequest) -> web.Response:
    """Frequencies, variances and intervals of what was counted so far; for administrators."""
    return await answer_estimates(request)


async def train_campaign(request: AdmittedRequest) -> web.Response:
    """Train on what was counted so far and publish the model under the next version.

    A model whose features do not clearly tell the classes apart needs ``anyway``.
    """
    post = request.values.get("post", POSTERIOR)
    await request.store.state(request.campaign_id)
    try:
        async with request.recorded("publish model", request.campaign_id):
            reports, (model,) = await publish_trained(
                request.store, [request.campaign_id], post, anyway=request.values.get("anyway", False), apart=True
            )
    except UntrainableError as error:
        way_out = "; anyway=true publishes it" if error.code == USELESS else ""
        raise ProblemError(error.code, f"{error}{way_out}") from None
    request.context.metrics.mutations.labels("model-published").inc()
    return web.json_response({"version": model.version, "reports": reports})


async def set_uploads_need(request: AdmittedRequest) -> web.Response:
    """Take uploads with a token of a scope only, from now on; without a scope, from anybody. Instances notice within
    two seconds.
    """
    scope = request.values.get("scope")
    await request.store.state(request.campaign_id)
    async with request.recorded(uploads_act(scope), request.campaign_id):
        state = await request.store.set_uploads_need(request.campaign_id, scope)
    request.context.intake.access.forget(request.campaign_id)
    return _state_response(state)


async def get_log(request: AdmittedRequest) -> web.Response:
    """The last administrative acts, oldest first: who did what, when, to which campaign, and how it ended."""
    acts = await request.store.acts(last=request.values.get("last", MOST_ACTS))
    return web.json_response({"acts": [act.to_json() for act in acts]})


async def close_campaign(request: AdmittedRequest) -> web.Response:
    """Accept no more reports; reopening takes it back until the campaign is sealed."""
    return _state_response(await _changed(request, "close", "closed", request.store.close_campaign))


async def reopen_campaign(request: AdmittedRequest) -> web.Response:
    """Take a closing back, until the campaign is sealed."""
    return _state_response(await _changed(request, "reopen", "reopened", request.store.reopen_campaign))


async def seal_campaign(request: AdmittedRequest) -> web.Response:
    """Drop the ids of a campaign that was closed a day ago (with ``now``: of any closed one), for good."""
    seal = partial(request.store.seal_campaign, at_once=request.values.get("now", False))
    return _state_response(await _changed(request, "seal", "sealed", seal))


async def delete_campaign(request: AdmittedRequest) -> web.Response:
    """Forget a closed campaign: sums, shares and models. Its id is never used again."""
    await _changed(request, "delete", "deleted", request.store.delete_campaign)
    return web.Response(status=204)


async def put_directory(request: AdmittedRequest) -> web.Response:
    """Keep a directory in place of an older one, if the key's holder has signed it."""
    key = publisher_key(request)
    body = await request.body()
    try:
        directory = await asyncio.to_thread(read_directory, body, key)
    except DocumentError as error:
        raise ProblemError("invalid-directory", str(error)) from None
    async with request.recorded("publish directory", detail=f"{key} {described(directory)}"):
        await request.store.put_directory(key, directory.version, body)
    return web.json_response({"version": directory.version})


async def _changed(request: AdmittedRequest, act: str, done: str, change: Callable[[str], Awaitable[Result]]) -> Result:
    """The change, written down before; of a campaign that is not there nothing is."""
    await request.store.state(request.campaign_id)
    async with request.recorded(f"{act} campaign", request.campaign_id):
        result = await change(request.campaign_id)
    request.context.metrics.mutations.labels(f"campaign-{done}").inc()
    return result


def _state_response(state: contract.CampaignState) -> web.Response:
    return web.json_response(state.to_json(utc_now()))


STATE: Final = {
    "type": "object",
    "required": ["id", "title", "status", "created", "reports"],
    "properties": {
        "id": {"type": "string"},
        "title": {"type": "string"},
        "status": {"enum": ["waiting", "open", "closed", "damaged"]},
        "closed": {"type": ["string", "null"]},
        "sealed": {"type": ["string", "null"]},
        "reports": {"type": "integer"},
        "max_reports": {"type": ["integer", "null"]},
        "model_version": {"type": ["integer", "null"]},
        "federated": {"type": "boolean"},
        "shares": {"type": ["integer", "null"]},
        "uploads_need_token": {"enum": [None, *contract.UPLOADING]},
    },
}
"""A campaign's state, as every operation that changes it answers."""

_ACT: Final = object_of(
    **{name: {"type": "string"} for name in ("time", "actor", "act", "detail")},
    number={"type": "integer"},
    campaign={"type": ["string", "null"]},
    outcome={"enum": [contract.ASKED, contract.DONE, contract.FAILED]},
)
_CREATED: Final = object_of(id={"type": "string"})
_TRAINED: Final = object_of(version={"type": "integer"}, reports={"type": "integer"})

_CAMPAIGN: Final = "/admin/v1/campaigns/{id}"
_CHANGED: Final = {200: (JSON, STATE)}
_GET, _POST, _PUT, _DELETE = (partial(Operation, verb, scopes=("admin",)) for verb in ("GET", "POST", "PUT", "DELETE"))
OPERATIONS: Final = (
    _POST(
        "/admin/v1/campaigns",
        post_campaign,
        query={
            "max_reports": {"type": "integer", "minimum": 1},
            "federated": {"type": "boolean"},
            "elsewhere": {"type": "boolean"},
            "uploads_need_token": {"enum": list(contract.UPLOADING)},
        },
        bodies={JSON: {"type": "object"}, TOML: {"type": "string"}},
        answers={200: (JSON, _CREATED), 201: (JSON, _CREATED)},
        codes=("invalid-draft", contract.TAKES_REPORTS, contract.DELETED, *STORED),
    ),
    _GET(
        "/admin/v1/campaigns",
        get_campaigns,
        answers={200: (JSON, {"type": "object", "properties": {"campaigns": {"type": "array", "items": STATE}}})},
    ),
    _POST(
        f"{_CAMPAIGN}/train",
        train_campaign,
        query={"post": {"enum": list(TRAINING_MODES)}, "anyway": {"type": "boolean"}},
        answers={200: (JSON, _TRAINED)},
        codes=("nothing-to-train", "useless-model", "not-installed", *STORED),
    ),
    _GET(
        f"{_CAMPAIGN}/estimates",
        get_estimates,
        query={"post": {"enum": list(MODES)}},
        answers={200: (JSON, {"type": "object"})},
        codes=(contract.TAKES_SHARES, *STORED),
    ),
    _POST(
        f"{_CAMPAIGN}/uploads", set_uploads_need, query={"scope": {"enum": list(contract.UPLOADING)}}, answers=_CHANGED
    ),
    _GET(
        "/admin/v1/log",
        get_log,
        query={"last": {"type": "integer", "minimum": 1, "maximum": MOST_ACTS}},
        answers={200: (JSON, {"type": "object", "properties": {"acts": {"type": "array", "items": _ACT}}})},
    ),
    _POST(f"{_CAMPAIGN}/reopen", reopen_campaign, answers=_CHANGED, codes=(contract.SEALED, *STORED)),
    _POST(f"{_CAMPAIGN}/close", close_campaign, answers=_CHANGED),
    _POST(
        f"{_CAMPAIGN}/seal",
        seal_campaign,
        query={"now": {"type": "boolean"}},
        answers=_CHANGED,
        codes=(contract.NOT_CLOSED, contract.TOO_EARLY, *STORED),
    ),
    _DELETE(_CAMPAIGN, delete_campaign, answers={204: None}, codes=(contract.NOT_CLOSED, *STORED)),
    _PUT(
        "/admin/v1/directories/{key}",
        put_directory,
        bodies={JSON: {"type": "object"}},
        longest=LARGEST_DIRECTORY,
        answers={200: (JSON, {"type": "object", "required": ["version"]})},
        codes=("no-directory", "invalid-directory", contract.OLDER, *STORED),
    ),
)

EXPOSITION: Final = "text/plain"
_ADDRESS: Final = re.compile(r"[0-9.]+|[0-9a-f:.]*:[0-9a-f:.%]*")
"""No name of a host is like this."""

Answer = Callable[[AdmittedRequest], Awaitable[web.Response]]


def under_known_names(handler: Answer) -> Answer:
    """``handler``, for whoever asks under an address or a known name: a page that has its own name lead here, so that a
    browser takes both for one origin, reads nothing.
    """

    @wraps(handler)
    async def answer(request: AdmittedRequest) -> web.Response:
        host = urlsplit(f"//{request.http.host}").hostname or ""
        if host not in ("localhost", *request.context.settings.operations_names) and not _ADDRESS.fullmatch(host):
            raise ProblemError("unknown-host")
        return await handler(request)

    return answer


@under_known_names
async def get_health(_: AdmittedRequest) -> web.Response:
    """The process runs."""
    return web.json_response({"status": "ok"})


@under_known_names
async def get_metrics(request: AdmittedRequest) -> web.Response:
    """Counts and times in Prometheus' exposition format."""
    request.context.metrics.queue_age.set(request.context.ingest.queue_age)
    body = await request.context.metrics.exposition()
    return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_LATEST})


@under_known_names
async def get_readiness(request: AdmittedRequest) -> web.Response:
    """The store takes writes, as the writer last saw it, and this instance is not about to stop; 503 otherwise. Ready
    even if a gateway's key is missing; the answer names the open campaigns that need it.
    """
    if request.context.leaving.is_set():
        raise retry_later("stopping")
    if not request.context.ingest.is_well:
        raise retry_later("store-unavailable")
    keyless = request.context.metrics.gauges.keyless()
    return web.json_response({"status": "ready"} | ({"gateway_key_missing": keyless} if keyless else {}))


_WATCHED: Final = partial(Operation, "GET", query=None)
_NAMED: Final = ("unknown-host",)
_STATUS: Final = object_of(status={"type": "string"})
_READY: Final = {
    **_STATUS,
    "properties": {**_STATUS["properties"], "gateway_key_missing": {"type": "array", "items": {"type": "string"}}},
}

WATCHING: Final = (
    _WATCHED("/healthz", get_health, answers={200: (JSON, _STATUS)}, codes=_NAMED),
    _WATCHED("/readyz", get_readiness, answers={200: (JSON, _READY)}, codes=("stopping", *STORED, *_NAMED)),
    _WATCHED("/metrics", get_metrics, answers={200: (EXPOSITION, {"type": "string"})}, codes=_NAMED),
)
