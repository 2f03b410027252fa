"""Strangers hold what they have sent, and no more: while as many as there are places for say what is longest, at any
route of any process, honest uploads are counted and operators sign in.

The routes are those of the routing tables: a new one is tried by itself.
"""

from __future__ import annotations

import itertools
import json
import os
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from cells import cell_campaign, reports_of
from daemon import Daemon
from raw_http import ELSEWHERE, dial, request_of
from strangers import LONGEST_BODY, SHARE, Ask, Crowd, good_of, head_of

from ldp_aggregator.dashboard import routes
from ldp_aggregator.server.apps import ADMIN, OPERATIONS, PUBLIC
from ldp_aggregator.server.sockets.heads import HEAD_LINES
from ldp_aggregator.service.rights import make_token
from ldp_aggregator.service.settings import Limits
from ldp_aggregator.service.signing import gateway_of
from ldp_aggregator.store import SqliteStore
from ldp_aggregator.store.contract import utc_now
from ldp_aggregator.store.sqlite.database import FILE_NAME
from ldp_client.network.sealed import Sealed
from ldp_protocols import Campaign, encode_upload
from ldp_protocols.oblivious import REQUEST_TYPE, BinaryRequest, encode_request
from ldp_protocols.wire import MEDIA_TYPE

FEW, ALL = 60, Limits.connections
"""Places of a listener in ``make test``, where all of its routes are held at once, and by default."""
LINE = Limits.header_bytes - 2
HEAD = HEAD_LINES * LINE
FORM = "application/x-www-form-urlencoded"
SEED = bytes(range(32))


@dataclass(frozen=True)
class Route:
    """A way to ask a listener for something."""

    listener: str
    method: str
    path: str
    media_type: str = FORM
    longest: int = LONGEST_BODY

    def __str__(self) -> str:
        return f"{self.listener} {self.method} {self.path}"


LISTENERS = {"public": (PUBLIC, routes.PUBLIC), "admin": (ADMIN, routes.ADMIN), "operations": (OPERATIONS, ())}


def _routes() -> Iterator[Route]:
    for name, (operations, pages) in LISTENERS.items():
        for row in operations:
            for media_type in row.bodies or [FORM]:
                yield Route(name, row.method, row.path, media_type, row.longest or LONGEST_BODY)
        for page in pages:
            yield Route(name, page.method, page.path, longest=page.longest)
        yield Route(name, "GET", "/nowhere")


ROUTES = list(_routes())


class Honest:
    """A server in a process of its own, and those who mean well."""

    def __init__(self, daemon: Daemon, campaign: Campaign, token: str) -> None:
        self.daemon, self.campaign, self.token = daemon, campaign, token
        self._numbers = itertools.count()

    def url(self, listener: str) -> str:
        return getattr(self.daemon, listener)

    def path(self, route: Route) -> str:
        return re.sub(r"\{\w+\}", self.campaign.id, route.path)

    @property
    def asks(self) -> list[Ask]:
        return [self.upload, self.upload_of_a_page, self.sealed_upload, self.sign_in, self.health]

    async def _ask(self, listener: str, data: bytes) -> int:
        line = await dial(self.url(listener))
        try:
            return (await line.ask(data)).status
        finally:
            line.writer.close()

    async def upload(self, _number: int) -> bool:
        return await self._ask("public", request_of(self.campaign, next(self._numbers) % 64)) == 200

    async def upload_of_a_page(self, _number: int) -> bool:
        return await self._ask("public", request_of(self.campaign, next(self._numbers) % 64, **ELSEWHERE)) == 200

    async def sealed_upload(self, _number: int) -> bool:
        body = encode_upload(reports_of(self.campaign, [next(self._numbers) % 64]), self.campaign)
        path = f"/v1/campaigns/{self.campaign.id}/reports"
        inside = BinaryRequest("POST", "https", "x", path, (("content-type", MEDIA_TYPE),), body)
        sealed = Sealed(gateway_of(SEED), encode_request(inside)).body
        return await self._ask("public", _request("POST", "/v1/ohttp", sealed, REQUEST_TYPE)) == 200

    async def sign_in(self, _number: int) -> bool:
        form = f"token={self.token}".encode()
        signed_in = await self._ask("admin", _request("POST", "/login", form, FORM))
        draft = json.dumps({"version": 1, "title": "no draft"}).encode()
        shown = f"Authorization: Bearer {self.token}"
        sent = await self._ask("admin", _request("POST", "/admin/v1/campaigns", draft, "application/json", shown))
        return (signed_in, sent) == (303, 400)

    async def health(self, _number: int) -> bool:
        return await self._ask("operations", _request("GET", "/healthz")) == 200


def _request(method: str, path: str, body: bytes = b"", media_type: str = "", *headers: str) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", *headers]
    lines += [f"Content-Type: {media_type}", f"Content-Length: {len(body)}"] if body else []
    return "\r\n".join([*lines, "", ""]).encode() + body


@asynccontextmanager
async def honest(folder: Path, connections: int) -> AsyncIterator[Honest]:
    key = folder / "gateway.key"
    with os.fdopen(os.open(key, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
        file.write("ldp-bayes gateway key 1: AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8\n")
    campaign = cell_campaign(64, gateway=gateway_of(SEED).to_json())
    token, stored = make_token("an admin", "admin", utc_now())
    store = SqliteStore(folder / FILE_NAME)
    await store.create_campaign(campaign)
    await store.add_token(stored)
    await store.close()
    environment = {"LDP_AGGREGATOR_GATEWAY_KEY": str(key), "LDP_AGGREGATOR_CONNECTIONS": str(connections)}
    with Daemon(folder, **environment) as daemon:
        served = Honest(daemon, campaign, token)
        assert [await ask(0) for ask in served.asks] == [True] * len(served.asks), "as long as nobody else is there"
        yield served


def sayings(served: Honest, route: Route) -> Iterator[tuple[bytes, bool]]:
    """What strangers say: a head that does not end, one whose body does not come (of the greatest length that the
    route takes, and of more), and what is never read.
    """
    asked = (route.method, served.path(route))
    whole = head_of(*asked, HEAD, LINE, route.media_type, body=route.longest)
    yield whole[:-3], True
    yield whole, True
    yield head_of(*asked, 0, LINE, route.media_type, body=LONGEST_BODY), True
    yield head_of(*asked, 0, LINE, route.media_type, body=0) * 50, False


async def held(served: Honest, listener: str, number: int, tries: int) -> dict[str, float]:
    """The share of good answers while so many strangers hold each of a listener's routes."""
    shares = {}
    for route in (one for one in ROUTES if one.listener == listener):
        async with Crowd(served.url(listener), list(sayings(served, route)), number):
            shares[str(route)] = await good_of(served.asks, tries)
    return shares


@pytest.mark.parametrize("listener", LISTENERS)
@pytest.mark.parametrize(
    ("connections", "tries"), [(FEW, 1), pytest.param(ALL, 20, marks=pytest.mark.long)], ids=["few", "all"]
)
async def test_while_strangers_hold_any_route_with_all_places_everybody_else_is_served(
    listener, connections, tries, tmp_path
):
    async with honest(tmp_path, connections) as served:
        shares = await held(served, listener, connections + 20, tries)
    assert sum(shares.values()) >= SHARE * len(shares), {name: share for name, share in shares.items() if share < 1}
