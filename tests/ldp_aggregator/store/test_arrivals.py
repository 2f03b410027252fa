"""Arrivals of reports, on every store: the least batch that a relay vouched for, and what was seen outside of any."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from cells import cell_campaign, cell_report, publish, submission

from ldp_aggregator.counting.arrivals import Arrivals
from ldp_aggregator.counting.parts import COMPACT_AT


@pytest.fixture
def feed(store):
    """Counts uploads of (first, end, batch) of one campaign as one group; returns how all came so far."""
    campaign = cell_campaign(1024)

    async def count(*uploads):
        await store.create_campaign(campaign)
        group = [replace(submission(campaign, range(first, end)), batch=batch) for first, end, batch in uploads]
        await store.count(group)
        return (await store.state(campaign.id)).arrivals

    return count


async def test_the_least_batch_is_kept_and_what_came_otherwise_is_counted(feed):
    assert await feed((0, 5, 1000)) == Arrivals(5, 5, 1000)
    assert await feed((5, 9, 400), (9, 10, 2000)) == Arrivals(10, 10, 400)
    assert await feed((10, 13, None)) == Arrivals(13, 10, 400)
    assert (await feed((13, 14, 300), (14, 15, None))).otherwise == 4


@pytest.mark.parametrize("batch", [None, 300])
async def test_a_second_try_changes_nothing(feed, batch):
    vouched = 0 if batch is None else 300
    for again in (batch, batch, batch and 2):
        assert await feed((0, 300, again)) == Arrivals(300, vouched, batch)


@pytest.mark.parametrize(("batch", "hidden"), [(10, 1), (3, 0)])
async def test_reports_that_were_known_hide_nobody_in_the_next_batch(feed, batch, hidden):
    """Nine of the ten were seen before, so that the batch tells who sent the tenth."""
    await feed((0, 9, 500))
    assert await feed((0, 10, batch)) == Arrivals(10, 10, hidden)


async def test_reports_that_are_refused_hide_nobody(store):
    campaign = await publish(store)
    reports = [cell_report(campaign, number, cell=200 if number < 3 else number) for number in range(10)]
    await store.count([replace(submission(campaign, reports), batch=10)])
    assert (await store.state(campaign.id)).arrivals == Arrivals(7, 7, 7)


@pytest.mark.parametrize("cell", [3, 4], ids=["the same answer", "another one"])
async def test_a_report_that_is_seen_again_outside_of_its_batch_is_told(store, cell):
    campaign = await publish(store)
    batch = submission(campaign, range(10))
    await store.count([replace(batch, batch=10)])
    alone = submission(campaign, [cell_report(campaign, 3, cell=cell)])
    for _ in range(3):
        await store.count([alone])
        arrivals = (await store.state(campaign.id)).arrivals
        assert (arrivals.reports, arrivals.otherwise, arrivals.least_batch) == (10, 1, 10)
    assert (await store.tally(campaign.id)).n.tolist() == [10]
    assert await store.check() == []


async def test_in_one_group_too(feed):
    assert (await feed((0, 5, 5), (2, 3, None))).otherwise >= 1


async def test_compaction_keeps_how_reports_came(feed, store):
    for number in range(COMPACT_AT + 10):
        arrivals = await feed((number, number + 1, 1000 - number))
    assert arrivals == Arrivals(COMPACT_AT + 10, COMPACT_AT + 10, 1000 - COMPACT_AT - 9)
    for number in range(COMPACT_AT + 10, 2 * COMPACT_AT + 20):
        arrivals = await feed((number, number + 1, None))
    assert arrivals == Arrivals(2 * COMPACT_AT + 20, COMPACT_AT + 10, 1000 - COMPACT_AT - 9)
    assert await store.check() == []


async def test_two_instances_keep_the_least_batch_of_both_and_what_came_otherwise_to_either(instances):
    campaign = await publish(instances[0], 1024)

    async def answer(side):
        for number in range(side, 300, 2):
            batch = None if number in (100, 101, 103) else 5000 + number
            await instances[side].count([replace(submission(campaign, [number]), batch=batch)])

    await asyncio.gather(answer(0), answer(1))
    for one in instances:
        assert (await one.state(campaign.id)).arrivals == Arrivals(300, 297, 5000)
