"""The server's own metrics, read from their exposition: of all its processes, since it started."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from prometheus_client.parser import text_string_to_metric_families

COUNTED = "counted"
DUPLICATE = "duplicate"


@dataclass
class Readings:
    """Reports by outcome, commits by how long they took (upper bound in seconds to number up to it), the queue,
    refusals by code, and those of each campaign: of a "report" or a whole "upload".
    """

    counted: int = 0
    duplicates: int = 0
    refused: dict[str, int] = field(default_factory=dict)
    commits: dict[float, int] = field(default_factory=dict)
    commit_seconds: float = 0.0
    commit_count: int = 0
    queue_bytes: int = 0
    store_errors: int = 0
    requests: dict[tuple[str, str, str], int] = field(default_factory=dict)
    refusals: dict[str, int] = field(default_factory=dict)
    campaigns: dict[str, dict[tuple[str, str], int]] = field(default_factory=dict)
    queue_seconds: float = 0.0
    failing: set[str] = field(default_factory=set)
    """Campaigns that cannot be counted, where others can be."""

    @property
    def mean_commit_seconds(self) -> float | None:
        return self.commit_seconds / self.commit_count if self.commit_count else None

    def commit_quantile(self, share: float) -> float | None:
        """The upper bound of the bucket in which this share of the commits ends; None without commits."""
        wanted = share * self.commit_count
        reached = [bound for bound, number in sorted(self.commits.items()) if number >= wanted]
        return reached[0] if self.commit_count and reached else None


def read_exposition(exposition: bytes) -> Readings:
    """From Prometheus' text format."""
    readings = Readings()
    for family in text_string_to_metric_families(exposition.decode()):
        for name, labels, value, *_ in family.samples:
            _take(readings, name, labels, value)
    return readings


def _take(readings: Readings, name: str, labels: dict[str, str], value: float) -> None:
    if name == "ldp_reports_total":
        outcome = labels["outcome"]
        if outcome == COUNTED:
            readings.counted += int(value)
        elif outcome == DUPLICATE:
            readings.duplicates += int(value)
        else:
            readings.refused[outcome] = readings.refused.get(outcome, 0) + int(value)
    elif name == "ldp_commit_seconds_bucket":
        readings.commits[float(labels["le"])] = int(value)
    elif name == "ldp_commit_seconds_sum":
        readings.commit_seconds = value
    elif name == "ldp_commit_seconds_count":
        readings.commit_count = int(value)
    elif name == "ldp_queue_bytes":
        readings.queue_bytes = int(value)
    elif name == "ldp_refusals_total":
        readings.refusals[labels["code"]] = int(value)
    elif name == "ldp_queue_age_seconds":
        readings.queue_seconds = value
    elif name == "ldp_campaign_refusals_total":
        of_campaign = readings.campaigns.setdefault(labels["campaign"], {})
        of_campaign[labels["what"], labels["code"]] = int(value)
    elif name == "ldp_campaign_failing" and value:
        readings.failing.add(labels["campaign"])
    elif name == "ldp_store_errors_total":
        readings.store_errors = int(value)
    elif name == "ldp_requests_total":
        readings.requests[labels["route"], labels["method"], labels["status"]] = int(value)


REPORT: Final = "report"
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
    """List what one campaign refused: single reports, and uploads as a whole; the sentences of both."""
    return _sorted(
        Refused(what, code, number, (reports if what == REPORT else uploads).get(code, UNEXPLAINED))
        for (what, code), number in readings.campaigns.get(campaign_id, {}).items()
    )


def _sorted(found: Iterable[Refused]) -> list[Refused]:
    """The most frequent first."""
    return sorted(found, key=lambda one: (-one.number, one.what, one.code))
