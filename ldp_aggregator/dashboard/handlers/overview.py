"""The list of campaigns: how each fills up, and what was refused."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from aiohttp import web
from markupsafe import Markup

from ldp_aggregator.counting.tally import Tally
from ldp_aggregator.dashboard.drawing.plots import curve
from ldp_aggregator.dashboard.drawing.precision import Precision, precisions, worst
from ldp_aggregator.dashboard.drawing.server_metrics import (
    Readings,
    Refused,
    read_exposition,
    refused_by,
    refused_reports,
)
from ldp_aggregator.dashboard.page_sources import Sources, thinned
from ldp_aggregator.dashboard.pages import PageError, page
from ldp_aggregator.dashboard.session import Visit
from ldp_aggregator.estimation.estimates import estimate
from ldp_aggregator.store.contract import CampaignState
from protocols import Campaign
from protocols.document.authored import MOMENTS

ON_A_PAGE: Final = 12
IN_A_TABLE: Final = 12
"""Samples of a curve that its table has."""
LIVE_MILLISECONDS: Final = 2000
"""After which a browser asks again: one event is one answer, and no connection stays open."""


@dataclass(frozen=True)
class Entry:
    """One campaign of the list."""

    state: CampaignState
    status: str
    plot: Markup
    questions: list[Precision]
    expected: float | None
    reached: float | None
    points: list[tuple[datetime, int]]
    refused: list[Refused]
    problem: str = ""


async def get_overview(visit: Visit, sources: Sources) -> web.Response:
    """All campaigns, the newest first, some at a time."""
    states = list(reversed(await sources.store.campaigns()))
    pages = max(1, -(-len(states) // ON_A_PAGE))
    at = visit.query.get("page", "1")
    if not (at.isascii() and at.isdigit() and len(at) < 9 and 1 <= int(at) <= pages):
        raise PageError(404, "No such page", f"The list has {pages} pages.")
    shown = states[(int(at) - 1) * ON_A_PAGE : int(at) * ON_A_PAGE]
    readings = await asyncio.to_thread(lambda: read_exposition(sources.exposition()))
    entries = [await _entry(state, sources, readings) for state in shown]
    return page(
        "overview.html",
        entries=entries,
        total=len(states),
        at=int(at),
        pages=pages,
        refused=refused_reports(readings, sources.report_codes),
        counted=readings.counted,
        duplicates=readings.duplicates,
        since=sources.history.since,
        **visit.common(),
    )


async def get_live(_visit: Visit, sources: Sources) -> web.Response:
    """The numbers of reports now, as one server-sent event."""
    states = await sources.store.campaigns()
    return event({"reports": {state.id: state.shares if state.federated else state.reports for state in states}})


def event(values: Mapping[str, object]) -> web.Response:
    """One event; the browser comes back by itself."""
    body = f"retry: {LIVE_MILLISECONDS}\ndata: {json.dumps(values)}\n\n"
    return web.Response(text=body, content_type="text/event-stream", charset="utf-8")


async def _entry(state: CampaignState, sources: Sources, readings: Readings) -> Entry:
    points = points_of(state, sources)
    plot = curve(points, title=f"Reports of {state.title} against time")
    told = thinned(points, IN_A_TABLE)
    status = state.status(sources.clock())
    refused = refused_by(readings, state.id, sources.report_codes, sources.upload_codes)
    if state.federated:
        return Entry(state, status, Markup(""), [], None, None, [], refused)
    try:
        campaign = await sources.campaign(state.id)
        tally = await sources.store.tally(state.id)
        found = await asyncio.to_thread(_precision, campaign, tally)
    except Exception as error:  # One damaged campaign hides no other.
        return Entry(state, status, plot, [], None, None, told, refused, f"It cannot be read: {error}")
    return Entry(state, status, plot, found, worst(found, reached=False), worst(found, reached=True), told, refused)


def _precision(campaign: Campaign, tally: Tally) -> list[Precision]:
    # What a document releases in steps is not looked at between them: only how many answered what.
    is_shown = campaign.asks != MOMENTS and campaign.privacy.release_every is None
    estimates = estimate(campaign, tally) if is_shown else None
    return precisions(campaign, devices_of(campaign, tally), tally.n.tolist(), estimates)


def points_of(state: CampaignState, sources: Sources) -> list[tuple[datetime, int]]:
    """Reports against time, up to now; from 0 where the campaign was made since this server began to look."""
    since = sources.history.since
    made = [] if since is None or state.created < since else [(state.created, 0)]
    return [*made, *sources.history.of(state.id), (sources.clock(), state.reports)]


def devices_of(campaign: Campaign, tally: Tally) -> int:
    """Count how many devices answered; where a device answers every group, those of the largest."""
    if campaign.privacy.answers != "all":
        return int(tally.n.sum())
    numbers = dict.fromkeys((question.group for question in campaign.questions), 0)
    for question, n in zip(campaign.questions, tally.n.tolist(), strict=True):
        numbers[question.group] += n
    return max(numbers.values())
