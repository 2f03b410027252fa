"""A server in this process, on real sockets, and a client that knows its tokens."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import aiohttp
import pytest
from aiohttp import web
from cells import clock, publish, reports_of  # noqa: F401 - a fixture
from raw_http import Line, dial
from schemas import problems

from ldp_aggregator.server import apps
from ldp_aggregator.server.api.routing import JSON, PROBLEM, Operation
from ldp_aggregator.server.process import running
from ldp_aggregator.server.sockets import connections
from ldp_aggregator.server.sockets.listener import Listeners, load_tls
from ldp_aggregator.server.sockets.memory import Memory
from ldp_aggregator.service.rights import make_token
from ldp_aggregator.service.settings import Settings
from ldp_aggregator.store import SCOPES, Outcome, SqliteStore, Store, Submission
from ldp_aggregator.store.contract import utc_now
from ldp_protocols import Campaign, encode_upload
from ldp_protocols.wire import MEDIA_TYPE


def pytest_asyncio_loop_factories(item: pytest.Item) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Try on uvloop, too, what happens to connections: ``serve`` runs on it where it is installed."""
    loops: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {"asyncio": asyncio.new_event_loop}
    if item.path.parent.name == "sockets":
        loops["uvloop"] = pytest.importorskip("uvloop").new_event_loop
    return loops


class WatchedMemory(Memory):
    """Remembers the most that was held."""

    made: ClassVar[list[WatchedMemory]] = []

    def __init__(self, most):
        super().__init__(most)
        self.peak = 0
        self.made.append(self)

    def take(self, size):
        taken = super().take(size)
        self.peak = max(self.peak, self.used)
        return taken


@pytest.fixture(autouse=True)
def budgets(monkeypatch):
    """Nothing is held for clients that are gone, in any test. The first is the public listener's."""
    monkeypatch.setattr(WatchedMemory, "made", [])
    monkeypatch.setattr(connections, "Memory", WatchedMemory)
    yield WatchedMemory.made
    assert [memory.used for memory in WatchedMemory.made] == [0] * len(WatchedMemory.made)


@dataclass
class Answered:
    """An answer that was read."""

    status: int
    content: bytes
    headers: Mapping[str, str]

    @property
    def json(self) -> Any:
        return json.loads(self.content)

    @property
    def refused(self) -> tuple[int, str]:
        """Its status and its problem's code."""
        return self.status, self.json["code"]


@dataclass
class Server:
    """A server's addresses, the store behind it, and one token of every scope."""

    public: str
    admin: str
    operations: str
    store: Store
    session: aiohttp.ClientSession
    tokens: dict[str, str] = field(default_factory=dict)
    lines: list[Line] = field(default_factory=list)

    def bearer(self, scope: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.tokens[scope]}"}

    async def publish(self, cells: int = 64, **changes: Any) -> Campaign:
        return await publish(self.store, cells, **changes)

    async def ask(self, method: str, url: str, scope: str = "", **more: Any) -> Answered:
        """The answer to a request with a token of this scope; a path is one of the admin listener."""
        more["headers"] = (self.bearer(scope) if scope else {}) | more.get("headers", {})
        async with self.session.request(method, self.admin + url if url[0] == "/" else url, **more) as answer:
            return Answered(answer.status, await answer.read(), answer.headers)

    async def metrics(self) -> str:
        return (await self.ask("GET", self.operations + "/metrics")).content.decode()

    async def dial(self, url: str | None = None, **more: Any) -> Line:
        """A connection of bytes, which is closed before the server is."""
        self.lines.append(await dial(url or self.public, **more))
        return self.lines[-1]

    async def dials(self, number: int, url: str | None = None) -> list[Line]:
        return [await self.dial(url) for _ in range(number)]

    async def refused(self, campaign: Campaign, reports: Any, **headers: str) -> tuple[int, str]:
        """Status and code of an upload."""
        status, problem = await self.upload(campaign, reports, **headers)
        return status, problem["code"]

    async def upload(self, campaign: Campaign, reports: Any, **headers: str) -> tuple[int, dict[str, Any]]:
        """Status and JSON of an upload of reports, or of bytes; as a relay where it is more than a device has."""
        if not isinstance(reports, bytes) and len(reports) > len(campaign.pools):
            headers = self.bearer("relay") | headers
        body = reports if isinstance(reports, bytes) else encode_upload(reports_of(campaign, reports), campaign)
        url = f"{self.public}/v1/campaigns/{campaign.id}/reports"
        async with self.session.post(url, data=body, headers={"Content-Type": MEDIA_TYPE} | headers) as answer:
            return answer.status, await answer.json(content_type=None)


@pytest.fixture(autouse=True)
def described_answers(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Every answer to any test in this folder is one that its operation's row describes."""
    rows = {(row.method, row.path): row for row in (*apps.PUBLIC, *apps.ADMIN, *apps.OPERATIONS)}
    wrong: list[str] = []
    answering = apps.answering

    def watched(handler: Any, context: Any, path: str, method: str) -> Any:
        answer = answering(handler, context, path, method)

        async def watch(request: web.Request) -> web.Response:
            response = await answer(request)
            if (method, path) in rows:
                wrong.extend(f"{method} {path} {found}" for found in undescribed(rows[method, path], response))
            return response

        return watch

    monkeypatch.setattr(apps, "answering", watched)
    yield wrong
    assert wrong == []


def undescribed(operation: Operation, response: web.Response) -> Iterator[str]:
    """Find what the operation's row does not say of an answer."""
    body = response.body if isinstance(response.body, bytes) else b""
    if response.status in operation.answers:
        content = operation.answers[response.status]
        if content is None:
            if body:
                yield f"{response.status}: a body where none is described"
            return
        media, schema = content
        if response.content_type != media:
            yield f"{response.status}: {response.content_type} and not {media}"
        value = json.loads(body) if media == JSON else body.decode("latin-1")
        yield from (f"{response.status}: {problem}" for problem in problems(value, schema))
        return
    problem = json.loads(body)
    yield from (f"{response.status}: {found}" for found in problems(problem, PROBLEM))
    if problem.get("code") not in operation.all_codes():
        yield f"{response.status}: the code {problem.get('code')} is not described"


@asynccontextmanager
async def serving(
    tmp_path: Path, store: Store | None = None, *, limits: Mapping[str, Any] | None = None, **changes: Any
) -> AsyncIterator[Server]:
    settings = Settings(data=tmp_path, listen="127.0.0.1:0", listen_admin="0", listen_operations="0", **changes)
    kept = store or SqliteStore(tmp_path / "store.sqlite3")
    tokens = {}
    for scope in SCOPES if store is None else ():
        tokens[scope], stored = make_token(f"a {scope}", scope, utc_now())
        await kept.add_token(stored)
    try:
        listeners = Listeners.bind(settings)
        addresses = listeners.addresses(settings)
        bounds = replace(settings.limits, **limits or {})
        async with (
            running(settings, listeners, store=kept, tls=load_tls(settings), limits=bounds),
            aiohttp.ClientSession() as session,
        ):
            found = Server(addresses.public, addresses.admin, addresses.operations, kept, session, tokens)
            try:
                yield found
            finally:
                for line in found.lines:
                    line.writer.close()
    finally:
        if store is None:
            await kept.close()


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    async with serving(tmp_path) as running_server:
        yield running_server


@pytest.fixture(name="serving")
def _serving(tmp_path: Path) -> Callable[..., Any]:
    """For tests that need other settings or another store."""
    return lambda store=None, **changes: serving(tmp_path, store, **changes)


class GatedStore(SqliteStore):
    """Counts only while the gate is open."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.gate, self.begun = asyncio.Event(), asyncio.Event()

    async def count(self, submissions: Sequence[Submission]) -> list[Outcome]:
        self.begun.set()
        await self.gate.wait()
        return await super().count(submissions)


@pytest.fixture
async def gated(tmp_path: Path) -> AsyncIterator[GatedStore]:
    store = GatedStore(tmp_path / "gated.sqlite3")
    yield store
    await store.close()
