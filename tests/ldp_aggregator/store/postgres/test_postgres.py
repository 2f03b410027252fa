"""The particulars of PostgreSQL: several instances, restarts, and a schema that is checked."""

from __future__ import annotations

import asyncio
import contextlib
import random

import asyncpg
import pytest
from cells import cell_report, cells_of, count, publish, submission
from postgres import empty

from ldp_aggregator.store import Outcome, StoreError, open_store
from ldp_aggregator.store.clock import utc_now
from ldp_aggregator.store.postgres import store as postgres_store
from ldp_aggregator.store.postgres.sessions import Sessions
from ldp_aggregator.store.postgres.store import PostgresStore
from ldp_aggregator.store.sql.schema import VERSION


async def test_what_another_instance_counts_just_before_we_insert_counts_once(instances, monkeypatch):
    campaign = await publish(instances[0])
    at_once = postgres_store.count_at_once

    async def too_late(*given):
        monkeypatch.setattr(postgres_store, "count_at_once", at_once)
        await count(instances[1], campaign, (1, 2))
        return {}

    conflict = cell_report(campaign, 2, cell=9)
    monkeypatch.setattr(postgres_store, "count_at_once", too_late)
    outcomes = await instances[0].count([submission(campaign, (0, 1)), submission(campaign, [conflict])])
    assert outcomes == [Outcome(1, 1), Outcome(rejected=((conflict.id, "conflicting-report"),))]
    assert await cells_of(instances[0], campaign, 10) == [1, 1, 1] + [0] * 7
    assert await instances[0].check() == []


async def test_two_instances_given_the_same_reports_count_each_once(instances):
    campaign = await publish(instances[0], 2048)

    async def feed(store, seed):
        order = random.Random(seed).sample(range(2048), 2048)
        return [await count(store, campaign, order[start : start + 64]) for start in range(0, 2048, 64)]

    results = await asyncio.gather(*(feed(store, seed) for seed, store in enumerate(instances)))
    outcomes = [outcome for outcomes in results for outcome in outcomes]
    assert sum(outcome.counted for outcome in outcomes) == sum(outcome.duplicates for outcome in outcomes) == 2048
    assert await cells_of(instances[1], campaign) == [1] * 2048
    assert await instances[0].check() == []


async def test_a_greatest_number_of_reports_holds_exactly_across_instances(instances):
    campaign = await publish(instances[0], 2048, max_reports=50)
    groups = [range(start, start + 10) for start in range(0, 200, 10)]
    outcomes = await asyncio.gather(
        *(count(instances[place % 2], campaign, group) for place, group in enumerate(groups))
    )
    assert sum(outcome.counted for outcome in outcomes) == 50
    assert (await instances[0].state(campaign.id)).reports == 50
    assert await instances[0].check() == []


async def test_closing_on_one_instance_stops_the_other(instances):
    campaign, begun = await publish(instances[0], 2048), asyncio.Event()

    async def feed():
        for number in range(2048):
            if (await count(instances[0], campaign, [number])).refused:
                return number
            begun.set()
        raise AssertionError("the campaign was never closed")

    feeding = asyncio.create_task(feed())
    await begun.wait()
    state = await instances[1].close_campaign(campaign.id)
    counted = await feeding
    assert state.reports == counted == int((await instances[0].tally(campaign.id)).n.sum())


async def test_a_restarted_database_is_found_again_and_loses_nothing(own_postgres, opened):
    if own_postgres.server is None:
        pytest.skip("this database is not ours to restart")
    await empty(own_postgres.address)
    stores = [await opened("data", database=own_postgres.address) for _ in range(2)]
    campaign = await publish(stores[0], 1024)
    groups = [range(start, start + 8) for start in range(0, 1024, 8)]
    acknowledged, some = set(), asyncio.Event()

    async def feed(store, seed):
        for group in random.Random(seed).sample(groups, len(groups)):
            with contextlib.suppress(StoreError):
                await count(store, campaign, group)
                acknowledged.update(group)
            if len(acknowledged) > 100:
                some.set()

    feeding = [asyncio.create_task(feed(store, seed)) for seed, store in enumerate(stores)]
    await some.wait()
    await asyncio.to_thread(own_postgres.restart)
    await asyncio.gather(*feeding)
    counted = await cells_of(stores[0], campaign)
    assert max(counted) == 1
    assert all(counted[number] for number in acknowledged)
    for group in groups:
        await count(stores[1], campaign, group)
    assert await cells_of(stores[1], campaign) == [1] * 1024
    assert await stores[1].check() == []


async def test_a_database_that_was_made_read_only_fails_its_check(instances, postgres, tmp_path):
    """Providers do that where the disk is full; what was connected before notices with its next connection."""
    connection = await asyncpg.connect(postgres.address)
    name = await connection.fetchval("SELECT current_database()")
    await connection.execute(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
    store = PostgresStore(await Sessions.open(postgres.address, clock=utc_now))
    try:
        with pytest.raises(StoreError, match="read-only transaction"):
            await store.beat()
    finally:
        await store.close()
        await connection.execute("SET default_transaction_read_only = off")
        await connection.execute(f'ALTER DATABASE "{name}" RESET default_transaction_read_only')
        await connection.close()


async def test_another_schema_version_is_refused(instances, postgres, tmp_path):
    connection = await asyncpg.connect(postgres.address)
    await connection.execute("UPDATE ldp_aggregator.schema_version SET version = version + 1")
    await connection.close()
    with pytest.raises(StoreError, match=f"version {VERSION + 1}, and this program reads version {VERSION}"):
        await open_store(tmp_path, postgres.address)


async def test_an_address_that_does_not_answer_is_told_without_its_password(tmp_path):
    with pytest.raises(StoreError, match="cannot be reached") as caught:
        await open_store(tmp_path, "postgresql://someone:geheim@127.0.0.1:1/nothing")
    assert "geheim" not in str(caught.value)
