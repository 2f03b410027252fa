"""Which token a request shows, and whether it opens what is asked."""

from __future__ import annotations

from typing import Final

from aiohttp import web

from ldp_aggregator.server.problems import ProblemError
from ldp_aggregator.service.tokens import find_token
from ldp_aggregator.store.contract import StoredToken, TokenStore

CHALLENGE: Final = {"WWW-Authenticate": "Bearer"}
"""What a 401 says would be right."""


async def authorise(request: web.Request, store: TokenStore, *scopes: str) -> StoredToken:
    """Refuse a request without a token of one of these scopes. It is read anew: a revoked one ends at once."""
    scheme, _, text = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not text.strip():
        raise ProblemError("missing-token", headers=CHALLENGE)
    token = await find_token(text.strip(), store)
    if token is None:
        raise ProblemError("wrong-token", headers=CHALLENGE)
    if token.scope not in scopes:
        raise ProblemError("wrong-scope", f"this takes the scope {' or '.join(scopes)}; the token has {token.scope}")
    return token
