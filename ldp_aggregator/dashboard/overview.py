"""All of the server: the list of campaigns, what needs somebody first; the server's health, which nodes take part in
federated campaigns, and who has tokens.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Final, NamedTuple

from aiohttp import web

from ldp_aggregator.dashboard.campaign_facts import facts_of, shown_of, warm
from ldp_aggregator.dashboard.drawing.plots import sparkline
from ldp_aggregator.dashboard.page_sources import Readings, Sources, refused_reports, refused_requests
from ldp_aggregator.dashboard.pages import PageError, page
from ldp_aggregator.dashboard.session import Visit, see
from ldp_aggregator.node_statistics import Releases
from ldp_aggregator.service.publishing import look_at_nodes
from ldp_aggregator.service.rights import make_token, recorded
from ldp_aggregator.service.server_health import ServerFacts, findings
from ldp_aggregator.service.verdicts import (
    ACT,
    FINE,
    MODEL,
    MOODS,
    NOTE,
    WATCH,
    Verdict,
    attention,
    decide,
)
from ldp_aggregator.service.words import about, counted, size
from ldp_aggregator.store.contract import LOG, SCOPES, CampaignState, StoredShare, kind_of
from ldp_protocols import Campaign, LdpError

if TYPE_CHECKING:
    from ldp_aggregator.trainers.node_overview import NodeOverview

ON_A_PAGE: Final = 25
MOST_JUDGED: Final = 200
"""Campaigns that are judged by what was learned, too, the newest; older ones by what keeps them."""
IN_A_TABLE: Final = 12
"""Samples of a curve that its table has."""
LIVE_MILLISECONDS: Final = 2000
"""After which a browser asks again: one event is one answer, and no connection stays open."""
DAY: Final = 86400


@dataclass(frozen=True)
class Entry:
    """One campaign of the list: its ``model`` in a few words, what it asks of somebody, and its reports over time."""

    state: CampaignState
    status: str
    model: Verdict
    attention: Verdict
    spark: str = ""
    pace: str = ""

    @property
    def rank(self) -> tuple[int, int, float]:
        """The place in a list: what needs somebody first, then what is open, what is closed last; the newest first."""
        is_urgent = self.attention.mood in (ACT, WATCH)
        mood = MOODS.index(self.attention.mood) if is_urgent else len(MOODS)
        return self.status == "closed", mood, -self.state.created.timestamp()


async def get_overview(visit: Visit, sources: Sources) -> web.Response:
    """All campaigns, what needs somebody first, some at a time."""
    states = await sources.store.campaigns()
    pages = max(1, -(-len(states) // ON_A_PAGE))
    at = visit.query.get("page", "1")
    if not (at.isascii() and at.isdigit() and len(at) < 9 and 1 <= int(at) <= pages):
        raise PageError(404, "No such page", f"The list has {counted(pages, 'page')}.")
    readings = await asyncio.to_thread(sources.readings)
    judged = (
        _entry(state, sources, readings, states, is_judged=place < MOST_JUDGED)
        for place, state in enumerate(reversed(states))
    )
    entries = sorted(await asyncio.gather(*judged), key=lambda entry: entry.rank)
    entries_here = entries[(int(at) - 1) * ON_A_PAGE : int(at) * ON_A_PAGE]
    warm(sources, [entry.state for entry in entries_here])
    return page(
        "overview.html",
        entries=entries_here,
        total=len(states),
        urgent=sum(entry.attention.mood in (ACT, WATCH) for entry in entries),
        wrong=list(server_findings(sources, readings, states)),
        at=int(at),
        pages=pages,
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


async def _entry(
    state: CampaignState, sources: Sources, readings: Readings, states: Sequence[CampaignState], *, is_judged: bool
) -> Entry:
    status = state.status(sources.clock())
    try:
        numbers = None
        if is_judged and not state.federated and not state.damaged:
            numbers = await shown_of(sources, await sources.campaign(state.id), state, learned=False)
        facts = await facts_of(sources, state, readings, states, numbers, learned=False)
    except Exception as error:  # One damaged campaign hides no other.
        LOG.error("a campaign cannot be read", extra={"campaign": state.id, "reason": kind_of(error)})
        return Entry(
            state, "damaged", Verdict(NOTE, ""), Verdict(ACT, "Cannot be read", "ldp-aggregator fsck says why.")
        )
    points = points_of(state, sources)
    spark = sparkline(points, title=f"Reports of {state.title} since {points[0][0]:%Y-%m-%d %H:%M} UTC")
    return Entry(state, status, decide(MODEL, facts), attention(facts), spark, _pace(points))


def _pace(points: Sequence[tuple[datetime, int]]) -> str:
    """The number that came a day, where a day was seen, else since the first look."""
    seconds, came = (points[-1][0] - points[0][0]).total_seconds(), points[-1][1] - points[0][1]
    if came <= 0:
        return ""
    if seconds >= DAY:
        return f"{about(came * DAY / seconds)} a day"
    return f"{came:,} since {points[0][0]:%H:%M}"


def points_of(state: CampaignState, sources: Sources) -> list[tuple[datetime, int]]:
    """Reports against time, up to now; from 0 where the campaign was made since this server began to look."""
    since = sources.history.since
    made = [] if since is None or state.created < since else [(state.created, 0)]
    return [*made, *sources.history.of(state.id), (sources.clock(), state.reports)]


SCOPE_WORDS: Final = {
    "admin": "opens everything here",
    "collector": "reads estimates",
    "node": "sends the shares of one organisation to federated campaigns",
    "relay": "uploads the answers of many devices, where uploads need a token",
    "device": "uploads a device’s own answer, where uploads need a token",
}
"""Each of :data:`SCOPES`, and what its tokens do."""
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


@dataclass(frozen=True)
class Reading:
    """A row of the page of health: what it is, its number in words, and how that is."""

    name: str
    text: str
    mood: str = NOTE


def server_findings(sources: Sources, readings: Readings, states: Sequence[CampaignState]) -> list[str | object]:
    """The findings about this server, as ``ldp-aggregator status`` says it."""
    titles = {state.id: state.title for state in states}
    facts = ServerFacts.of(readings.told, time.time(), store_fails=not sources.is_well(), titles=titles)
    return list(findings(facts))


async def get_health(visit: Visit, sources: Sources) -> web.Response:
    """The page of health: what ``ldp-aggregator status`` knows, commits, queue, failures, answers by reason."""
    readings = await asyncio.to_thread(sources.readings)
    return page(
        "health.html",
        readings=readings,
        wrong=server_findings(sources, readings, await sources.store.campaigns()),
        server=list(_server(readings)),
        answered=_answered(readings),
        waited=max(readings.queue_seconds, sources.queue_age()),
        refused=refused_reports(readings, sources.report_codes),
        refused_requests=refused_requests(readings, sources.upload_codes),
        **visit.common(),
    )


def _server(readings: Readings) -> Iterator[Reading]:
    now, facts = time.time(), ServerFacts.of(readings.told, time.time())
    yield Reading("Version", readings.version)
    yield Reading("Running for", _lasting(now - readings.started))
    yield Reading("Clock", f"{datetime.fromtimestamp(now, timezone.utc):%Y-%m-%d %H:%M:%S} UTC")
    moods = {finding.entry: finding.mood for finding in findings(facts)}
    if facts.free_bytes is not None:
        used = sum(value for (name, _), value in readings.told.items() if name == "ldp_store_bytes")
        yield Reading("Disk", f"{size(used)} used, {size(facts.free_bytes)} free", moods.get("diskfull", FINE))
    backup = readings.told.get(("ldp_last_backup_timestamp_seconds", ""))
    if backup is None:
        yield Reading("Last backup", "none yet", WATCH)
    else:
        yield Reading("Last backup", f"{_lasting(now - backup)} ago")
    for name, end, entry in (
        ("Certificate", facts.certificate_ends, "certificateends"),
        ("Publisher’s directory", facts.directory_ends, "directoryends"),
    ):
        if end is not None:
            yield Reading(name, f"ends {datetime.fromtimestamp(end, timezone.utc):%Y-%m-%d}", moods.get(entry, FINE))
    if any(name == "ldp_gateway_key_missing" for name, _ in readings.told):
        yield Reading("Gateway keys", counted(len(facts.keyless), "campaign") + " without a key", ACT)
    yield Reading("Damaged campaigns", counted(facts.damaged, "campaign"), ACT if facts.damaged else FINE)


def _lasting(seconds: float) -> str:
    for unit, name in ((DAY, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= unit:
            return counted(int(seconds // unit), name)
    return "less than a minute"


_ANSWERS: Final = (
    ("2", "answered"),
    ("3", "sent on, or unchanged"),
    ("4", "refused: the client’s fault"),
    ("5", "failed: the server’s fault"),
)


def _answered(readings: Readings) -> list[tuple[str, int]]:
    """The number of requests by the way in which they ended."""
    found = dict.fromkeys((words for _, words in _ANSWERS), 0)
    for (_, _, status), number in readings.requests.items():
        for first, words in _ANSWERS:
            if status.startswith(first):
                found[words] += number
    return [(words, number) for words, number in found.items() if number]


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
    members = {member.node: member for member in shares.members}
    nodes = [Node(name, members.get(name), releases, seen.get(name)) for name, releases in shares.releases]
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
    if any(existing.name == name for existing in await sources.store.tokens()):
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
        scopes=SCOPE_WORDS,
        problem=problem,
        name=name,
        made=made,
        made_name=made_name,
        mine=visit.session.digest if visit.session else None,
        **visit.common(),
    )
