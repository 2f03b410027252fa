"""A server in this process, on real sockets, and a client that knows its tokens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from cells import clock, make_campaign, make_report, make_submission  # noqa: F401 - fixtures

from ldp_aggregator.server.listener import Listeners
from ldp_aggregator.server.process import running
from ldp_aggregator.service.settings import Settings
from ldp_aggregator.service.tokens import make_token
from ldp_aggregator.store import SCOPES, SqliteStore, Store
from ldp_aggregator.store.clock import utc_now
from protocols import Campaign, encode_upload
from protocols.wire.upload import MEDIA_TYPE

ON_BOTH_LOOPS = ("test_connections.py", "test_hostile.py")


def pytest_asyncio_loop_factories(item: pytest.Item) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """What happens to connections is tried on uvloop, too: ``serve`` runs on it where it is installed."""
    loops: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {"asyncio": asyncio.new_event_loop}
    if item.path.name in ON_BOTH_LOOPS:
        loops["uvloop"] = pytest.importorskip("uvloop").new_event_loop
    return loops


@dataclass
class Server:
    """Where it listens, the store behind it, and one token of every scope."""

    public: str
    admin: str
    store: Store
    session: aiohttp.ClientSession
    tokens: dict[str, str] = field(default_factory=dict)

    def bearer(self, scope: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.tokens[scope]}"}

    async def upload(self, campaign: Campaign, reports: Any, **headers: str) -> tuple[int, dict[str, Any]]:
        """Status and JSON of an upload of reports, or of bytes."""
        body = reports if isinstance(reports, bytes) else encode_upload(reports)
        url = f"{self.public}/v1/campaigns/{campaign.id}/reports"
        async with self.session.post(url, data=body, headers={"Content-Type": MEDIA_TYPE} | headers) as answer:
            return answer.status, await answer.json(content_type=None)


@asynccontextmanager
async def serving(tmp_path: Path, store: Store | None = None, **changes: Any) -> AsyncIterator[Server]:
    settings = Settings(data=tmp_path, host="127.0.0.1", port=0, admin_port=0, **changes)
    kept = store or SqliteStore(tmp_path / "store.sqlite3")
    tokens = {}
    for scope in SCOPES if store is None else ():
        tokens[scope], stored = make_token(f"a {scope}", scope, utc_now())
        await kept.add_token(stored)
    try:
        listeners = Listeners.bind(settings)
        addresses = listeners.addresses(settings)
        async with running(settings, listeners, store=kept), aiohttp.ClientSession() as session:
            yield Server(addresses.public, addresses.admin, kept, session, tokens)
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
