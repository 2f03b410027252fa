"""Every store under the one suite of the contract."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from cells import clock, make_campaign, make_report, make_submission  # noqa: F401 - fixtures
from postgres import empty, own_postgres, postgres  # noqa: F401 - fixtures

from ldp_aggregator.store import SqliteStore, Store, open_store


@pytest.fixture(params=["sqlite", "postgres"])
async def store(request: pytest.FixtureRequest, tmp_path: Path, clock: Any) -> AsyncIterator[Store]:  # noqa: F811
    if request.param == "sqlite":
        opened: Store = SqliteStore(tmp_path / "store.sqlite3", clock=clock)
    else:
        address = request.getfixturevalue("postgres").address
        await empty(address)
        opened = await open_store(tmp_path, address, clock=clock)
    yield opened
    await opened.close()
