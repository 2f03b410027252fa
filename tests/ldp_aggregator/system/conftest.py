"""Every kind of store under real server processes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cells import cell_campaign
from postgres import Postgres, empty, own_postgres, postgres  # noqa: F401 - fixtures

from ldp_aggregator.counting.tally import Tally
from ldp_aggregator.service.rights import make_token
from ldp_aggregator.store import Damage, Store, open_store
from ldp_aggregator.store.contract import utc_now
from ldp_protocols import Campaign


class Kept:
    """A store on disk: what the daemon is told of it, and what is read from it while or after the daemon runs."""

    def __init__(self, folder: Path, database: str | None) -> None:
        self.folder = folder
        self.database = database
        self.environment = {"LDP_AGGREGATOR_DATABASE": database} if database else {}

    def run(self, work: Callable[[Store], Any]) -> Any:
        async def with_store() -> Any:
            store = await open_store(self.folder, self.database)
            try:
                return await work(store)
            finally:
                await store.close()

        return asyncio.run(with_store())

    def publish(self, cells: int, **changes: Any) -> Campaign:
        campaign = cell_campaign(cells, **changes)
        self.run(lambda store: store.create_campaign(campaign))
        return campaign

    def relay_token(self) -> str:
        """A token for uploads of many reports."""
        text, stored = make_token("a relay", "relay", utc_now())
        self.run(lambda store: store.add_token(stored))
        return text

    def tally(self, campaign: Campaign) -> Tally:
        return self.run(lambda store: store.tally(campaign.id))

    def check(self) -> list[Damage]:
        return self.run(lambda store: store.check())


@pytest.fixture(params=["sqlite", "postgres"])
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Kept:
    if request.param == "sqlite":
        return Kept(tmp_path, None)
    address = request.getfixturevalue("postgres").address
    asyncio.run(empty(address))
    return Kept(tmp_path, address)


@pytest.fixture
def kept_in_file(tmp_path: Path) -> Kept:
    return Kept(tmp_path, None)


@pytest.fixture
def kept_in_own_database(own_postgres: Postgres, tmp_path: Path) -> Kept:  # noqa: F811
    asyncio.run(empty(own_postgres.address))
    return Kept(tmp_path, own_postgres.address)
