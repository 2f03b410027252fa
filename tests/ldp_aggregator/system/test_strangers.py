"""Strangers hold what they have sent, and no more: while as many as there are places for say what is longest, at any
route of any process, honest uploads are counted and operators sign in.

The routes are those of the routing tables: a new one is tried by itself.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from cells import cell_campaign, reports_of
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from daemon import Daemon
from forked import programs
from issuing import PUBLISHED, SIGNER
from raw_http import ELSEWHERE, dial, request_of
from strangers import LONGEST_BODY, SHARE, Ask, Crowd, good_of, head_of

from ldp_aggregator.dashboard import routes
from ldp_aggregator.issuer import TokenIssuer
from ldp_aggregator.issuer.service import LIMITS as ISSUERS
from ldp_aggregator.issuer.service import Service
from ldp_aggregator.relay import Relay
from ldp_aggregator.relay.door import LARGEST_REQUEST_HEAD, Counts
from ldp_aggregator.relay.gateway import device_routes, watching_routes
from ldp_aggregator.server.apps import ADMIN, OPERATIONS, PUBLIC
from ldp_aggregator.server.sockets.heads import HEAD_LINES
from ldp_aggregator.service.rights import make_token
from ldp_aggregator.service.settings import Limits
from ldp_aggregator.service.signing import gateway_of
from ldp_aggregator.store import SqliteStore
from ldp_aggregator.store.contract import utc_now
from ldp_aggregator.store.sqlite.database import FILE_NAME
from ldp_client import MemoryStorage
from ldp_client.network.sealed import Sealed
from ldp_protocols import Campaign, encode_upload
from ldp_protocols.oblivious import BESIDE_BODY, REQUEST_TYPE, BinaryRequest, encode_request
from ldp_protocols.tokens import REQUEST_TYPE as TOKENS
from ldp_protocols.wire import MEDIA_TYPE

FEW, ALL = 24, Limits.connections
"""Places of a listener in ``make test``, where all of its routes are held at once, and by default."""
FORM = "application/x-www-form-urlencoded"
SEED = bytes(range(32))
ID = "A" * 43
TOKEN_REQUEST = bytes.fromhex(PUBLISHED["token_request"])


@dataclass(frozen=True)
class Route:
    """A way to ask a listener for something, and what is the longest line, head and body of it."""

    listener: str
    method: str
    path: str
    media_type: str = FORM
    longest: int = LONGEST_BODY
    line: int = Limits.header_bytes - 2
    head: int = HEAD_LINES * (Limits.header_bytes - 2)

    def __str__(self) -> str:
        return f"{self.listener} {self.method} {self.path}"


def _of_aggregator() -> Iterator[Route]:
    tables = {"public": (PUBLIC, routes.PUBLIC), "admin": (ADMIN, routes.ADMIN), "operations": (OPERATIONS, ())}
    for name, (operations, pages) in tables.items():
        for row in operations:
            for media_type in row.bodies or [FORM]:
                yield Route(name, row.method, row.path, media_type, row.longest or LONGEST_BODY)
        for page in pages:
            yield Route(name, page.method, page.path, longest=page.longest)


def _of_relay() -> Iterator[Route]:
    relay = Relay("http://127.0.0.1:1", ID, storage=MemoryStorage())
    for name, rows in (("relay", device_routes(relay)), ("watching", watching_routes(relay, Counts()))):
        for row in rows:
            method, path = row.method.replace("*", "GET"), row.path.replace(ID, "{id}").replace("(.*)", "x")
            size = LARGEST_REQUEST_HEAD - 2
            yield Route(name, method, path, row.media_type or FORM, row.longest or LONGEST_BODY, size, size)


def _of_issuer() -> Iterator[Route]:
    with tempfile.TemporaryDirectory() as folder:
        service = Service(TokenIssuer(SIGNER, Path(folder) / "people.sqlite"), "X-Remote-User")
    line = ISSUERS.header_bytes - 2
    for name, rows in (("issuer", service.routes), ("issuer's watching", service.watching)):
        for row in rows:
            yield Route(name, row.method, row.path, TOKENS, row.longest, line, HEAD_LINES * line)


def routes_of(listener: str) -> list[Route]:
    """Those in the tables of routes, and what is in none."""
    found = [one for one in (*_of_aggregator(), *_of_relay(), *_of_issuer()) if one.listener == listener]
    return [*found, replace(found[0], method="GET", path="/nowhere")]


class Honest:
    """Processes, and those who mean well."""

    def __init__(self, campaign: Campaign, token: str = "") -> None:
        self.campaign, self.token = campaign, token
        self.urls: dict[str, str] = {}
        self._numbers = itertools.count()

    def url(self, listener: str) -> str:
        return self.urls[listener]

    def path(self, route: Route) -> str:
        return re.sub(r"\{\w+\}", self.campaign.id, route.path)

    @property
    def asks(self) -> list[Ask]:
        """Of the processes that there are."""
        of = {
            "public": [self.upload, self.upload_of_a_page, self.sealed_upload, self.sign_in, self.health],
            "relay": [self.upload_by_relay, self.sealed_upload_by_relay, self.health_of_relay],
            "issuer": [self.token_of_issuer, self.health_of_issuer],
        }
        return [ask for name, asks in of.items() if name in self.urls for ask in asks]

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

    def _sealed(self) -> bytes:
        body = encode_upload(reports_of(self.campaign, [next(self._numbers) % 64]), self.campaign)
        path = f"/v1/campaigns/{self.campaign.id}/reports"
        inside = BinaryRequest("POST", "https", "x", path, (("content-type", MEDIA_TYPE),), body)
        return Sealed(gateway_of(SEED), encode_request(inside, beside=BESIDE_BODY)).body

    async def sealed_upload(self, _number: int) -> bool:
        return await self._ask("public", _request("POST", "/v1/ohttp", self._sealed(), REQUEST_TYPE)) == 200

    async def upload_by_relay(self, _number: int) -> bool:
        return await self._ask("relay", request_of(self.campaign, next(self._numbers) % 64)) == 200

    async def sealed_upload_by_relay(self, _number: int) -> bool:
        return await self._ask("relay", _request("POST", "/ohttp", self._sealed(), REQUEST_TYPE)) == 202

    async def health_of_relay(self, _number: int) -> bool:
        return await self._ask("watching", _request("GET", "/readyz")) == 200

    async def token_of_issuer(self, _number: int) -> bool:
        named = "X-Remote-User: ann"
        return await self._ask("issuer", _request("POST", "/token-request", TOKEN_REQUEST, TOKENS, named)) == 200

    async def health_of_issuer(self, _number: int) -> bool:
        return await self._ask("issuer's watching", _request("GET", "/readyz")) == 200

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
async def aggregator(folder: Path, connections: int) -> AsyncIterator[Honest]:
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
        served = Honest(campaign, token)
        served.urls = {name: getattr(daemon, name) for name in ("public", "admin", "operations")}
        yield served


@asynccontextmanager
async def relay(folder: Path, _connections: int) -> AsyncIterator[Honest]:
    async with aggregator(folder, FEW) as served:
        line = [served.urls["public"], served.campaign.id, "--storage", folder / "relay.db", "--least-batch", "100000"]
        started = program("ldp-relay", *line, "--port", "0", "--operations-port", "0")
        with started as told:
            ports = re.search(r"relaying on ([\d.:]+), watched on ([\d.:]+)", told)
            asked = Honest(served.campaign)
            asked.urls = {"relay": f"http://{ports[1]}", "watching": f"http://{ports[2]}"}
            yield asked


@asynccontextmanager
async def issuer(folder: Path, _connections: int) -> AsyncIterator[Honest]:
    (folder / "issuer.pem").write_bytes(SIGNER.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    (folder / "issuer.pem").chmod(0o600)
    line = [folder / "issuer.pem", "--people", folder / "people.sqlite", "--port", "0", "--operations-port", "0"]
    with program("python", "-m", "ldp_aggregator.issuer", *line, lines=2) as told:
        ports = re.search(r"signs at http://([\d.:]+)/token-request, watched at http://([\d.:]+)", told)
        asked = Honest(cell_campaign(64))
        asked.urls = {"issuer": f"http://{ports[1]}", "issuer's watching": f"http://{ports[2]}"}
        yield asked


@contextmanager
def program(name: str, *line: object, lines: int = 1) -> Iterator[str]:
    """The lines that a program says when it has started; it stops when it is told to."""
    with subprocess.Popen([str(programs() / name), *map(str, line)], stdout=subprocess.PIPE, text=True) as process:
        try:
            yield "".join(process.stdout.readline() for _ in range(lines))
        finally:
            process.terminate()
            assert process.wait(20) == 0


def sayings(served: Honest, route: Route) -> Iterator[tuple[bytes, bool]]:
    """What strangers say: a head that does not end, one whose body does not come (of the greatest length that the
    route takes, and of more), and what is never read.
    """
    asked = (route.method, served.path(route))
    whole = head_of(*asked, route.head, route.line, route.media_type, body=route.longest)
    yield whole[:-3], True
    yield whole, True
    yield head_of(*asked, 0, route.line, route.media_type, body=LONGEST_BODY), True
    yield head_of(*asked, 0, route.line, route.media_type, body=0) * 50, False


PROCESSES = {
    "public": aggregator,
    "admin": aggregator,
    "operations": aggregator,
    "relay": relay,
    "watching": relay,
    "issuer": issuer,
    "issuer's watching": issuer,
}
"""Of every listener."""


def test_every_listener_of_every_routing_table_is_tried():
    assert {route.listener for route in (*_of_aggregator(), *_of_relay(), *_of_issuer())} == set(PROCESSES)


@pytest.mark.parametrize("listener", PROCESSES)
@pytest.mark.parametrize(
    ("connections", "tries"), [(FEW, 1), pytest.param(ALL, 20, marks=pytest.mark.long)], ids=["few", "all"]
)
async def test_while_strangers_hold_any_route_with_all_places_everybody_else_is_served(
    listener, connections, tries, tmp_path
):
    shares = {}
    async with PROCESSES[listener](tmp_path, connections) as served:
        assert [await ask(0) for ask in served.asks] == [True] * len(served.asks), "as long as nobody else is there"
        for route in routes_of(listener):
            async with Crowd(served.url(listener), list(sayings(served, route)), connections + 20):
                shares[str(route)] = await good_of(served.asks, tries)
    assert sum(shares.values()) >= SHARE * len(shares), {name: share for name, share in shares.items() if share < 1}
