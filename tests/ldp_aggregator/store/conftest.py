"""Every store under the one suite of the contract."""

from __future__ import annotations

import pytest
from cells import clock  # noqa: F401 - a fixture
from postgres import Postgres, empty, own_postgres, postgres  # noqa: F401 - fixtures

from ldp_aggregator.store import SqliteStore, Store, open_store
from ldp_aggregator.store.backup import combine_stores


async def sound_and_closed(*stores):
    """Every test leaves its store sound."""
    findings = [await one.check() for one in stores]
    for one in stores:
        await one.close()
    assert findings == [[]] * len(stores)


@pytest.fixture(params=["sqlite", "postgres"])
async def store(request, tmp_path, clock):  # noqa: F811
    if request.param == "sqlite":
        found: Store = SqliteStore(tmp_path / "store.sqlite3", clock=clock)
    else:
        address = request.getfixturevalue("postgres").address
        await empty(address)
        found = await open_store(tmp_path, address, clock=clock)
    yield found
    await sound_and_closed(found)


@pytest.fixture
async def opened(tmp_path):
    """Open the store in a folder of this name; all of them are closed in the end."""
    stores = []

    async def make(name, **more):
        stores.append(await open_store(tmp_path / name, **more))
        return stores[-1]

    yield make
    for one in stores:
        await one.close()


@pytest.fixture
def combine(tmp_path):
    """Merge two data folders of these names into a third."""
    return lambda *names, **more: combine_stores(*(tmp_path / name for name in names), **more)


@pytest.fixture
async def database(postgres):  # noqa: F811
    """The address of an empty database."""
    await empty(postgres.address)
    return postgres.address


@pytest.fixture
async def instances(database, tmp_path, clock):  # noqa: F811
    """Two stores on one database, as two instances have them."""
    stores = [await open_store(tmp_path, database, clock=clock) for _ in range(2)]
    yield stores
    await sound_and_closed(*stores)
