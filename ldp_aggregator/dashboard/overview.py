"""All of the server: the list of campaigns, how each fills up and what was refused; the server's health, which nodes
take part in federated campaigns, and who has tokens.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from aiohttp import web
from markupsafe import Markup

from ldp_aggregator.counting.tally import Tally
from ldp_aggregator.dashboard.drawing.plots import curve
from ldp_aggregator.dashboard.drawing.precision import Precision, precisions, worst
from ldp_aggregator.dashboard.page_sources import (
    Readings,
    Refused,
    Sources,
    refused_by,
    refused_reports,
    refused_requests,
    thinned,
)
from ldp_aggregator.dashboard.pages import PageError, page
from ldp_aggregator.dashboard.session import Visit, see
from ldp_aggregator.estimation.estimates import estimate
from ldp_aggregator.node_statistics import Releases
from ldp_aggregator.service.publishing import look_at_nodes, tally_to_show
from ldp_aggregator.service.rights import make_token, recorded
from ldp_aggregator.store.contract import SCOPES, CampaignState, StoredShare
from ldp_protocols import Campaign, LdpError
from ldp_protocols.document.authored import MOMENTS

if TYPE_CHECKING:
    from ldp_aggregator.trainers.node_overview import NodeOverview

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
    is_keyless: bool
    problem: str = ""


async def get_overview(visit: Visit, sources: Sources) -> web.Response:
    """All campaigns, the newest first, some at a time."""
    states = list(reversed(await sources.store.campaigns()))
    pages = max(1, -(-len(states) // ON_A_PAGE))
    at = visit.query.get("page", "1")
    if not (at.isascii() and at.isdigit() and len(at) < 9 and 1 <= int(at) <= pages):
        raise PageError(404, "No such page", f"The list has {pages} pages.")
    shown = states[(int(at) - 1) * ON_A_PAGE : int(at) * ON_A_PAGE]
    readings = await asyncio.to_thread(sources.readings)
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
    is_keyless = state.id in readings.keyless
    if state.federated:
        return Entry(state, status, Markup(""), [], None, None, [], refused, is_keyless)
    try:
        campaign = await sources.campaign(state.id)
        found = await asyncio.to_thread(_precision, campaign, await tally_to_show(sources.store, campaign))
    except Exception as error:  # One damaged campaign hides no other.
        return Entry(state, status, plot, [], None, None, told, refused, is_keyless, f"It cannot be read: {error}")
    expected, reached = worst(found, reached=False), worst(found, reached=True)
    return Entry(state, status, plot, found, expected, reached, told, refused, is_keyless)


def _precision(campaign: Campaign, tally: Tally) -> list[Precision]:
    tally = tally.pooled()
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
    for question, n in zip(campaign.questions, tally.pooled().n.tolist(), strict=True):
        numbers[question.group] += n
    return max(numbers.values())


MOST_TOKENS: Final = 200
"""Shown, those in use first and then the latest; the command line lists all."""


@dataclass(frozen=True)
class Node:
    """A node that ever sent a share: the one it has (None where it withdrew it), how many it sent, and what the share
    tells of its table.
    """

    name: str
    share: StoredShare | None
    releases: Releases
    seen: NodeOverview | None


class Nodes(NamedTuple):
    """The nodes of a campaign, by name, and a ``warning`` where their tables are of unlike sizes."""

    campaign: Campaign
    nodes: list[Node]
    warning: str | None


async def get_health(visit: Visit, sources: Sources) -> web.Response:
    """Commits, queue, failures: the server's metrics in words."""
    readings = await asyncio.to_thread(sources.readings)
    answered: dict[str, int] = {}
    for (_, _, status), number in readings.requests.items():
        answered[status] = answered.get(status, 0) + number
    return page(
        "health.html",
        readings=readings,
        is_well=sources.is_well(),
        answered=sorted(answered.items()),
        waited=max(readings.queue_seconds, sources.queue_age()),
        refused=refused_reports(readings, sources.report_codes),
        refused_requests=refused_requests(readings, sources.upload_codes),
        **visit.common(),
    )


async def get_federation(visit: Visit, sources: Sources) -> web.Response:
    """Federated campaigns, and the nodes of each."""
    states = [state for state in reversed(await sources.store.campaigns()) if state.federated]
    found = [(state, state.status(sources.clock()), await nodes_of(sources, state)) for state in states]
    return page("federation.html", found=found, **visit.common())


async def nodes_of(sources: Sources, state: CampaignState) -> Nodes:
    """The nodes of a federated campaign, those that withdrew their share too."""
    campaign, shares = await sources.campaign(state.id), await sources.store.shares(state.id)
    if shares is None:
        return Nodes(campaign, [], None)
    try:
        seen, warning = await asyncio.to_thread(look_at_nodes, campaign, shares)
    except LdpError as error:
        if error.code != "not-installed":
            raise
        seen, warning = {}, None
    kept = {member.node: member for member in shares.members}
    nodes = [Node(name, kept.get(name), releases, seen.get(name)) for name, releases in shares.releases]
    return Nodes(campaign, nodes, warning)


async def post_token(visit: Visit, sources: Sources) -> web.Response:
    """Make a token. Its text is on the page that answers, and nowhere else ever again."""
    form = visit.form
    name, scope = form.get("name", "").strip(), form.get("scope", "")
    if scope not in SCOPES:
        raise PageError(400, "No such scope", f"A token has one of the scopes {', '.join(SCOPES)}.")
    try:
        text, token = make_token(name, scope, sources.clock())
    except ValueError as error:
        return await get_tokens(visit, sources, problem=f"{error}.", status=400, name=name)
    if any(known.name == name for known in await sources.store.tokens()):
        problem = f"There is a token of the name {name} already; a name is used once."
        return await get_tokens(visit, sources, problem=problem, status=409, name=name)
    async with recorded(sources.store, visit.actor, "create token", detail=f"{scope} {name}"):
        await sources.store.add_token(token)
    sources.mutated("token-made")
    return await get_tokens(visit, sources, made=text, made_name=name)


async def post_revoke(visit: Visit, sources: Sources) -> web.Response:
    """Make a token useless."""
    form = visit.form
    if form.get("sure") != "yes":
        raise PageError(
            400, "Nothing was revoked", "Revoking is for good. Tick the box beside the button, and send it again."
        )
    name = form.get("name", "")
    async with recorded(sources.store, visit.actor, "revoke token", detail=name):
        revoked = await sources.store.revoke_token(name)
    if not revoked:
        raise PageError(404, "No such token", "No token in use has this name. It may have been revoked already.")
    sources.mutated("token-revoked")
    return see("/tokens")


async def get_tokens(
    visit: Visit,
    sources: Sources,
    *,
    problem: str = "",
    status: int = 200,
    name: str = "",
    made: str = "",
    made_name: str = "",
) -> web.Response:
    """All tokens, by name; never their texts, but of one that was made now."""
    tokens = sorted(
        await sources.store.tokens(), key=lambda token: (token.revoked is not None, -token.created.timestamp())
    )
    return page(
        "tokens.html",
        status,
        tokens=tokens[:MOST_TOKENS],
        more=max(0, len(tokens) - MOST_TOKENS),
        scopes=SCOPES,
        problem=problem,
        name=name,
        made=made,
        made_name=made_name,
        mine=visit.session.digest if visit.session else None,
        **visit.common(),
    )
