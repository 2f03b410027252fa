"""What operators ask, on a listener of its own and with an admin token: campaigns, their ends, models, the log.

What changes anything is written down first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, TypeVar

from aiohttp import web

from ldp_aggregator.estimation.simplex import MODES, POSTERIOR, TRAINING_MODES
from ldp_aggregator.server.admission import authorise
from ldp_aggregator.server.api.public import answer_estimates
from ldp_aggregator.server.api.query import campaign_id, parameters, read_body, whole_number
from ldp_aggregator.server.api.rows import JSON, STORED, Operation
from ldp_aggregator.server.context import Context
from ldp_aggregator.server.problems import ProblemError
from ldp_aggregator.service.acting import actor_of, recorded, uploads_act
from ldp_aggregator.service.drafts import ANOTHER_KIND, check_kind, compile_draft
from ldp_aggregator.service.publishing import TrainingOptions, UntrainableError, UselessModelError, publish_trained
from ldp_aggregator.store.clock import utc_now
from ldp_aggregator.store.contract import (
    DELETED,
    NOT_CLOSED,
    SEALED,
    TAKES_REPORTS,
    TAKES_SHARES,
    TOO_EARLY,
    UNKNOWN,
    CampaignState,
)
from ldp_aggregator.store.rights import ASKED, DONE, FAILED, UPLOADING, StoredToken
from protocols import DraftError

Result = TypeVar("Result")

TOML: Final = "application/toml"
MOST_ACTS: Final = 1000
"""Entries of the log in one answer."""


async def post_campaign(request: web.Request, context: Context) -> web.Response:
    """Compile and publish a draft. The same draft gives the same id; the second time nothing is made (200).

    A ``federated`` campaign takes shares of nodes and no reports from the start; others become so by a first share.
    """
    token = await authorise(request, context.store, "admin")
    values = parameters(request, ["max_reports", "federated", "uploads_need_token"])
    need = _scope(values.get("uploads_need_token"))
    most = whole_number(values, "max_reports")
    if values.get("federated", "false") not in ("true", "false"):
        raise ProblemError("malformed-query", "federated must be true or false")
    federated = values.get("federated") == "true"
    body = await read_body(request, context, (JSON, TOML))
    try:
        campaign = await asyncio.to_thread(compile_draft, body, toml=request.content_type == TOML)
        check_kind(campaign, federated=federated, max_reports=most)
    except DraftError as error:
        raise ProblemError(error.code, str(error), members={"field": error.field}) from None
    async with recorded(context.store, actor_of(token), "create campaign", campaign.id, campaign.title):
        created = await context.store.create_campaign(
            campaign, max_reports=most, federated=federated, uploads_need=need
        )
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


async def get_estimates(request: web.Request, context: Context) -> web.Response:
    """Frequencies, variances and intervals of what was counted so far; for administrators."""
    await authorise(request, context.store, "admin", campaign_id=campaign_id(request))
    return await answer_estimates(request, context)


async def train_campaign(request: web.Request, context: Context) -> web.Response:
    """Train on what was counted so far and publish the model under the next version.

    One that is not known to be above always saying the most frequent class only with ``anyway``.
    """
    token = await authorise(request, context.store, "admin", campaign_id=campaign_id(request))
    values = parameters(request, ["post", "anyway"])
    post, anyway = values.get("post", POSTERIOR), values.get("anyway", "false")
    if post not in TRAINING_MODES:
        raise ProblemError("malformed-query", f"post must be one of {', '.join(TRAINING_MODES)}")
    if anyway not in ("true", "false"):
        raise ProblemError("malformed-query", "anyway must be true or false")
    options = TrainingOptions(post=post)
    await context.store.state(campaign_id(request))
    try:
        async with recorded(context.store, actor_of(token), "publish model", campaign_id(request)):
            reports, (model,) = await publish_trained(
                context.store, [campaign_id(request)], options, anyway=anyway == "true"
            )
    except UselessModelError as error:
        raise ProblemError("useless-model", f"{error}; anyway=true publishes it") from None
    except UntrainableError as error:
        raise ProblemError("nothing-to-train", str(error)) from None
    context.metrics.mutations.labels("model-published").inc()
    return web.json_response({"version": model.version, "reports": reports})


async def set_uploads_need(request: web.Request, context: Context) -> web.Response:
    """Take uploads with a token of a scope only, from now on; without a scope, from anybody. Instances notice within
    two seconds.
    """
    token = await authorise(request, context.store, "admin", campaign_id=campaign_id(request))
    scope = _scope(parameters(request, ["scope"]).get("scope"))
    await context.store.state(campaign_id(request))
    async with recorded(context.store, actor_of(token), uploads_act(scope), campaign_id(request)):
        state = await context.store.set_uploads_need(campaign_id(request), scope)
    context.desk.access.forget(campaign_id(request))
    return web.json_response(state.to_json(utc_now()))


async def get_log(request: web.Request, context: Context) -> web.Response:
    """The last administrative acts, oldest first: who did what, when, to which campaign, and how it ended."""
    await authorise(request, context.store, "admin")
    last = whole_number(parameters(request, ["last"]), "last", most=MOST_ACTS) or MOST_ACTS
    return web.json_response({"acts": [act.to_json() for act in await context.store.acts(last=last)]})


def _scope(text: str | None) -> str | None:
    if text is not None and text not in UPLOADING:
        raise ProblemError("malformed-query", f"the scope must be one of {', '.join(UPLOADING)}")
    return text


async def close_campaign(request: web.Request, context: Context) -> web.Response:
    """Accept no more reports; reopening takes it back until the campaign is sealed."""
    token = await _asked(request, context)
    parameters(request, ())
    return _told(await _done(request, context, token, "close", context.store.close_campaign))


async def reopen_campaign(request: web.Request, context: Context) -> web.Response:
    """Take a closing back, until the campaign is sealed."""
    token = await _asked(request, context)
    parameters(request, ())
    return _told(await _done(request, context, token, "reopen", context.store.reopen_campaign))


async def seal_campaign(request: web.Request, context: Context) -> web.Response:
    """Drop the ids of a campaign that was closed a day ago (with ``now``: of any closed one), for good."""
    token = await _asked(request, context)
    now = parameters(request, ["now"]).get("now", "false")
    if now not in ("true", "false"):
        raise ProblemError("malformed-query", "now must be true or false")
    seal = partial(context.store.seal_campaign, at_once=now == "true")
    return _told(await _done(request, context, token, "seal", seal))


async def delete_campaign(request: web.Request, context: Context) -> web.Response:
    """Forget a closed campaign: sums, shares and models. Its id is never used again."""
    token = await _asked(request, context)
    parameters(request, ())
    await _done(request, context, token, "delete", context.store.delete_campaign)
    return web.Response(status=204)


async def _asked(request: web.Request, context: Context) -> StoredToken:
    return await authorise(request, context.store, "admin", campaign_id=campaign_id(request))


async def _done(
    request: web.Request, context: Context, token: StoredToken, act: str, change: Callable[[str], Awaitable[Result]]
) -> Result:
    """The change, written down before; of a campaign that is not there nothing is."""
    name = campaign_id(request)
    await context.store.state(name)
    async with recorded(context.store, actor_of(token), f"{act} campaign", name):
        result = await change(name)
    context.metrics.mutations.labels(f"campaign-{_DONE[act]}").inc()
    return result


_DONE: Final = {"close": "closed", "reopen": "reopened", "seal": "sealed", "delete": "deleted"}


def _told(state: CampaignState) -> web.Response:
    return web.json_response(state.to_json(utc_now()))


STATE: Final = {
    "type": "object",
    "required": ["id", "title", "status", "created", "reports"],
    "properties": {
        "id": {"type": "string"},
        "title": {"type": "string"},
        "status": {"enum": ["waiting", "open", "closed"]},
        "closed": {"type": ["string", "null"]},
        "sealed": {"type": ["string", "null"]},
        "reports": {"type": "integer"},
        "max_reports": {"type": ["integer", "null"]},
        "model_version": {"type": ["integer", "null"]},
        "federated": {"type": "boolean"},
        "shares": {"type": ["integer", "null"]},
        "uploads_need_token": {"enum": [None, *UPLOADING]},
    },
}
"""A campaign's state, as every operation that changes it answers."""

_ACT: Final = {
    "type": "object",
    "required": ["number", "time", "actor", "act", "campaign", "detail", "outcome"],
    "properties": {
        "number": {"type": "integer"},
        "time": {"type": "string"},
        "actor": {"type": "string"},
        "act": {"type": "string"},
        "campaign": {"type": ["string", "null"]},
        "detail": {"type": "string"},
        "outcome": {"enum": [ASKED, DONE, FAILED]},
    },
}
_CREATED: Final = {"type": "object", "required": ["id"], "properties": {"id": {"type": "string"}}}
_TRAINED: Final = {
    "type": "object",
    "required": ["version", "reports"],
    "properties": {"version": {"type": "integer"}, "reports": {"type": "integer"}},
}

_FOR_ADMINS: Final = partial(Operation, scopes=("admin",))
OPERATIONS: Final = (
    _FOR_ADMINS(
        "POST",
        "/admin/v1/campaigns",
        post_campaign,
        query={
            "max_reports": {"type": "integer", "minimum": 1},
            "federated": {"type": "boolean"},
            "uploads_need_token": {"enum": list(UPLOADING)},
        },
        bodies={JSON: {"type": "object"}, TOML: {"type": "string"}},
        answers={200: (JSON, _CREATED), 201: (JSON, _CREATED)},
        codes=("invalid-draft", TAKES_REPORTS, DELETED, "malformed-query", *STORED),
    ),
    _FOR_ADMINS(
        "GET",
        "/admin/v1/campaigns",
        get_campaigns,
        answers={200: (JSON, {"type": "object", "properties": {"campaigns": {"type": "array", "items": STATE}}})},
        codes=("malformed-query", *STORED),
    ),
    _FOR_ADMINS(
        "POST",
        "/admin/v1/campaigns/{id}/train",
        train_campaign,
        query={"post": {"enum": list(TRAINING_MODES)}, "anyway": {"type": "boolean"}},
        answers={200: (JSON, _TRAINED)},
        codes=(UNKNOWN, "nothing-to-train", "useless-model", "not-installed", "malformed-query", *STORED),
    ),
    _FOR_ADMINS(
        "GET",
        "/admin/v1/campaigns/{id}/estimates",
        get_estimates,
        query={"post": {"enum": list(MODES)}},
        answers={200: (JSON, {"type": "object"})},
        codes=(UNKNOWN, TAKES_SHARES, "malformed-query", *STORED),
    ),
    _FOR_ADMINS(
        "POST",
        "/admin/v1/campaigns/{id}/uploads",
        set_uploads_need,
        query={"scope": {"enum": list(UPLOADING)}},
        answers={200: (JSON, STATE)},
        codes=(UNKNOWN, "malformed-query", *STORED),
    ),
    _FOR_ADMINS(
        "GET",
        "/admin/v1/log",
        get_log,
        query={"last": {"type": "integer", "minimum": 1, "maximum": MOST_ACTS}},
        answers={200: (JSON, {"type": "object", "properties": {"acts": {"type": "array", "items": _ACT}}})},
        codes=("malformed-query", *STORED),
    ),
    _FOR_ADMINS(
        "POST",
        "/admin/v1/campaigns/{id}/reopen",
        reopen_campaign,
        answers={200: (JSON, STATE)},
        codes=(UNKNOWN, SEALED, "malformed-query", *STORED),
    ),
    _FOR_ADMINS(
        "POST",
        "/admin/v1/campaigns/{id}/close",
        close_campaign,
        answers={200: (JSON, STATE)},
        codes=(UNKNOWN, "malformed-query", *STORED),
    ),
    _FOR_ADMINS(
        "POST",
        "/admin/v1/campaigns/{id}/seal",
        seal_campaign,
        query={"now": {"type": "boolean"}},
        answers={200: (JSON, STATE)},
        codes=(UNKNOWN, NOT_CLOSED, TOO_EARLY, "malformed-query", *STORED),
    ),
    _FOR_ADMINS(
        "DELETE",
        "/admin/v1/campaigns/{id}",
        delete_campaign,
        answers={204: None},
        codes=(UNKNOWN, NOT_CLOSED, "malformed-query", *STORED),
    ),
)
