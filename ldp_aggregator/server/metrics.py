"""What Prometheus may know: counts and times. No report, token or address is a label, and nothing that a client wrote.

Campaigns are, by their id, which is public: those that are open or refuse something, and so many at most. With several
worker processes prometheus-client adds their files up in the folder that ``PROMETHEUS_MULTIPROC_DIR`` names.
"""

from __future__ import annotations

import os
import platform
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Final

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Metric,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.metrics_core import GaugeMetricFamily
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead
from prometheus_client.registry import Collector

FOLDER_VARIABLE: Final = "PROMETHEUS_MULTIPROC_DIR"
COMMIT_BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
REQUEST_BUCKETS: Final = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
MOST_CAMPAIGNS: Final = 1000
"""That are told of one by one."""
REPORT: Final = "report"
UPLOAD: Final = "upload"
"""What is refused: a report of an upload whose rest was counted, or an upload as a whole."""
GROUP_BUCKETS: Final = (1, 3, 10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000)


OBSERVED: Final[Mapping[str, tuple[str, str]]] = {
    "ldp_free_bytes": ("Room that is left where the embedded store is", ""),
    "ldp_store_bytes": ("Bytes of the embedded store's files", "part"),
    "ldp_store_files": ("Runs of ids, and drafts of runs", "part"),
    "ldp_damaged_campaigns": ("Campaigns that go on although a part of what is stored of them is damaged", ""),
    "ldp_archive_pending_files": ("Files of an archive in a folder that wait for their commit", ""),
    "ldp_last_backup_timestamp_seconds": ("When the store was backed up last", ""),
    "ldp_certificate_expires_timestamp_seconds": ("When the public listener's certificate ends", ""),
    "ldp_directory_expires_timestamp_seconds": ("When a publisher's directory ends", "key"),
}
"""What is looked at every half minute: text, and the name of the label where it has one."""


class Metrics:
    """The instruments of one process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "ldp_requests",
            "Requests by route, method and status",
            ["route", "method", "status"],
            registry=self.registry,
        )
        self._requests: dict[tuple[str, str, int], Counter] = {}
        self.request_seconds = Histogram(
            "ldp_request_seconds",
            "Time from a request's headers to its answer, by route and method",
            ["route", "method"],
            buckets=REQUEST_BUCKETS,
            registry=self.registry,
        )
        self._seconds: dict[tuple[str, str], Histogram] = {}
        self.refusals = Counter(
            "ldp_refusals",
            "Requests and connections refused, by the problem's code",
            ["code"],
            registry=self.registry,
        )
        self.campaign_refusals = Counter(
            "ldp_campaign_refusals",
            "Reports and whole uploads that a campaign refused, by code",
            ["campaign", "what", "code"],
            registry=self.registry,
        )
        self._refusing: set[str] = set()
        self.connections = Gauge(
            "ldp_connections",
            "Open connections by listener",
            ["listener"],
            registry=self.registry,
            multiprocess_mode="livesum",
        )
        self.queue_age = Gauge(
            "ldp_queue_age_seconds",
            "How long the upload that waits longest has waited for its commit",
            registry=self.registry,
            multiprocess_mode="livemax",
        )
        self.reports = Counter(
            "ldp_reports",
            "Reports by outcome: counted, duplicate, or the code that refused them",
            ["outcome"],
            registry=self.registry,
        )
        self.shares = Counter(
            "ldp_shares",
            "Shares of nodes by outcome: kept, withdrawn, or the code that refused them",
            ["outcome"],
            registry=self.registry,
        )
        self.commit_seconds = Histogram(
            "ldp_commit_seconds", "Time of a commit", buckets=COMMIT_BUCKETS, registry=self.registry
        )
        self.group_reports = Histogram(
            "ldp_group_reports", "Reports committed together", buckets=GROUP_BUCKETS, registry=self.registry
        )
        self.queue_bytes = Gauge(
            "ldp_queue_bytes",
            "Bytes held of clients of the public listener: read, waiting or being committed, answers not read",
            registry=self.registry,
            multiprocess_mode="livesum",
        )
        self.mutations = Counter(
            "ldp_mutations", "Changes that an operator asked for", ["kind"], registry=self.registry
        )
        self.store_errors = Counter("ldp_store_errors", "Failures of the store", registry=self.registry)
        self.told = Told()
        self.registry.register(self.told)
        if FOLDER_VARIABLE not in os.environ:  # Of several processes only one would be seen.
            ProcessCollector(registry=self.registry)

    def count_refusal(self, code: str) -> None:
        """One problem document was the answer."""
        self.refusals.labels(code).inc()

    def count_refused(self, campaign_id: str, what: str, code: str, number: int = 1) -> None:
        """A campaign that exists refused so many :data:`REPORT` or :data:`UPLOAD`."""
        if campaign_id not in self._refusing:
            if len(self._refusing) >= MOST_CAMPAIGNS:
                return
            self._refusing.add(campaign_id)
        self.campaign_refusals.labels(campaign_id, what, code).inc(number)

    def count_request(self, route: str, method: str, status: int, seconds: float) -> None:
        """One answered request; its counter is looked up by hand, because this is on every request's way."""
        timer = self._seconds.get((route, method))
        if timer is None:
            timer = self._seconds[route, method] = self.request_seconds.labels(route, method)
        timer.observe(seconds)
        child = self._requests.get((route, method, status))
        if child is None:
            child = self._requests[route, method, status] = self.requests.labels(route, method, status)
        child.inc()

    def observe_commit(self, reports: int, seconds: float, outcomes: Mapping[str, int]) -> None:
        """One commit: how many reports it took together, and what became of how many."""
        self.group_reports.observe(reports)
        self.commit_seconds.observe(seconds)
        for name, number in outcomes.items():
            if number:
                self.reports.labels(name).inc(number)

    def render(self) -> bytes:
        """The exposition format, of all workers where there are several."""
        if FOLDER_VARIABLE not in os.environ:
            return generate_latest(self.registry)
        together = CollectorRegistry()
        MultiProcessCollector(together)  # type: ignore[no-untyped-call]
        together.register(self.told)
        return generate_latest(together)


def mark_dead(process: int | None) -> None:
    """What a worker that died had open is open no longer; what it counted stays."""
    if process is not None:
        mark_process_dead(process)  # type: ignore[no-untyped-call]


class Told(Collector):
    """What no process counts by itself: what is running, and what the store said of the open campaigns last."""

    def __init__(self) -> None:
        self._ids: Mapping[str, int] = {}
        self._failing: set[str] = set()
        self.observed: Mapping[tuple[str, str], float] = {}
        """Of :data:`OBSERVED`, by name and label."""

    def open_campaigns(self, ids: Mapping[str, int]) -> None:
        """Ids that are kept to tell retries apart, by campaign."""
        self._ids = dict(sorted(ids.items())[:MOST_CAMPAIGNS])

    def note_failing(self, campaigns: Mapping[str, bool]) -> None:
        """Whether the last commit of each of these campaigns failed for it alone."""
        for campaign_id, fails in campaigns.items():
            if fails and len(self._failing) < MOST_CAMPAIGNS:
                self._failing.add(campaign_id)
            elif self._failing and not fails:
                self._failing.discard(campaign_id)

    def collect(self) -> Iterator[Metric]:
        """Asked by Prometheus' library at every scrape."""
        build = GaugeMetricFamily("ldp_build_info", "What is running", labels=["version", "python", "sqlite"])
        build.add_metric([version("ldp-bayes"), platform.python_version(), sqlite3.sqlite_version], 1)
        yield build
        kept = GaugeMetricFamily(
            "ldp_campaign_ids", "Report ids kept by open campaign, as of the last half minute", labels=["campaign"]
        )
        for campaign_id, number in self._ids.items():
            kept.add_metric([campaign_id], number)
        yield kept
        failing = GaugeMetricFamily(
            "ldp_campaign_failing", "Campaigns that could not be counted, where others can be", labels=["campaign"]
        )
        for campaign_id in sorted(self._failing):
            failing.add_metric([campaign_id], 1)
        yield failing
        for name, (text, label) in OBSERVED.items():
            family = GaugeMetricFamily(name, text, labels=[label] if label else [])
            for (found, value), now in self.observed.items():
                if found == name:
                    family.add_metric([value] if label else [], now)
            yield family


@dataclass(frozen=True, slots=True)
class ConnectionWatch:
    """What one listener tells of its connections."""

    metrics: Metrics
    listener: str

    def open(self, number: int) -> None:
        """So many are open now."""
        self.metrics.connections.labels(self.listener).set(number)

    def held(self, size: int) -> None:
        """So many bytes are held for their clients now."""
        if self.listener == "public":
            self.metrics.queue_bytes.set(size)

    def refused(self, code: str) -> None:
        """One was refused before there was a request that a handler could answer."""
        self.metrics.count_refusal(code)
