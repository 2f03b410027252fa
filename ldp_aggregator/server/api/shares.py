"""Where nodes of federated campaigns send their noisy statistics, and take them back.

A node is named by the first token it had.
"""

from __future__ import annotations

import asyncio
from typing import Final

from aiohttp import web

from ldp_aggregator.counting.shares import MEDIA_TYPE, ShareError, decode_share, most_bytes
from ldp_aggregator.server.api.authorisation import CHALLENGE, authorise
from ldp_aggregator.server.api.bodies import held_body
from ldp_aggregator.server.api.query import parameters
from ldp_aggregator.server.api.rows import JSON, STORED, Operation
from ldp_aggregator.server.context import Context
from ldp_aggregator.server.problems import ProblemError
from ldp_aggregator.store.contract import CLOSED, NOT_OPEN, REVOKED, TAKES_REPORTS, UNKNOWN
from protocols.document.campaign import MODEL

_PATH: Final = "/v1/campaigns/{id}/statistics"


async def post_statistics(request: web.Request, context: Context) -> web.Response:
    """Keep a node's share in place of the one it sent before; answered after the commit that holds it is on disk."""
    token = await authorise(request, context.store, "node", campaign_id=request.match_info["id"])
    parameters(request, ())
    campaign = await context.campaigns.get(request.match_info["id"])
    async with held_body(request, context, (MEDIA_TYPE,), most=most_bytes(campaign)) as body:
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


_CODES: Final = (UNKNOWN, CLOSED, NOT_OPEN, TAKES_REPORTS, "malformed-query", *STORED)

OPERATIONS: Final = (
    Operation(
        "POST",
        _PATH,
        post_statistics,
        scopes=("node",),
        bodies={MEDIA_TYPE: {"type": "string", "format": "binary"}},
        answers={200: (JSON, {"type": "object", "required": ["node"], "properties": {"node": {"type": "string"}}})},
        codes=("malformed-share", "distributed-share", *_CODES),
    ),
    Operation("DELETE", _PATH, delete_statistics, scopes=("node",), answers={204: None}, codes=_CODES),
)
