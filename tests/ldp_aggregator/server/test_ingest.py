"""The queue in front of the store: grouping, back-pressure, failures, waiters that left."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest
from cells import cell_campaign, submission
from queueing import submit

from ldp_aggregator.server.ingest import Ingest
from ldp_aggregator.server.metrics import Metrics
from ldp_aggregator.store import Outcome, StoreError


class ScriptedStore:
    """Counts what it is given; a commit waits until ``gate`` is set and fails while ``failure`` is one."""

    def __init__(self):
        self.groups = []
        self.gate = asyncio.Event()
        self.failure = None

    async def count(self, submissions):
        self.groups.append(len(submissions))
        await self.gate.wait()
        if self.failure is not None:
            raise self.failure
        return [Outcome(counted=submission.reports) for submission in submissions]


@asynccontextmanager
async def ingesting(store, *, group_reports=1000):
    ingest = Ingest(store, Metrics(), group_reports=group_reports)
    task = asyncio.create_task(ingest.write())
    try:
        yield ingest
    finally:
        store.gate.set()
        ingest.drain()
        await task


@pytest.fixture
def upload():
    campaign = cell_campaign()
    return lambda number: submission(campaign, [number])


async def test_what_waits_during_a_commit_is_committed_together(upload):
    store = ScriptedStore()
    async with ingesting(store) as ingest:
        first = asyncio.create_task(submit(ingest, upload(0)))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        others = [asyncio.create_task(submit(ingest, upload(number))) for number in range(1, 6)]
        await asyncio.sleep(0)
        store.gate.set()
        assert [outcome.counted for outcome in await asyncio.gather(first, *others)] == [1] * 6
    assert store.groups == [1, 5]


async def test_a_group_has_a_greatest_size_but_takes_one_upload_at_least(upload):
    store = ScriptedStore()
    store.gate.set()
    campaign = cell_campaign()
    big = submission(campaign, range(10))
    async with ingesting(store, group_reports=3) as ingest:
        answers = await asyncio.gather(
            *(submit(ingest, submission) for submission in [big, *map(upload, range(10, 17))])
        )
    assert [outcome.counted for outcome in answers] == [10] + [1] * 7
    assert store.groups == [1, 3, 3, 1]


@pytest.mark.parametrize(
    ("failure", "code"),
    [(StoreError("disk full"), "store-unavailable"), (RuntimeError("a bug"), "internal-error")],
)
async def test_a_failed_commit_fails_every_waiter_and_the_next_one_succeeds(upload, failure, code):
    store = ScriptedStore()
    async with ingesting(store) as ingest:
        waiters = [asyncio.create_task(submit(ingest, upload(number))) for number in range(3)]
        store.failure = failure
        store.gate.set()
        results = await asyncio.gather(*waiters, return_exceptions=True)
        assert [error.code for error in results] == [code] * 3
        assert all(error.headers["Retry-After"] for error in results)
        store.failure = None
        assert await submit(ingest, upload(9)) == Outcome(counted=1)


async def test_a_waiter_that_leaves_does_not_cancel_the_commit(upload):
    store = ScriptedStore()
    async with ingesting(store) as ingest:
        leaving, staying = (asyncio.create_task(submit(ingest, upload(number))) for number in range(2))
        await asyncio.sleep(0.01)
        leaving.cancel()
        await asyncio.sleep(0)
        store.gate.set()
        assert await staying == Outcome(counted=1)
        with pytest.raises(asyncio.CancelledError):
            await leaving
    assert store.groups == [2]


async def test_a_draining_queue_commits_what_it_has_and_takes_nothing_new(upload):
    store = ScriptedStore()
    async with ingesting(store) as ingest:
        waiter = asyncio.create_task(submit(ingest, upload(1)))
        await asyncio.sleep(0)
        ingest.drain()
        assert ingest.is_draining
        store.gate.set()
        assert await waiter == Outcome(counted=1)
