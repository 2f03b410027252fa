"""Metrics for Prometheus, and the work that a server does by itself, every half minute: close campaigns that are over,
delete what need not be kept, and look at what operators have to watch and no request tells of: room on the disk,
backups, what runs out.

Metrics are counts and times. No report, token or address is a label, and nothing that a client wrote. Campaigns are, by
their id, which is public: those that are open or refuse something, and so many at most.
"""

from __future__ import annotations

import asyncio
import platform
import shutil
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Metric, ProcessCollector, generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily
from prometheus_client.registry import Collector

from ldp_aggregator.service.rights import SERVER, recorded
from ldp_aggregator.service.settings import Settings
from ldp_aggregator.store import Store
from ldp_aggregator.store.contract import DONE, LOG, Clock, StoreError, UnknownCampaignError, kind_of, utc_now
from ldp_aggregator.store.decisions import is_over
from protocols import DocumentError
from protocols.document.directory import read_directory

COMMIT_BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
REQUEST_BUCKETS: Final = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
MOST_CAMPAIGNS: Final = 1000
"""That are told of one by one."""
REPORT: Final = "report"
UPLOAD: Final = "upload"
"""The kinds of refusal: a report of an upload whose rest was counted, or an upload as a whole."""
GROUP_BUCKETS: Final = (1, 3, 10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000)

OBSERVED: Final[Mapping[str, tuple[str, str]]] = {
    "ldp_campaign_ids": ("Report ids kept by open campaign, as of the last half minute", "campaign"),
    "ldp_campaign_failing": ("Campaigns that could not be counted, where others can be", "campaign"),
    "ldp_free_bytes": ("Room that is left where the embedded store is", ""),
    "ldp_store_bytes": ("Bytes of the embedded store's files", "part"),
    "ldp_store_files": ("Runs of ids, and drafts of runs", "part"),
    "ldp_damaged_campaigns": ("Campaigns that go on although a part of what is stored of them is damaged", ""),
    "ldp_archive_pending_files": ("Files of an archive in a folder that wait for their commit", ""),
    "ldp_last_backup_timestamp_seconds": ("When the store was backed up last", ""),
    "ldp_certificate_expires_timestamp_seconds": ("When the public listener's certificate ends", ""),
    "ldp_directory_expires_timestamp_seconds": ("When a publisher's directory ends", "key"),
}
"""The gauges beside counts and times: text, and the name of the label where it has one."""


class Metrics:
    """The instruments of the process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        counter = partial(Counter, registry=self.registry)
        gauge = partial(Gauge, registry=self.registry)
        histogram = partial(Histogram, registry=self.registry)
        self.requests = counter("ldp_requests", "Requests by route, method and status", ["route", "method", "status"])
        self.request_seconds = histogram(
            "ldp_request_seconds",
            "Time from a request's headers to its answer, by route and method",
            ["route", "method"],
            buckets=REQUEST_BUCKETS,
        )
        self._answered: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}
        self.refusals = counter("ldp_refusals", "Requests and connections refused, by the problem's code", ["code"])
        self.campaign_refusals = counter(
            "ldp_campaign_refusals",
            "Reports and whole uploads that a campaign refused, by code",
            ["campaign", "what", "code"],
        )
        self._refusing: set[str] = set()
        self.connections = gauge("ldp_connections", "Open connections by listener", ["listener"])
        self.queue_age = gauge(
            "ldp_queue_age_seconds", "How long the upload that waits longest has waited for its commit"
        )
        self.reports = counter(
            "ldp_reports", "Reports by outcome: counted, duplicate, or the code that refused them", ["outcome"]
        )
        self.shares = counter(
            "ldp_shares", "Shares of nodes by outcome: kept, withdrawn, or the code that refused them", ["outcome"]
        )
        self.commit_seconds = histogram("ldp_commit_seconds", "Time of a commit", buckets=COMMIT_BUCKETS)
        self.group_reports = histogram("ldp_group_reports", "Reports committed together", buckets=GROUP_BUCKETS)
        self.queue_bytes = gauge(
            "ldp_queue_bytes",
            "Bytes held of clients of the public listener: read, waiting or being committed, answers not read",
        )
        self.mutations = counter("ldp_mutations", "Changes that an operator asked for", ["kind"])
        self.store_errors = counter("ldp_store_errors", "Failures of the store")
        self.told = Told()
        self.registry.register(self.told)
        ProcessCollector(registry=self.registry)

    def count_refused(self, campaign_id: str, what: str, code: str, number: int = 1) -> None:
        """A campaign that exists refused so many :data:`REPORT` or :data:`UPLOAD`."""
        if campaign_id not in self._refusing:
            if len(self._refusing) >= MOST_CAMPAIGNS:
                return
            self._refusing.add(campaign_id)
        self.campaign_refusals.labels(campaign_id, what, code).inc(number)

    def count_request(self, route: str, method: str, status: int, seconds: float) -> None:
        """One answered request; its instruments are looked up by hand, because this is on every request's way."""
        found = self._answered.get((route, method, status))
        if found is None:
            found = self.requests.labels(route, method, status), self.request_seconds.labels(route, method)
            self._answered[route, method, status] = found
        found[0].inc()
        found[1].observe(seconds)

    def observe_commit(self, reports: int, seconds: float, outcomes: Mapping[str, int]) -> None:
        """One commit: how many reports it took together, and what became of how many."""
        self.group_reports.observe(reports)
        self.commit_seconds.observe(seconds)
        for name, number in outcomes.items():
            if number:
                self.reports.labels(name).inc(number)

    def render(self) -> bytes:
        """The exposition format."""
        return generate_latest(self.registry)


class Told(Collector):
    """Metrics of what no request tells: what is running, what the store said last, what housekeeping has seen."""

    def __init__(self) -> None:
        self._ids: Mapping[str, int] = {}
        self._failing: set[str] = set()
        self.observed: Mapping[tuple[str, str], float] = {}
        """Of :data:`OBSERVED`, by name and label."""

    def open_campaigns(self, ids: Mapping[str, int]) -> None:
        """Ids that are kept to tell retries apart, by campaign."""
        self._ids = dict(sorted(ids.items())[:MOST_CAMPAIGNS])

    def note_failing(self, campaigns: Mapping[str, bool]) -> None:
        """The last commit of each of these campaigns failed for it alone, or did not."""
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
        told = dict(self.observed)
        told |= {("ldp_campaign_ids", name): number for name, number in self._ids.items()}
        told |= {("ldp_campaign_failing", name): 1 for name in sorted(self._failing)}
        for name, (text, label) in OBSERVED.items():
            family = GaugeMetricFamily(name, text, labels=[label] if label else [])
            for (found, value), now in told.items():
                if found == name:
                    family.add_metric([value] if label else [], now)
            yield family


DUE_SECONDS: Final = 30.0
"""How often. Uploads are refused on time anyway; this closes what has been over for a day."""


async def keep(store: Store, metrics: Metrics, clock: Clock = utc_now, *, settings: Settings | None = None) -> None:
    """Until cancelled. A campaign that cannot be closed or deleted is told of and keeps no other."""
    while True:
        await close_once(store, metrics, clock)
        try:
            if settings is not None and settings.keep_closed_days is not None:
                await delete_once(store, metrics, clock, timedelta(days=settings.keep_closed_days))
            states = await store.campaigns()
            # Every open campaign has as many ids as reports.
            metrics.told.open_campaigns({state.id: state.reports for state in states if state.life.closed is None})
            if settings is not None:
                metrics.told.observed = await observed(store, settings)
        except StoreError as error:
            _note_failure(metrics, "store error", error)
        except (OSError, ValueError) as error:
            LOG.error("cannot be looked at", extra={"reason": kind_of(error)})
        await asyncio.sleep(DUE_SECONDS)


async def close_once(store: Store, metrics: Metrics, clock: Clock) -> None:
    """Close what is over, and log it."""
    try:
        closed = await close_due(store, clock())
    except StoreError as error:
        _note_failure(metrics, "store error", error)
        return
    for campaign_id in closed.ids:
        LOG.info("campaign closed", extra={"campaign": campaign_id})
    for campaign_id, failure in closed.failed.items():
        _note_failure(metrics, "campaign not closed", failure, campaign_id)


async def delete_once(store: Store, metrics: Metrics, clock: Clock, kept: timedelta) -> None:
    """Delete the campaigns that were closed longer ago than they are kept."""
    for state in await store.campaigns():
        if state.life.closed is None or clock() - state.life.closed < kept:
            continue
        try:
            async with recorded(store, SERVER, "delete campaign", state.id, f"closed for {kept.days} days"):
                await store.delete_campaign(state.id)
        except UnknownCampaignError:
            continue  # Another instance was faster.
        except Exception as error:
            _note_failure(metrics, "campaign not deleted", error, state.id)
        else:
            LOG.info("campaign deleted", extra={"campaign": state.id})


def _note_failure(metrics: Metrics, event: str, error: Exception, campaign_id: str | None = None) -> None:
    metrics.store_errors.inc()
    about = {"reason": kind_of(error)} | ({} if campaign_id is None else {"campaign": campaign_id})
    LOG.error(event, extra=about, exc_info=error)


@dataclass(frozen=True, slots=True)
class Closed:
    """The campaigns that were closed, and those that could not be, with what was in the way."""

    ids: tuple[str, ...]
    failed: Mapping[str, Exception]


async def close_due(store: Store, now: datetime) -> Closed:
    """Close the campaigns whose ``closes`` has passed or that are full, a grace period after that was first seen.

    Uploads are refused on time anyway. One that fails keeps no other open. Raises StoreError where the campaigns cannot
    be listed.
    """
    closed, failed = [], {}
    for state in await store.campaigns():
        over = state.over_since is not None or is_over(state.life, state.max_reports, state.reports, now)
        if state.life.closed is not None or not over:
            continue
        try:
            if (await store.end_campaign(state.id)).life.closed is not None:
                closed.append(state.id)
        except Exception as error:  # Whatever is wrong with one, the next gets its turn.
            failed[state.id] = error
    return Closed(tuple(closed), failed)


BACKED_UP: Final = "back up store"
SIGNED: Final = "publish directory"
MOST_ACTS: Final = 1000
"""Of the log, the last so many are looked at."""
Values = dict[tuple[str, str], float]
"""By the name of a metric and the value of its label, "" where it has none."""


async def observed(store: Store, settings: Settings) -> Values:
    """As of now. Raises StoreError, OSError."""
    acts = await store.acts(last=MOST_ACTS)
    values = await asyncio.to_thread(_on_disk, settings)
    values["ldp_damaged_campaigns", ""] = store.damaged
    backups = [act.moment.timestamp() for act in acts if act.act.act == BACKED_UP and act.outcome == DONE]
    if backups:
        values["ldp_last_backup_timestamp_seconds", ""] = max(backups)
    # The publisher's key stands first in what is said of a directory.
    signed = [act for act in acts if act.act.act == SIGNED and act.outcome == DONE]
    for key in {act.act.detail.partition(" ")[0] for act in signed}:
        document = await store.directory(key)
        try:
            if document is not None:
                expires = read_directory(document, key, known=True).expires
                values["ldp_directory_expires_timestamp_seconds", key] = expires.timestamp()
        except DocumentError:
            continue  # It was checked when it came, and devices check it again.
    return values


def _on_disk(settings: Settings) -> Values:
    values: Values = {}
    if settings.tls_certificate is not None:
        from cryptography.x509 import load_pem_x509_certificate  # Takes memory that only this needs.

        certificate = load_pem_x509_certificate(settings.tls_certificate.read_bytes())
        values["ldp_certificate_expires_timestamp_seconds", ""] = certificate.not_valid_after_utc.timestamp()
    if settings.database is None:
        values["ldp_free_bytes", ""] = shutil.disk_usage(settings.data).free
        sizes, files = {"database": 0, "wal": 0, "runs": 0, "drafts": 0}, {"runs": 0, "drafts": 0}
        for path in settings.data.rglob("*"):
            with suppress(FileNotFoundError):  # Runs come and go.
                part = _part(path.name)
                sizes[part] += path.stat().st_size if path.is_file() else 0
                if part in files:
                    files[part] += 1
        values |= {("ldp_store_bytes", part): size for part, size in sizes.items()}
        values |= {("ldp_store_files", part): number for part, number in files.items()}
    if settings.archive is not None and "://" not in settings.archive:
        values["ldp_archive_pending_files", ""] = sum(1 for _ in Path(settings.archive).glob("*/pending/*"))
    return values


def _part(name: str) -> str:
    if name.endswith("-wal"):
        return "wal"
    if name.endswith(".run"):
        return "drafts" if name.startswith("draft-") else "runs"
    return "database"
