"""A store in three databases, as two instances have it."""

from __future__ import annotations

import pytest
from postgres import databases

from ldp_aggregator.store import open_store


@pytest.fixture
async def addresses(postgres):
    return await databases(postgres.address, 3)


@pytest.fixture
async def instances(addresses, tmp_path):
    stores = [await open_store(tmp_path, " ".join(addresses)) for _ in range(2)]
    yield stores
    for store in stores:
        await store.close()


@pytest.fixture
def store(instances):
    return instances[0]
