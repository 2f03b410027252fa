"""The demands on a request: a token; and an upload a check of the operator's own, and a rate.

The last two are for uploads without a relay's token. A check may be anything that tells honest devices from others:
redeem an anonymous token (RFC 9578), verify an attestation, ask another service.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from importlib import import_module
from typing import Final, cast

from ldp_aggregator.server.problems import ProblemError, retry_later
from ldp_aggregator.service.settings import Settings, SettingsError
from ldp_aggregator.service.tokens import find_token
from ldp_aggregator.store import Store
from ldp_aggregator.store.clock import utc_now
from ldp_aggregator.store.contract import StoredToken

Check = Callable[[str, Mapping[str, str]], Awaitable[bool]]
"""Campaign id and headers of an upload to whether it is admitted. Called before the body is read."""

BURST_SECONDS: Final = 5.0
"""A campaign that was quiet takes so many seconds' worth of uploads at once."""
MOST_KEPT: Final = 1024
"""Campaigns whose rate is kept; those that were asked for longest ago begin anew."""
LONGEST_WAIT_SECONDS: Final = 60
KEPT_SECONDS: Final = 2.0
"""How long a change of who may upload that was made elsewhere may go unnoticed here."""


class Admission:
    """``per_second`` bounds the uploads of each campaign in this process; ``clock`` gives seconds."""

    def __init__(
        self,
        check: Check | None = None,
        per_second: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._check = check
        self._per_second = per_second
        self._clock = clock
        self._room: dict[str, tuple[float, float]] = {}

    @property
    def checks(self) -> bool:
        """An upload has to be asked about, which takes its headers and time."""
        return self._check is not None

    async def check(self, campaign_id: str, headers: Mapping[str, str]) -> None:
        """Raises ProblemError where the operator's check does not admit an upload."""
        if self._check is not None and not await self._check(campaign_id, headers):
            raise ProblemError("not-admitted")

    def count(self, campaign_id: str) -> None:
        """One upload more. Raises ProblemError where the campaign has had its share of this moment."""
        if self._per_second is None:
            return
        now, most = self._clock(), max(1.0, BURST_SECONDS * self._per_second)
        room, since = self._room.pop(campaign_id, (most, now))
        room = min(most, room + (now - since) * self._per_second)
        admitted = room >= 1
        if len(self._room) >= MOST_KEPT:
            del self._room[next(iter(self._room))]
        self._room[campaign_id] = (room - admitted, now)
        if not admitted:
            longest = min(LONGEST_WAIT_SECONDS, 2 + int(BURST_SECONDS / self._per_second))
            raise retry_later("too-many-uploads", longest=longest)


def admission_of(settings: Settings) -> Admission:
    """Raises SettingsError where the check cannot be loaded."""
    return Admission(_load(settings.admission), settings.uploads_per_second)


def _load(name: str | None) -> Check | None:
    if name is None:
        return None
    module, _, attribute = name.partition(":")
    try:
        found = getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise SettingsError(f"setting admission: {name!r} cannot be loaded ({type(error).__name__})") from None
    if not callable(found):
        raise SettingsError(f"setting admission: {name!r} is no function")
    return cast("Check", found)


class UploadAccess:
    """The campaigns that take uploads with a token only: kept for a moment, because every upload asks.

    ``everywhere`` is the scope that this server asks of uploads to campaigns that ask for none.
    """

    def __init__(self, store: Store, everywhere: str | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._everywhere = everywhere
        self._clock = clock
        self._kept: dict[str, tuple[float, str | None]] = {}

    async def uploads_need(self, campaign_id: str) -> str | None:
        """The scope that uploads to a campaign need, None where anybody may upload. Raises UnknownCampaignError."""
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
"""What a 401 says would be right."""


async def authorised(
    headers: Mapping[str, str], store: Store, *scopes: str, campaign_id: str | None = None
) -> StoredToken:
    """The token that a request shows, if it has one of these scopes, for what is about this campaign (None: about no
    single one). It is read anew: a revoked one ends at once. Raises ProblemError.
    """
    scheme, _, text = headers.get("Authorization", "").partition(" ")
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
