"""Which token a request shows, and whether it opens what is asked."""

from __future__ import annotations

from typing import Final

from aiohttp import web

from ldp_aggregator.server.context import Context
from ldp_aggregator.server.problems import ProblemError
from ldp_aggregator.service.tokens import find_token
from ldp_aggregator.store.clock import utc_now
from ldp_aggregator.store.rights import UPLOADING, StoredToken, TokenStore

CHALLENGE: Final = {"WWW-Authenticate": "Bearer"}
"""What a 401 says would be right."""


async def authorise(
    request: web.Request, store: TokenStore, *scopes: str, campaign_id: str | None = None
) -> StoredToken:
    """Refuse a request without a token of one of these scopes, for what is about this campaign (None: about no single
    one). It is read anew: a revoked one ends at once.
    """
    scheme, _, text = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not text.strip():
        raise ProblemError("missing-token", headers=CHALLENGE)
    token = await find_token(text.strip(), store, utc_now())
    if token is None:
        raise ProblemError("wrong-token", headers=CHALLENGE)
    if token.scope not in scopes:
        raise ProblemError("wrong-scope", f"this takes the scope {' or '.join(scopes)}; the token has {token.scope}")
    if not token.is_for(campaign_id):
        raise ProblemError("wrong-campaign")
    return token


async def authorise_upload(request: web.Request, context: Context, campaign_id: str) -> StoredToken | None:
    """The token of an upload, where its campaign or this server asks for one. Raises UnknownCampaignError."""
    needed = await context.access.uploads_need(campaign_id)
    if needed is None:
        return None
    return await authorise(request, context.store, *UPLOADING[needed], campaign_id=campaign_id)
