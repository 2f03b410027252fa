"""The particulars of PostgreSQL: several instances, restarts, and a schema that is checked."""

from __future__ import annotations

import asyncio
import contextlib
import random

import asyncpg
import pytest
from postgres import empty

from ldp_aggregator.store import StoreError, open_store
from ldp_aggregator.store.clock import utc_now
from ldp_aggregator.store.postgres import store as postgres_store
from ldp_aggregator.store.postgres.sessions import Sessions
from ldp_aggregator.store.postgres.store import PostgresStore
from ldp_aggregator.store.sql.schema import VERSION


@contextlib.asynccontextmanager
async def two_stores(address, folder, clock):
    await empty(address)
    stores = [await open_store(folder, address, clock=clock) for _ in range(2)]
    yield stores
    for store in stores:
        await store.close()


@pytest.fixture
async def instances(postgres, tmp_path, clock):
    """Two stores on one database, as two instances have them."""
    async with two_stores(postgres.address, tmp_path, clock) as stores:
        yield stores


@pytest.fixture
async def own_instances(own_postgres, tmp_path, clock):
    """The same on a server that may be restarted."""
    async with two_stores(own_postgres.address, tmp_path, clock) as stores:
        yield stores


def in_groups(numbers, size):
    return [numbers[start : start + size] for start in range(0, len(numbers), size)]


async def test_what_another_instance_counts_just_before_we_insert_counts_once(
    instances, make_campaign, make_submission, make_report, monkeypatch
):
    campaign = make_campaign()
    await instances[0].create_campaign(campaign)
    at_once = postgres_store.count_at_once

    async def too_late(*given):
        monkeypatch.setattr(postgres_store, "count_at_once", at_once)
        await instances[1].count([make_submission(campaign, [make_report(campaign, n) for n in (1, 2)])])
        return {}

    submission = make_submission(campaign, [make_report(campaign, n) for n in (0, 1)])
    conflict = make_submission(campaign, [make_report(campaign, 2, cell=9)])
    monkeypatch.setattr(postgres_store, "count_at_once", too_late)
    first, second = await instances[0].count([submission, conflict])
    assert (first.counted, first.duplicates, first.rejected) == (1, 1, ())
    assert [code for _, code in second.rejected] == ["conflicting-report"]
    assert (await instances[0].tally(campaign.id)).counts[0].tolist()[:10] == [1, 1, 1] + [0] * 7
    assert await instances[0].check() == []


async def test_two_instances_given_the_same_reports_count_each_once(
    instances, make_campaign, make_submission, make_report
):
    campaign = make_campaign(2048)
    await instances[0].create_campaign(campaign)
    numbers = list(range(2048))

    async def feed(store, seed):
        order = random.Random(seed).sample(numbers, len(numbers))
        return [
            await store.count(
                [make_submission(campaign, [make_report(campaign, n) for n in order[start : start + 64]])]
            )
            for start in range(0, len(order), 64)
        ]

    results = await asyncio.gather(*(feed(store, seed) for seed, store in enumerate(instances)))
    outcomes = [outcome for outcomes in results for [outcome] in outcomes]
    assert sum(outcome.counted for outcome in outcomes) == 2048
    assert sum(outcome.duplicates for outcome in outcomes) == 2048
    tally = await instances[1].tally(campaign.id)
    assert tally.counts[0].tolist() == [1] * 2048
    assert await instances[0].check() == []


async def test_closing_on_one_instance_stops_the_other(instances, make_campaign, make_submission, make_report):
    campaign = make_campaign(2048)
    await instances[0].create_campaign(campaign)

    async def feed():
        counted = 0
        for number in range(300):
            [outcome] = await instances[0].count([make_submission(campaign, [make_report(campaign, number)])])
            if outcome.refused:
                return counted
            counted += outcome.counted
        raise AssertionError("the campaign was never closed")

    feeding = asyncio.create_task(feed())
    await asyncio.sleep(0.1)
    state = await instances[1].close_campaign(campaign.id)
    counted = await feeding
    assert state.reports == counted == int((await instances[0].tally(campaign.id)).n.sum())


async def test_a_restarted_database_is_found_again_and_loses_nothing(
    own_postgres, own_instances, make_campaign, make_submission, make_report
):
    if own_postgres.server is None:
        pytest.skip("this database is not ours to restart")
    campaign = make_campaign(1024)
    await own_instances[0].create_campaign(campaign)
    uploads = [
        make_submission(campaign, [make_report(campaign, n) for n in range(s, s + 8)]) for s in range(0, 1024, 8)
    ]
    acknowledged = []

    async def feed(store, seed):
        for upload in random.Random(seed).sample(uploads, len(uploads)):
            with contextlib.suppress(StoreError):
                await store.count([upload])
                acknowledged.append(upload)

    feeding = [asyncio.create_task(feed(store, seed)) for seed, store in enumerate(own_instances)]
    await asyncio.sleep(0.15)
    await asyncio.to_thread(own_postgres.restart)
    await asyncio.gather(*feeding)
    tally = await own_instances[0].tally(campaign.id)
    assert len(acknowledged) > 0
    assert max(tally.counts[0]) == 1
    missing = {cell for cell, count in enumerate(tally.counts[0].tolist()) if not count}
    for upload in acknowledged:
        assert not missing & {int.from_bytes(upload.blocks[0].payloads[i : i + 2], "little") for i in range(0, 16, 2)}
    for upload in uploads:
        await own_instances[1].count([upload])
    assert (await own_instances[1].tally(campaign.id)).counts[0].tolist() == [1] * 1024
    assert await own_instances[1].check() == []


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
