"""Arrivals of reports, on every store: the least batch that a relay vouched for, and what was seen outside of any."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from postgres import empty

from ldp_aggregator.counting.arrivals import Arrivals
from ldp_aggregator.counting.parts import COMPACT_AT
from ldp_aggregator.store import open_store


@pytest.fixture
def feed(store, make_campaign, make_submission, make_report):
    """Counts uploads of (first, end, batch) of one campaign as one group; returns how all came so far."""
    campaign = make_campaign(1024)

    async def count(*uploads):
        await store.create_campaign(campaign)
        group = [
            replace(make_submission(campaign, [make_report(campaign, n) for n in range(first, end)]), batch=batch)
            for first, end, batch in uploads
        ]
        await store.count(group)
        return (await store.state(campaign.id)).arrivals

    return count


async def test_the_least_batch_is_kept_and_what_came_otherwise_is_counted(feed):
    assert await feed((0, 5, 1000)) == Arrivals(5, 5, 1000)
    assert await feed((5, 9, 400), (9, 10, 2000)) == Arrivals(10, 10, 400)
    assert await feed((10, 13, None)) == Arrivals(13, 10, 400)
    assert (await feed((13, 14, 300), (14, 15, None))).otherwise == 4


async def test_reports_that_nobody_vouched_for_have_no_batch(feed):
    assert await feed((0, 5, None)) == Arrivals(5, 0, None)
    assert await feed((0, 5, None)) == Arrivals(5, 0, None)


async def test_a_relays_second_try_changes_nothing(feed):
    before = await feed((0, 300, 300))
    assert await feed((0, 300, 300)) == before == Arrivals(300, 300, 300)
    assert await feed((0, 300, 2)) == before


async def test_reports_that_were_known_hide_nobody_in_the_next_batch(feed):
    """Nine of the ten were seen before, so that the batch tells who sent the tenth."""
    await feed((0, 9, 500))
    assert await feed((0, 10, 10)) == Arrivals(10, 10, 1)


async def test_reports_that_are_refused_hide_nobody(store, make_campaign, make_submission, make_report):
    campaign = make_campaign()
    await store.create_campaign(campaign)
    reports = [make_report(campaign, number, cell=200 if number < 3 else number) for number in range(10)]
    await store.count([replace(make_submission(campaign, reports), batch=10)])
    assert (await store.state(campaign.id)).arrivals == Arrivals(7, 7, 7)


async def test_a_batch_of_which_more_was_known_than_it_has_devices_hides_nobody(feed):
    await feed((0, 9, 500))
    assert (await feed((0, 10, 3))).least_batch == 0


@pytest.mark.parametrize("cell", [3, 4], ids=["the same answer", "another one"])
async def test_a_report_that_is_seen_again_outside_of_its_batch_is_told(
    store, make_campaign, make_submission, make_report, cell
):
    campaign = make_campaign()
    await store.create_campaign(campaign)
    batch = make_submission(campaign, [make_report(campaign, number) for number in range(10)])
    await store.count([replace(batch, batch=10)])
    alone = make_submission(campaign, [make_report(campaign, 3, cell=cell)])
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


async def test_two_instances_keep_the_least_batch_of_both_and_what_came_otherwise_to_either(
    postgres, tmp_path, make_campaign, make_submission, make_report
):
    await empty(postgres.address)
    campaign = make_campaign(1024)
    instances = [await open_store(tmp_path, postgres.address) for _ in range(2)]
    await instances[0].create_campaign(campaign)

    async def answer(side):
        for number in range(side, 300, 2):
            batch = None if number in (100, 101, 103) else 5000 + number
            upload = make_submission(campaign, [make_report(campaign, number)])
            await instances[side].count([replace(upload, batch=batch)])

    await asyncio.gather(answer(0), answer(1))
    for one in instances:
        assert (await one.state(campaign.id)).arrivals == Arrivals(300, 297, 5000)
        await one.close()
