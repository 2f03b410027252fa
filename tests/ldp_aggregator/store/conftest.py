"""Every store under the one suite of the contract."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from cells import clock, make_campaign, make_report, make_submission  # noqa: F401 - fixtures
from postgres import Postgres, empty, postgres_server

from ldp_aggregator.store import SqliteStore, Store, open_store


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    with postgres_server() as server:
        yield server


@pytest.fixture
def database(postgres: Postgres) -> str:
    """The address of an empty database."""
    asyncio.run(empty(postgres.address))
    return postgres.address


@pytest.fixture(params=["sqlite", "postgres"])
async def store(request: pytest.FixtureRequest, tmp_path: Path, clock: Any) -> AsyncIterator[Store]:  # noqa: F811
    if request.param == "sqlite":
        opened: Store = SqliteStore(tmp_path / "store.sqlite3", clock=clock)
    else:
        database = request.getfixturevalue("postgres").address
        await empty(database)
        opened = await open_store(tmp_path, database, clock=clock)
    yield opened
    await opened.close()
