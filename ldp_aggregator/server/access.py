"""Access to the server: the token that a request shows and its scope, and the campaigns whose uploads need one."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Final

from ldp_aggregator.server.problems import ProblemError
from ldp_aggregator.service.rights import find_token
from ldp_aggregator.store import Store
from ldp_aggregator.store.contract import (
    StoredToken,
    utc_now,
)

KEPT_SECONDS: Final = 2.0
"""Seconds for which a change of who may upload, made elsewhere, may go unnoticed here."""
MOST_KEPT: Final = 1024
"""Campaigns of which that is kept."""


class UploadAccess:
    """The campaigns that take uploads with a token only: kept for a moment, because every upload asks.

    ``everywhere`` is the scope that this server asks of uploads to campaigns that ask for none.
    """

    def __init__(self, store: Store, everywhere: str | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._store, self._everywhere, self._clock = store, everywhere, clock
        self._kept: dict[str, tuple[float, str | None]] = {}

    async def uploads_need(self, campaign_id: str) -> str | None:
        """The scope that uploads to a campaign need, None where anybody may upload. Raises StoreError."""
        now = self._clock()
        until, scope = self._kept.get(campaign_id, (now, None))
        if now < until:
            return scope
        if campaign_id in self._kept:
            self._kept[campaign_id] = (now + KEPT_SECONDS, scope)  # One reads it again; the others need not wait.
        try:
            scope = (await self._store.terms(campaign_id)).uploads_need or self._everywhere
        except BaseException:
            self.forget(campaign_id)
            raise
        if len(self._kept) >= MOST_KEPT:
            self._kept.clear()
        self._kept[campaign_id] = (now + KEPT_SECONDS, scope)
        return scope

    def is_known_open(self, campaign_id: str) -> bool:
        """Anybody may upload, as far as was read lately; who does not know asks :meth:`uploads_need`."""
        until, scope = self._kept.get(campaign_id, (0.0, None))
        return scope is None and self._clock() < until

    def forget(self, campaign_id: str) -> None:
        """It was changed here."""
        self._kept.pop(campaign_id, None)


CHALLENGE: Final = {"WWW-Authenticate": "Bearer"}
"""The scheme that a 401 says would be right."""


async def authorised(
    headers: Mapping[str, str], store: Store, *scopes: str, campaign_id: str | None = None
) -> StoredToken:
    """The token that a request shows, if it has one of these scopes, for what is about this campaign (None: about no
    single one). Raises ProblemError.
    """
    token = await shown_token(headers, store, *scopes)
    if not token.is_for(campaign_id):
        raise ProblemError("wrong-campaign")
    return token


async def shown_token(headers: Mapping[str, str], store: Store, *scopes: str) -> StoredToken:
    """The same, for whichever campaigns. It is read anew: a revoked one ends at once. Raises ProblemError."""
    scheme, _, text = headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not text.strip():
        raise ProblemError("missing-token", headers=CHALLENGE)
    token = await find_token(text.strip(), store, utc_now())
    if token is None:
        raise ProblemError("wrong-token", headers=CHALLENGE)
    if token.scope not in scopes:
        raise ProblemError("wrong-scope", f"this takes the scope {' or '.join(scopes)}; the token has {token.scope}")
    return token
