"""The intake of uploads, on whatever way they come: who may send how much, which tokens open it, a place in the queue,
an answer.

Uploads without a relay's token may have to pass a check of the operator's own, and a rate. A check may be anything that
tells honest devices from others: redeem an anonymous token (RFC 9578), verify an attestation, ask another service.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from ldp_aggregator.server.access import CHALLENGE, UploadAccess, authorised
from ldp_aggregator.server.caches import CampaignCache
from ldp_aggregator.server.metrics import UPLOAD, Metrics
from ldp_aggregator.server.problems import ProblemError, retry_later
from ldp_aggregator.server.upload_queue import Ingest, UploadBounds, for_a_device, for_a_relay
from ldp_aggregator.service.named_functions import function_named
from ldp_aggregator.service.settings import Limits, Settings, setting_error
from ldp_aggregator.store import Store
from ldp_aggregator.store.contract import (
    ABSENT,
    UNKNOWN,
    UPLOADING,
    Outcome,
)

Check = Callable[[str, Mapping[str, str]], Awaitable[bool]]
"""Function from campaign id and headers of an upload to whether it is admitted; called before the body is read."""

BURST_SECONDS: Final = 5.0
"""Seconds' worth of uploads that a quiet campaign takes at once."""
MOST_KEPT: Final = 1024
"""Campaigns whose rate is kept; those that were asked for longest ago begin anew."""
LONGEST_WAIT_SECONDS: Final = 60


class Admission:
    """``per_second`` bounds the uploads of each campaign in this process; ``clock`` gives seconds."""

    def __init__(
        self, check: Check | None = None, per_second: float | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._check, self._per_second, self._clock = check, per_second, clock
        self._room: dict[str, tuple[float, float]] = {}

    @property
    def checks(self) -> bool:
        """True if the operator has a check, which takes an upload's headers and time."""
        return self._check is not None

    async def check(self, campaign_id: str, headers: Mapping[str, str]) -> None:
        """Ask the operator's check about an upload. Raises ProblemError if it is not admitted."""
        if self._check is not None and not await self._check(campaign_id, headers):
            raise ProblemError("not-admitted")

    def count(self, campaign_id: str) -> None:
        """One upload more. Raises ProblemError if the campaign has had its uploads of this moment."""
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
    """The admission of the settings. Raises LdpError if the check cannot be loaded."""
    return Admission(_load(settings.admission), settings.uploads_per_second)


def _load(name: str | None) -> Check | None:
    if name is None:
        return None
    try:
        return function_named(name)
    except ValueError as error:
        raise setting_error(f"setting admission: {error}") from None


METHOD: Final = "POST"
PATH: Final = "/v1/campaigns/{id}/reports"
SEALED_PATH: Final = "/v1/ohttp"
BATCH_HEADER: Final = "LDP-Relay-Batch"
"""Header by which a relay vouches for a batch: the least number of devices whose reports were mixed."""
LARGEST_BATCH: Final = 2**53
MOST_BOUNDS: Final = 1024


@dataclass(slots=True)
class Waiting:
    """An :class:`~ldp_aggregator.server.upload_queue.Upload` of which aiohttp's handler waits for the answer."""

    bounds: UploadBounds
    body: bytes
    authorization: str | None = None
    is_patient = False
    answer: asyncio.Future[Outcome] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    since: float = field(default_factory=time.perf_counter)

    def settle(self, outcome: Outcome) -> None:
        if not self.answer.done():
            self.answer.set_result(outcome)

    def refuse(self, problem: ProblemError) -> None:
        if not self.answer.done():
            self.answer.set_exception(problem)


class Intake:
    """Everything about an upload but its bytes on the wire."""

    def __init__(
        self, store: Store, ingest: Ingest, metrics: Metrics, settings: Settings, limits: Limits, cache: CampaignCache
    ) -> None:
        self._store, self.ingest, self.metrics, self._campaigns = store, ingest, metrics, cache
        self._limits = limits
        self._admission = admission_of(settings)
        self.access = UploadAccess(store, "relay" if settings.uploads_need_token else None)
        self._bounds_of: dict[str, UploadBounds] = {}

    def cached_bounds(self, campaign_id: str, *, claims: bool) -> UploadBounds | None:
        """Bounds of an upload that are known without a query: it has no token (``claims``: it has one), or the
        campaign's issuer signs it. None if the store has to be asked.
        """
        campaign = None if self._admission.checks else self._campaigns.cached(campaign_id)
        if campaign is None or campaign.privacy.crowd is not None:
            return None
        if campaign.issuer is None and (claims or not self.access.is_known_open(campaign_id)):
            return None
        bounds = self._bounds_of.get(campaign_id)
        if bounds is None or bounds.campaign is not campaign:
            if len(self._bounds_of) >= MOST_BOUNDS:
                self._bounds_of.clear()
            bounds = self._bounds_of[campaign_id] = for_a_device(campaign, self._limits)
        return bounds

    async def bounds(self, campaign_id: str, headers: Mapping[str, str], *, checked: bool = False) -> UploadBounds:
        """Decide what an upload with such headers may hold; ``checked``: the answer token of each report in it was.
        Raises ProblemError if it is not welcome, StoreError.
        """
        campaign = await self._campaigns.get(campaign_id)
        crowd = campaign.privacy.crowd
        if crowd is not None and not checked:
            raise ProblemError("not-mixed")
        if campaign.issuer is not None and not checked:
            # What admits an answer is its issuer's token, which is looked at with the reports.
            await self._admission.check(campaign_id, headers)
            return for_a_device(campaign, self._limits)
        claims = "Authorization" in headers
        needed = await self.access.uploads_need(campaign_id)
        batch = vouched_batch(headers) if claims else None
        is_relay, stranger = False, None
        if needed is not None or claims:
            scopes = ("relay",) if needed is None or batch is not None else UPLOADING[needed]
            try:
                is_relay = (await authorised(headers, self._store, *scopes, campaign_id=campaign_id)).scope == "relay"
            except ProblemError as problem:
                if needed is not None or batch is not None:
                    raise
                stranger = problem
        if crowd is not None and is_relay and (batch or 0) < crowd.devices:
            raise ProblemError("batch-too-small", f"it takes {crowd.devices:,} devices, mixed before they are sent")
        if is_relay:
            return for_a_relay(campaign, self._limits, batch)
        await self._admission.check(campaign_id, headers)
        if needed is not None:
            stranger = ProblemError("missing-token", headers=CHALLENGE)
        return for_a_device(campaign, self._limits, stranger)

    def begin(self, bounds: UploadBounds, length: int) -> None:
        """Admit a body of this length before it is read. Raises ProblemError."""
        if self.ingest.is_draining:
            raise retry_later("stopping")
        if length > bounds.bytes:
            text = f"at most {bounds.bytes} bytes are accepted, not {length}"
            raise bounds.stranger or ProblemError("body-too-large", text)
        if not bounds.is_relay:
            self._admission.count(bounds.campaign.id)

    async def counted(self, bounds: UploadBounds, body: bytes, authorization: str | None) -> Outcome:
        """Queue an upload, with its header ``Authorization``, and wait. A caller that is cancelled cancels nothing but
        its waiting. Raises ProblemError.
        """
        upload = Waiting(bounds, body, authorization)
        self.ingest.take(upload)
        return await upload.answer

    def note(self, campaign_id: str | None, status: int, seconds: float, code: str | None = None) -> None:
        """An upload was answered, so long after it was asked for; ``code`` is that of a problem. Without a campaign it
        was a sealed one.
        """
        self.metrics.count_request(PATH if campaign_id else SEALED_PATH, METHOD, status, seconds)
        if code is not None:
            self.metrics.refusals.labels(code).inc()
            self.note_refused(campaign_id or UNKNOWN, code)

    def note_refused(self, campaign_id: str, code: str) -> None:
        """A campaign refused an upload, where it exists."""
        if code not in ABSENT:
            self.metrics.count_refused(campaign_id, UPLOAD, code)


def vouched_batch(headers: Mapping[str, str]) -> int | None:
    """Read how many devices a relay says it mixed; what is not understood is refused, or it would be lost for good."""
    text = headers.get(BATCH_HEADER)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 16 and 1 <= int(text) <= LARGEST_BATCH):
        raise ProblemError("malformed-request", f"{BATCH_HEADER} must be a whole number from 1 to {LARGEST_BATCH}")
    return int(text)
