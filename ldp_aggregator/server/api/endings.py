"""How a campaign ends, on the admin listener: closed, reopened, sealed, deleted; each is written down first."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, TypeVar

from aiohttp import web

from ldp_aggregator.server.api.authorisation import authorise
from ldp_aggregator.server.api.query import campaign_id, parameters
from ldp_aggregator.server.api.rows import JSON, STORED, Operation
from ldp_aggregator.server.context import Context
from ldp_aggregator.server.problems import ProblemError
from ldp_aggregator.service.acting import actor_of, recorded
from ldp_aggregator.store.campaign_state import CampaignState
from ldp_aggregator.store.clock import utc_now
from ldp_aggregator.store.contract import NOT_CLOSED, SEALED, TOO_EARLY, UNKNOWN
from ldp_aggregator.store.rights import UPLOADING, StoredToken

Result = TypeVar("Result")


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

OPERATIONS: Final = (
    Operation(
        "POST",
        "/admin/v1/campaigns/{id}/reopen",
        reopen_campaign,
        scopes=("admin",),
        answers={200: (JSON, STATE)},
        codes=(UNKNOWN, SEALED, "malformed-query", *STORED),
    ),
    Operation(
        "POST",
        "/admin/v1/campaigns/{id}/close",
        close_campaign,
        scopes=("admin",),
        answers={200: (JSON, STATE)},
        codes=(UNKNOWN, "malformed-query", *STORED),
    ),
    Operation(
        "POST",
        "/admin/v1/campaigns/{id}/seal",
        seal_campaign,
        scopes=("admin",),
        query={"now": {"type": "boolean"}},
        answers={200: (JSON, STATE)},
        codes=(UNKNOWN, NOT_CLOSED, TOO_EARLY, "malformed-query", *STORED),
    ),
    Operation(
        "DELETE",
        "/admin/v1/campaigns/{id}",
        delete_campaign,
        scopes=("admin",),
        answers={204: None},
        codes=(UNKNOWN, NOT_CLOSED, "malformed-query", *STORED),
    ),
)
