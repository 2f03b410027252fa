"""Counting on PostgreSQL: how often the database is asked, when it refuses, and who has a campaign for himself."""

from __future__ import annotations

import asyncio
import itertools
from datetime import timedelta

import pytest
from cells import count, publish, submission

from ldp_aggregator.store import Outcome
from ldp_aggregator.store.batch import gather
from ldp_aggregator.store.decisions import refuse_uploads
from ldp_aggregator.store.postgres import store as postgres_store
from ldp_aggregator.store.postgres.sessions import HeldError
from ldp_aggregator.store.sql import campaigns


@pytest.fixture
async def store(opened, database, clock):
    return await opened("data", database=database, clock=clock)


@pytest.fixture
async def asked(store):
    """Every query of the store, transactions' beginnings and ends too."""
    seen = []
    async with store._sessions._pool.acquire() as db:
        # The pool has one connection while nobody needs a second.
        connection = db._con
    connection.add_query_logger(lambda record: seen.append(" ".join(record.query.split())[:40]))
    return seen


async def test_a_group_of_new_reports_asks_the_database_once(asked, store):
    several = [await publish(store, 1024, title=title) for title in ("one", "two", "three")]
    uploads = [submission(several[number % 3], [number]) for number in range(postgres_store.SMALL + 1)]
    await store.count(uploads[:1])  # A connection asks once for the types of what it is sent.
    asked.clear()
    assert [outcome.counted for outcome in await store.count(uploads[1:])] == [1] * postgres_store.SMALL
    assert len(asked) == 1, asked
    for _ in range(2):
        asked.clear()
        assert [outcome.duplicates for outcome in await store.count(uploads[:1])] == [1]
    assert len(asked) == 6, asked  # Whether something was vouched for is asked where it came again.


async def test_a_statement_names_the_method_that_asks_it(asked, store):
    campaign = await publish(store)
    asked.clear()
    await store.tally(campaign.id)
    assert [query.partition(" */")[0] for query in asked if query.startswith("/*")] == ["/* tally"] * 3


async def test_a_large_upload_asks_the_database_four_times(asked, store):
    campaign = await publish(store, 4096)
    await count(store, campaign, range(3500, 4000))
    for start, fresh in ((0, 2000), (1000, 1000)):
        asked.clear()
        assert (await count(store, campaign, range(start, start + 2000))).counted == fresh
        assert len(asked) == 4, asked


async def test_the_statements_count_where_the_decisions_do_and_nowhere_else(store, clock):
    """Every combination of what a campaign's row may say, at every moment around it."""
    hour = timedelta(hours=1)
    moments = (None, clock() - hour, clock(), clock() + hour)
    cases = list(itertools.product(moments, moments, (None, clock()), (None, b"s" * 32), (None, 5)))
    assert len(cases) == 128
    campaign = await publish(store)
    batch = gather(campaign, [submission(campaign, [1])])

    class UndoneError(Exception):
        pass

    for case in cases:
        counted = {}

        async def work(db, case=case, counted=counted):
            await db.execute(
                "UPDATE campaigns SET opens = $1, closes = $2, closed = $3, salt = $4, max_reports = $5", *case
            )
            row = await campaigns.row(db, campaign.id)
            counted["decided"] = refuse_uploads(row, clock()) is None and row.max_reports is None
            found = await db.fetch(f"SELECT 1 FROM campaigns WHERE {postgres_store._OPEN}", clock())
            counted["guard"] = bool(found)
            raise UndoneError

        with pytest.raises(UndoneError):
            await store._write(work)
        assert counted["guard"] == counted["decided"], case
    assert await store._write(lambda db: postgres_store.count_at_once(db, {campaign.id: batch}))


async def test_a_campaign_is_closed_while_uploads_never_pause(database, store, opened, clock, monkeypatch):
    """Counting shares a lock, and here it is let go only when the next one has come: nobody else would ever get it."""
    monkeypatch.setattr("ldp_aggregator.store.postgres.sessions.LOCK_SECONDS", 2)
    campaign = await publish(store, 4096)
    other = await opened("data", database=database, clock=clock)
    numbers, entered, over, come = itertools.count(), [], asyncio.Event(), asyncio.Condition()

    async def chained(db):
        number = next(numbers)
        batch = gather(campaign, [submission(campaign, [number])])
        try:
            outcomes = await postgres_store.count_locked(db, campaign.id, batch)
        except HeldError:
            over.set()
            raise
        finally:
            async with come:
                entered.append(number)
                come.notify_all()
        async with come:
            await come.wait_for(lambda: entered[-1] != number or over.is_set())
        return outcomes[0]

    async def feed():
        while not over.is_set() and (await store._write(chained)).refused is None:
            pass

    feeding = [asyncio.create_task(feed()) for _ in range(3)]
    async with come:
        await come.wait_for(lambda: len(entered) > 10)
    try:
        state = await other.close_campaign(campaign.id)
    finally:
        over.set()
        async with come:
            come.notify_all()
        await asyncio.gather(*feeding, return_exceptions=True)
    assert (await other.state(campaign.id)).reports == state.reports > 0
    assert await other.check() == []


async def test_who_wanted_a_campaign_alone_and_died_holds_it_for_a_moment_only(store):
    campaign = await publish(store)
    await store._claim(campaign.id)
    assert await count(store, campaign, [1]) == Outcome(refused="store-unavailable")
    await store._write(lambda db: db.execute("UPDATE campaigns SET held_until = clock_timestamp() - interval '1 ms'"))
    assert await count(store, campaign, [1]) == Outcome(counted=1)


async def test_ids_that_a_dying_process_left_of_a_sealed_campaign_are_told_and_dropped(store, monkeypatch):
    campaign = await publish(store, 2048)
    await count(store, campaign, range(100))
    await store.close_campaign(campaign.id)
    await store._seal(campaign.id, at_once=True)  # And it dies here.
    [finding] = await store.check()
    assert "100 ids are left" in finding.problem
    monkeypatch.setattr("ldp_aggregator.store.postgres.store.PIECE", 7)
    await store.seal_campaign(campaign.id)
    assert await store.check() == []
    assert tuple(await store._read(lambda db: db.fetchrow("SELECT count(*) FROM ids"))) == (0,)
    await store.delete_campaign(campaign.id)


async def test_instances_that_start_at_once_on_an_empty_database_make_one_store(database, opened):
    stores = await asyncio.gather(*(opened("data", database=database) for _ in range(4)))
    assert len({(await store.origin()).generation for store in stores}) == 1
