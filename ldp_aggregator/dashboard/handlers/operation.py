"""Pages about the server's health, which nodes take part in federated campaigns, and who has tokens."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final

from aiohttp import web

from ldp_aggregator.dashboard.drawing.server_metrics import read_exposition, refused_reports, refused_requests
from ldp_aggregator.dashboard.handlers.entrance import see
from ldp_aggregator.dashboard.page_sources import Sources
from ldp_aggregator.dashboard.pages import PageError, page
from ldp_aggregator.dashboard.session import Visit
from ldp_aggregator.node_statistics import Releases
from ldp_aggregator.service.rights import make_token, recorded
from ldp_aggregator.store.contract import SCOPES, Shares, StoredShare

MOST_TOKENS: Final = 200
"""Shown, those in use first and then the latest; the command line lists all."""


@dataclass(frozen=True)
class Node:
    """A node that ever sent a share: the one it has (None where it withdrew it), and how many it sent."""

    name: str
    share: StoredShare | None
    releases: Releases


async def get_health(visit: Visit, sources: Sources) -> web.Response:
    """Commits, queue, failures: the server's metrics in words."""
    readings = await asyncio.to_thread(lambda: read_exposition(sources.exposition()))
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
    found = [(state, state.status(sources.clock()), nodes_of(await sources.store.shares(state.id))) for state in states]
    return page("federation.html", found=found, **visit.common())


def nodes_of(shares: Shares | None) -> list[Node]:
    """By name, those that withdrew their share too."""
    if shares is None:
        return []
    kept = {member.node: member for member in shares.members}
    return [Node(name, kept.get(name), releases) for name, releases in shares.releases]


async def get_tokens(visit: Visit, sources: Sources) -> web.Response:
    """All tokens, by name; never their texts."""
    return await _tokens_page(visit, sources)


async def post_token(visit: Visit, sources: Sources) -> web.Response:
    """Make a token. Its text is on the page that answers, and nowhere else ever again."""
    form = visit.form
    name, scope = form.get("name", "").strip(), form.get("scope", "")
    if scope not in SCOPES:
        raise PageError(400, "No such scope", f"A token has one of the scopes {', '.join(SCOPES)}.")
    try:
        text, token = make_token(name, scope, sources.clock())
    except ValueError as error:
        return await _tokens_page(visit, sources, problem=f"{error}.", status=400, name=name)
    if any(known.name == name for known in await sources.store.tokens()):
        problem = f"There is a token of the name {name} already; a name is used once."
        return await _tokens_page(visit, sources, problem=problem, status=409, name=name)
    async with recorded(sources.store, visit.actor, "create token", detail=f"{scope} {name}"):
        await sources.store.add_token(token)
    sources.mutated("token-made")
    return await _tokens_page(visit, sources, made=text, made_name=name)


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


async def _tokens_page(
    visit: Visit,
    sources: Sources,
    *,
    problem: str = "",
    status: int = 200,
    name: str = "",
    made: str = "",
    made_name: str = "",
) -> web.Response:
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
