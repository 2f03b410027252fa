"""Sources of the pages, which the server hands over: its store, its numbers since it started, and how many reports
there were when. Nothing here is on an upload's way.

The store keeps sums and no times, so that nothing tells when a device answered. The samples that are kept here in
memory, fewer the further they reach back, are coarse, are lost with the process, and say from when on they know.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from ldp_aggregator.dashboard.latest import Latest
from ldp_aggregator.store import Store
from ldp_aggregator.store.contract import LOG, Clock, StoreError, kind_of, utc_now
from ldp_protocols import Campaign

SAMPLE_SECONDS: Final = 30.0
MOST_SAMPLES: Final = 240
"""Samples of one process, two hours at first. When full, every other one goes, and the next come half as often."""
MOST_CAMPAIGNS: Final = 200

Sample = tuple[datetime, Mapping[str, int]]


class History:
    """Numbers of reports by campaign, sampled."""

    def __init__(self) -> None:
        self._samples: list[Sample] = []
        self._every = 1
        self._skipped = 0

    def note(self, at: datetime, reports: Mapping[str, int]) -> None:
        """Keep a sample, or let it pass where samples have become rarer."""
        self._skipped += 1
        if self._skipped < self._every:
            return
        self._skipped = 0
        self._samples.append((at, dict(reports)))
        if len(self._samples) >= MOST_SAMPLES:
            self._samples = self._samples[::2]
            self._every *= 2

    @property
    def since(self) -> datetime | None:
        """The first sample's time."""
        return self._samples[0][0] if self._samples else None

    def of(self, campaign_id: str) -> list[tuple[datetime, int]]:
        """The samples of one campaign, oldest first."""
        return [(at, reports[campaign_id]) for at, reports in self._samples if campaign_id in reports]


def thinned(points: Sequence[tuple[datetime, int]], most: int) -> list[tuple[datetime, int]]:
    """At most so many of the points, evenly, the last one among them."""
    step = -(-len(points) // most) if points else 1
    return list(points[::-1][::step][::-1])


async def sample(store: Store, history: History, clock: Clock, seconds: float = SAMPLE_SECONDS) -> None:
    """Until cancelled. A store that does not answer is asked again later."""
    while True:
        try:
            states = (await store.campaigns())[-MOST_CAMPAIGNS:]
            history.note(clock(), {state.id: state.reports for state in states})
        except StoreError as error:
            LOG.warning("no sample of the numbers of reports", extra={"reason": kind_of(error)})
        await asyncio.sleep(seconds)


REPORT: Final = "report"
"""Kind of what was refused where the rest of its upload was counted; anything else is an upload, or a request."""


@dataclass(frozen=True)
class Readings:
    """Numbers of a process since it started: reports ``counted``, sent again and ``refused`` by code; commits by how
    long they took (upper bound in seconds to number up to it); requests by route, method and status; what was refused
    by code, and of each campaign by what it was and code; campaigns that are ``failing`` where others can be counted,
    and those that are ``keyless``: nobody opens what is sealed to them.
    """

    counted: int
    duplicates: int
    refused: Mapping[str, int]
    commits: Mapping[float, int]
    commit_seconds: float
    commit_count: int
    queue_bytes: int
    queue_seconds: float
    store_errors: int
    requests: Mapping[tuple[str, str, str], int]
    refusals: Mapping[str, int]
    campaigns: Mapping[str, Mapping[tuple[str, str], int]]
    failing: Collection[str]
    keyless: Collection[str] = ()
    told: Mapping[tuple[str, str], float] = field(default_factory=dict)
    """Numbers that no request tells, by the name of their metric and the value of its label."""
    version: str = ""
    started: float = 0.0
    """Seconds since 1970."""

    def wrong_with(self, campaign_id: str) -> str:
        """The reason why nothing of an open campaign is counted, "" where nothing is known to be wrong."""
        if campaign_id in self.failing:
            return "The store cannot count this campaign: ldp-aggregator fsck says why."
        return "The key that its answers are sealed to is not here." if campaign_id in self.keyless else ""

    @property
    def mean_commit_seconds(self) -> float | None:
        return self.commit_seconds / self.commit_count if self.commit_count else None

    def commit_quantile(self, share: float) -> float | None:
        """The upper bound of the bucket in which this share of the commits ends; None without commits."""
        wanted = share * self.commit_count
        reached = [bound for bound, number in sorted(self.commits.items()) if number >= wanted]
        return reached[0] if self.commit_count and reached else None


UNEXPLAINED: Final = "no explanation of this code is known"


@dataclass(frozen=True)
class Refused:
    """So many of ``what`` (a report, an upload, a request) with this code."""

    what: str
    code: str
    number: int
    sentence: str


def refused_reports(readings: Readings, sentences: Mapping[str, str]) -> list[Refused]:
    """Reports of all campaigns whose upload's rest was counted."""
    return _sorted(
        Refused(REPORT, code, number, sentences.get(code, UNEXPLAINED)) for code, number in readings.refused.items()
    )


def refused_requests(readings: Readings, sentences: Mapping[str, str]) -> list[Refused]:
    """Requests and connections, whatever they were about."""
    return _sorted(
        Refused("request", code, number, sentences.get(code, UNEXPLAINED)) for code, number in readings.refusals.items()
    )


def refused_by(
    readings: Readings, campaign_id: str, reports: Mapping[str, str], uploads: Mapping[str, str]
) -> list[Refused]:
    """Refusals of one campaign: single reports, and uploads as a whole; the sentences of both."""
    return _sorted(
        Refused(what, code, number, (reports if what == REPORT else uploads).get(code, UNEXPLAINED))
        for (what, code), number in readings.campaigns.get(campaign_id, {}).items()
    )


def _sorted(found: Iterable[Refused]) -> list[Refused]:
    """The most frequent first."""
    return sorted(found, key=lambda one: (-one.number, one.what, one.code))


@dataclass(frozen=True)
class Sources:
    """Passed to every page's handler.

    ``campaign`` gives a parsed campaign by its id, ``federated_model`` the model of the shares there are now (None
    before there is one), ``readings`` the numbers of this process, ``is_well`` whether the last write to the store
    worked, ``queue_age`` for how many seconds an upload waits here. ``count`` takes (path, method, status, seconds) of
    an answer, ``mutated`` the kind of a change that an operator made. ``report_codes`` and ``upload_codes`` explain the
    codes that refuse reports, and whole uploads; ``body_bytes`` is the longest form that is read. ``is_archived`` says
    whether accepted reports are kept one by one, ``has_try`` whether the page that explains by doing is offered;
    ``behind_tls`` whether operators come through a proxy that speaks TLS;
    ``check_receivable`` raises DraftError for a campaign of which nobody could open an answer here; ``public_pages``
    holds pages for everybody as they were drawn, ``latest`` numbers that were worked out for a state of a campaign's
    counts, ``rounds`` the campaigns that the model of each evaluation round comes from.
    """

    store: Store
    campaign: Callable[[str], Awaitable[Campaign]]
    federated_model: Callable[[Campaign], Awaitable[bytes | None]]
    readings: Callable[[], Readings]
    is_well: Callable[[], bool]
    queue_age: Callable[[], float]
    count: Callable[[str, str, int, float], None]
    mutated: Callable[[str], None]
    report_codes: Mapping[str, str]
    upload_codes: Mapping[str, str]
    body_bytes: int
    check_receivable: Callable[[Campaign], None] = lambda _campaign: None
    is_archived: bool = False
    has_try: bool = False
    behind_tls: bool = False
    clock: Clock = utc_now
    history: History = field(default_factory=History)
    public_pages: dict[tuple[str, str, bool], asyncio.Task[bytes]] = field(default_factory=dict)
    latest: Latest = field(default_factory=Latest)
    rounds: dict[str, list[str]] = field(default_factory=dict)
