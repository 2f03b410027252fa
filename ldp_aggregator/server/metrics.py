"""Metrics for Prometheus: counts and times. No report, token or address is a label, and nothing that a client wrote.

Campaigns are, by their id, which is public: those that are open or refuse something, and so many at most.
"""

from __future__ import annotations

import asyncio
import math
import platform
import sqlite3
import time
from collections.abc import Collection, Iterator, Mapping
from functools import partial
from importlib.metadata import version
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Metric, ProcessCollector, generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily
from prometheus_client.registry import Collector

from ldp_aggregator.dashboard.page_sources import REPORT as REPORT
from ldp_aggregator.dashboard.page_sources import Readings
from ldp_aggregator.store.contract import LOG

COMMIT_BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
REQUEST_BUCKETS: Final = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
MOST_CAMPAIGNS: Final = 1000
"""Campaigns that have series of their own at most."""
RENDER_SECONDS: Final = 0.1
"""Seconds between two renderings at least: one takes some milliseconds, and anybody may ask for it."""
UPLOAD: Final = "upload"
"""The other kind of refusal, beside :data:`REPORT`: an upload as a whole."""
GROUP_BUCKETS: Final = (1, 3, 10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000)

OBSERVED: Final[Mapping[str, tuple[str, str]]] = {
    "ldp_campaign_ids": ("Stored report ids of an open campaign, as of the last half minute", "campaign"),
    "ldp_campaign_failing": ("Campaigns that cannot be counted; /readyz stays 200", "campaign"),
    "ldp_gateway_key_missing": ("1 for an open campaign whose gateway key this process lacks", "campaign"),
    "ldp_campaign_unsigned": ("Open campaigns that no directory of the setting publishers names", "campaign"),
    "ldp_store_info": ("The store by its own id; status compares it", "store"),
    "ldp_time_seconds": ("This machine's clock", ""),
    "ldp_free_bytes": ("Free space on the embedded store's disk", ""),
    "ldp_store_bytes": ("Size of the embedded store: database, wal, runs, drafts", "part"),
    "ldp_store_files": ("Files of the embedded store: runs, drafts", "part"),
    "ldp_damaged_campaigns": ("Campaigns that go on with a damaged part of their store", ""),
    "ldp_archive_pending_files": ("Files of the archive whose commit has no recorded end", ""),
    "ldp_last_backup_timestamp_seconds": ("The end of the last good backup", ""),
    "ldp_certificate_expires_timestamp_seconds": ("The end of the public listener's certificate", ""),
    "ldp_directory_expires_timestamp_seconds": ("The end of a publisher's directory", "key"),
}
"""The gauges beside counts and times: text, and the name of the label where it has one."""


class DoorMetrics:
    """The instruments of whoever listens: requests, connections, refusals."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "ldp_requests",
            "Requests by route, method and status",
            ["route", "method", "status"],
            registry=self.registry,
        )
        self.request_seconds = Histogram(
            "ldp_request_seconds",
            "Time from a request's headers to its answer, commit included",
            ["route", "method"],
            buckets=REQUEST_BUCKETS,
            registry=self.registry,
        )
        self._answered: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}
        self.refusals = Counter(
            "ldp_refusals",
            "Every refusal of a request or connection, by its code",
            ["code"],
            registry=self.registry,
        )
        self.connections = Gauge(
            "ldp_connections", "Open connections by listener", ["listener"], registry=self.registry
        )
        self.queue_bytes = Gauge(
            "ldp_queue_bytes",
            "Bytes of requests and unread answers on the public listener; near 64 MiB clients get 503",
            registry=self.registry,
        )
        self._due: asyncio.Task[bytes] | None = None
        self._rendered_at = -math.inf
        ProcessCollector(registry=self.registry)

    def count_request(self, route: str, method: str, status: int, seconds: float) -> None:
        """One answered request; its instruments are looked up by hand, because this is on every request's way."""
        found = self._answered.get((route, method, status))
        if found is None:
            found = self.requests.labels(route, method, status), self.request_seconds.labels(route, method)
            self._answered[route, method, status] = found
        found[0].inc()
        found[1].observe(seconds)

    def render(self) -> bytes:
        """The exposition format."""
        return generate_latest(self.registry)

    async def exposition(self) -> bytes:
        """The exposition format, made in a thread, once for all who ask meanwhile."""
        if self._due is None:
            self._due = asyncio.create_task(self._render_soon())
        return await asyncio.shield(self._due)

    async def _render_soon(self) -> bytes:
        await asyncio.sleep(self._rendered_at + RENDER_SECONDS - time.monotonic())
        self._due, self._rendered_at = None, time.monotonic()
        return await asyncio.to_thread(self.render)


class Metrics(DoorMetrics):
    """The instruments of the aggregator."""

    def __init__(self) -> None:
        super().__init__()
        counter = partial(Counter, registry=self.registry)
        gauge = partial(Gauge, registry=self.registry)
        histogram = partial(Histogram, registry=self.registry)
        self.campaign_refusals = counter(
            "ldp_campaign_refusals",
            "Refusals of a campaign, of a report or a whole upload",
            ["campaign", "what", "code"],
        )
        self._refusing: set[str] = set()
        self.queue_age = gauge(
            "ldp_queue_age_seconds", "Age of the oldest upload that waits for its commit; seconds: the store hangs"
        )
        self.reports = counter(
            "ldp_reports",
            "Reports: counted, duplicate, or a code; conflicting-report is a client that randomises anew",
            ["outcome"],
        )
        self.reports.labels("counted")  # From the start: an alert that none were counted needs a zero.
        self.shares = counter("ldp_shares", "Shares of nodes: kept, withdrawn, or the code of a refusal", ["outcome"])
        self.commit_seconds = histogram(
            "ldp_commit_seconds", "Time of a commit; slow disks show here first", buckets=COMMIT_BUCKETS
        )
        self.group_reports = histogram("ldp_group_reports", "Reports committed together", buckets=GROUP_BUCKETS)
        self.mutations = counter("ldp_mutations", "Campaigns made and closed, models published", ["kind"])
        self.store_errors = counter("ldp_store_errors", "Failures of the store; look at any")
        self.gauges = ReportedGauges()
        self.registry.register(self.gauges)

    def count_refused(self, campaign_id: str, what: str, code: str, number: int = 1) -> None:
        """A campaign that exists refused so many :data:`REPORT` or :data:`UPLOAD`."""
        if campaign_id not in self._refusing:
            if len(self._refusing) >= MOST_CAMPAIGNS:
                return
            self._refusing.add(campaign_id)
        self.campaign_refusals.labels(campaign_id, what, code).inc(number)

    def observe_commit(self, reports: int, seconds: float, outcomes: Mapping[str, int]) -> None:
        """One commit: how many reports it took together, and what became of how many."""
        self.group_reports.observe(reports)
        self.commit_seconds.observe(seconds)
        for name, number in outcomes.items():
            if number:
                self.reports.labels(name).inc(number)

    def readings(self) -> Readings:
        """The numbers that pages show."""
        reports = {outcome: int(number) for (outcome,), number in _numbers(self.reports, "_total")}
        campaigns: dict[str, dict[tuple[str, str], int]] = {}
        for (campaign_id, what, code), number in _numbers(self.campaign_refusals, "_total"):
            campaigns.setdefault(campaign_id, {})[what, code] = int(number)
        return Readings(
            counted=reports.pop("counted", 0),
            duplicates=reports.pop("duplicate", 0),
            refused=reports,
            commits={float(bound): int(number) for (bound,), number in _numbers(self.commit_seconds, "_bucket")},
            commit_seconds=_number(self.commit_seconds, "_sum"),
            commit_count=int(_number(self.commit_seconds, "_count")),
            queue_bytes=int(_number(self.queue_bytes)),
            queue_seconds=_number(self.queue_age),
            store_errors=int(_number(self.store_errors, "_total")),
            requests={(r, m, status): int(number) for (r, m, status), number in _numbers(self.requests, "_total")},
            refusals={code: int(number) for (code,), number in _numbers(self.refusals, "_total")},
            campaigns=campaigns,
            failing=self.gauges.failing(),
            keyless=self.gauges.keyless(),
            told=self.gauges.values(),
            version=version("ldp-bayes"),
            started=self.gauges.started,
        )


def _numbers(instrument: Counter | Gauge | Histogram, suffix: str = "") -> Iterator[tuple[tuple[str, ...], float]]:
    """Each number of an instrument, behind the values of its labels; ``suffix`` says which of its series."""
    for family in instrument.collect():
        for sample in family.samples:
            if sample.name == family.name + suffix:
                yield tuple(sample.labels.values()), sample.value


def _number(instrument: Counter | Gauge | Histogram, suffix: str = "") -> float:
    """The number of an instrument without labels."""
    ((_, number),) = _numbers(instrument, suffix)
    return number


class ReportedGauges(Collector):
    """Gauges that no request sets: the running version, the store's last state, the findings of housekeeping."""

    def __init__(self) -> None:
        self._ids: Mapping[str, int] = {}
        self._failing: set[str] = set()
        self._keyless: Collection[str] = ()
        self.started = time.time()
        self.observed: Mapping[tuple[str, str], float] = {}
        """Values of the gauges of :data:`OBSERVED` by name and label."""

    def open_campaigns(self, ids: Mapping[str, int]) -> None:
        """Ids that are kept to tell retries apart, by campaign."""
        self._ids = dict(sorted(ids.items())[:MOST_CAMPAIGNS])

    def note_missing_keys(self, campaigns: Collection[str]) -> None:
        """Answers to these open campaigns are sealed to a gateway's key that is not here; logged once each."""
        for campaign_id in sorted(set(campaigns).difference(self._keyless)):
            LOG.error("a gateway's key is missing", extra={"campaign": campaign_id})
        self._keyless = campaigns

    def keyless(self) -> list[str]:
        """Open campaigns whose gateway's key is missing, as of the last half minute; of many the first."""
        return sorted(self._keyless)[:MOST_CAMPAIGNS]

    def note_failing(self, campaigns: Mapping[str, bool]) -> None:
        """The last commit of each of these campaigns failed for it alone, or did not."""
        for campaign_id, fails in campaigns.items():
            if fails and len(self._failing) < MOST_CAMPAIGNS:
                self._failing.add(campaign_id)
            elif self._failing and not fails:
                self._failing.discard(campaign_id)

    def failing(self) -> frozenset[str]:
        """The campaigns whose last commit failed for them alone."""
        return frozenset(self._failing)

    def values(self) -> Mapping[tuple[str, str], float]:
        """Each gauge of :data:`OBSERVED` now, by name and label."""
        values = dict(self.observed)
        values["ldp_time_seconds", ""] = time.time()
        values |= {("ldp_campaign_ids", name): number for name, number in self._ids.items()}
        values |= {("ldp_gateway_key_missing", name): 1 for name in self.keyless()}
        values |= {("ldp_campaign_failing", name): 1 for name in sorted(self._failing)}
        return values

    def collect(self) -> Iterator[Metric]:
        """Asked by Prometheus' library at every scrape."""
        build = GaugeMetricFamily("ldp_build_info", "What is running", labels=["version", "python", "sqlite"])
        build.add_metric([version("ldp-bayes"), platform.python_version(), sqlite3.sqlite_version], 1)
        yield build
        values = self.values()
        for name, (text, label) in OBSERVED.items():
            family = GaugeMetricFamily(name, text, labels=[label] if label else [])
            for (found, value), now in values.items():
                if found == name:
                    family.add_metric([value] if label else [], now)
            yield family
