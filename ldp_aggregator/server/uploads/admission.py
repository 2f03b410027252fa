"""What is asked of an upload before it gets a place in the queue: a check of the operator's own, and a rate.

Both are for uploads without a relay's token. A check may be anything that tells honest devices from others: redeem an
anonymous token (RFC 9578), verify an attestation, ask another service.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from importlib import import_module
from typing import Final, cast

from ldp_aggregator.server.problems import ProblemError, retry_later
from ldp_aggregator.service.settings import Settings, SettingsError

Check = Callable[[str, Mapping[str, str]], Awaitable[bool]]
"""Campaign id and headers of an upload to whether it is admitted. Called before the body is read."""

BURST_SECONDS: Final = 5.0
"""A campaign that was quiet takes so many seconds' worth of uploads at once."""
MOST_KEPT: Final = 1024
"""Campaigns whose rate is kept; those that were asked for longest ago begin anew."""
LONGEST_WAIT_SECONDS: Final = 60


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
        """Whether an upload has to be asked about, which takes its headers and time."""
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
    return Admission(_load(settings.admission), settings.limits.uploads_per_second)


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
