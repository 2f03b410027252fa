"""Where uploads of devices are taken in: which requests may come the short way, and what is asked before the queue."""

from __future__ import annotations

from typing import Final, Protocol

from ldp_aggregator.server.context import Context
from ldp_aggregator.server.metrics import UPLOAD
from ldp_aggregator.server.problems import ProblemError
from ldp_aggregator.server.sockets.heads import Head
from ldp_aggregator.server.uploads.answers import CountedAnswer
from ldp_aggregator.server.uploads.limits import most_from_a_device
from ldp_aggregator.server.uploads.reading import RawUpload
from protocols import Campaign

PATH: Final = "/v1/campaigns/{id}/reports"
METHOD: Final = "POST"


class Desk(Protocol):
    """What a connection needs to take an upload without aiohttp."""

    answer: CountedAnswer

    def campaign_of(self, head: Head) -> Campaign | None:
        """The campaign of an upload that may come the short way."""
        ...

    def hold(self, campaign: Campaign, size: int) -> None:
        """Take room for an upload of so many bytes. Raises ProblemError."""
        ...

    def take(self, upload: RawUpload) -> None:
        """Queue it."""
        ...

    def note(self, campaign: Campaign, status: int, seconds: float, code: str | None = None) -> None:
        """An upload was answered, so long after it was asked for; ``code`` is that of a problem."""
        ...


class UploadDesk:
    """See :class:`Desk`."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._open = not (context.settings.uploads_need_token or context.admission.checks)
        self._limits = context.settings.limits
        self.take = context.ingest.take
        self.answer = CountedAnswer()

    def campaign_of(self, head: Head) -> Campaign | None:
        if not self._open or head.campaign_id is None or head.length is None:
            return None
        if not self._context.access.is_known_open(head.campaign_id):
            return None
        campaign = self._context.campaigns.known(head.campaign_id)
        if campaign is None:
            return None
        most = most_from_a_device(campaign, self._limits)
        return campaign if head.length <= most.bytes and most.reports >= len(campaign.groups) else None

    def hold(self, campaign: Campaign, size: int) -> None:
        self._context.admission.count(campaign.id)
        self._context.ingest.hold(size)

    def note(self, campaign: Campaign, status: int, seconds: float, code: str | None = None) -> None:
        self._context.metrics.count_request(PATH, METHOD, status, seconds)
        if code is not None:
            self._context.metrics.count_refusal(code)
            self._context.metrics.count_refused(campaign.id, UPLOAD, code)


def too_slow() -> ProblemError:
    """A body that did not arrive in time."""
    return ProblemError("body-timeout", headers={"Connection": "close"})
