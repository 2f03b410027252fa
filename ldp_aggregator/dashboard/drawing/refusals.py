"""What was refused, by code, each with the sentence that explains it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from ldp_aggregator.dashboard.drawing.readings import Readings

REPORT: Final = "report"
UNEXPLAINED: Final = "no explanation of this code is known"


@dataclass(frozen=True)
class Refused:
    """So many of ``what`` (a report, an upload, a request) with this code."""

    what: str
    code: str
    number: int
    sentence: str


def of_reports(readings: Readings, sentences: Mapping[str, str]) -> list[Refused]:
    """Reports of all campaigns whose upload's rest was counted."""
    return _sorted(
        Refused(REPORT, code, number, sentences.get(code, UNEXPLAINED)) for code, number in readings.refused.items()
    )


def of_requests(readings: Readings, sentences: Mapping[str, str]) -> list[Refused]:
    """Requests and connections, whatever they were about."""
    return _sorted(
        Refused("request", code, number, sentences.get(code, UNEXPLAINED)) for code, number in readings.refusals.items()
    )


def of_campaign(
    readings: Readings, campaign_id: str, reports: Mapping[str, str], uploads: Mapping[str, str]
) -> list[Refused]:
    """What one campaign refused: single reports, and uploads as a whole; the sentences of both."""
    return _sorted(
        Refused(what, code, number, (reports if what == REPORT else uploads).get(code, UNEXPLAINED))
        for (what, code), number in readings.campaigns.get(campaign_id, {}).items()
    )


def _sorted(found: Iterable[Refused]) -> list[Refused]:
    """The most frequent first."""
    return sorted(found, key=lambda one: (-one.number, one.what, one.code))
