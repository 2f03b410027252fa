"""Two instances of a server on one database."""

from __future__ import annotations

import asyncio

import pytest
from postgres import empty

from ldp_aggregator.store import open_store


@pytest.fixture
async def instances(postgres, tmp_path, clock):
    await empty(postgres.address)
    stores = [await open_store(tmp_path, postgres.address, clock=clock) for _ in range(2)]
    yield stores
    for store in stores:
        await store.close()


async def test_a_greatest_number_of_reports_holds_exactly_across_instances(
    instances, make_campaign, make_submission, make_report
):
    campaign = make_campaign(2048)
    await instances[0].create_campaign(campaign, max_reports=50)
    groups = [
        make_submission(campaign, [make_report(campaign, n) for n in range(s, s + 10)]) for s in range(0, 200, 10)
    ]
    results = await asyncio.gather(*(instances[place % 2].count([group]) for place, group in enumerate(groups)))
    assert sum(outcome.counted for [outcome] in results) == 50
    assert (await instances[0].state(campaign.id)).reports == 50
    assert await instances[0].check() == []
