"""What Prometheus may know: counts and times. No campaign, report, token or address is a label.

With several worker processes prometheus-client adds their files up in the folder that ``PROMETHEUS_MULTIPROC_DIR``
names.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

FOLDER_VARIABLE: Final = "PROMETHEUS_MULTIPROC_DIR"
COMMIT_BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
GROUP_BUCKETS: Final = (1, 3, 10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000)


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
            "Bytes of uploads being read, waiting or being committed",
            registry=self.registry,
            multiprocess_mode="livesum",
        )
        self.mutations = Counter(
            "ldp_mutations", "Changes that an operator asked for", ["kind"], registry=self.registry
        )
        self.store_errors = Counter("ldp_store_errors", "Failures of the store", registry=self.registry)

    def count_request(self, route: str, method: str, status: int) -> None:
        """One answered request; its counter is looked up by hand, because this is on every request's way."""
        child = self._requests.get((route, method, status))
        if child is None:
            child = self._requests[route, method, status] = self.requests.labels(route, method, status)
        child.inc()

    def observe_commit(self, reports: int, seconds: float, outcomes: Mapping[str, int], *, queue_bytes: int) -> None:
        """One commit: how many reports it took together, and what became of how many."""
        self.queue_bytes.set(queue_bytes)
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
        return generate_latest(together)
