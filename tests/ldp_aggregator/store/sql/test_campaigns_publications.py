"""Releases of a campaign whose document fixes when, and how its reports came, on every store."""

import asyncio
import hashlib
import itertools
from dataclasses import replace

import pytest
from cells import cell_campaign, cell_report, cells_of, count, publish, submission

from ldp_aggregator.counting.tally import Arrivals
from ldp_aggregator.service.publishing import UntrainableError, publish_trained, tally_to_publish
from ldp_protocols import Report

COMPACT_AT = 64


def every(reports, **more):
    return {"privacy": {"epsilon": 1.0, "discrete": "de", "release_every": reports, **more}}


async def published(store, campaign):
    return (await tally_to_publish(store, campaign)).n.tolist()


async def test_what_is_published_stands_still_until_so_many_more_have_answered(store):
    campaign = await publish(store, **every(10))
    seen = []
    for first, end in ((0, 9), (9, 10), (10, 19), (19, 33), (33, 42), (42, 43), (43, 45)):
        await count(store, campaign, range(first, end))
        seen += await published(store, campaign)
        assert await published(store, campaign) == seen[-1:]
    assert seen == [0, 10, 10, 33, 33, 43, 43]
    assert await cells_of(store, campaign) == [1] * 45 + [0] * 19
    await store.close_campaign(campaign.id)
    assert (await tally_to_publish(store, campaign)).counts[0].tolist() == [1] * 43 + [0] * 21
    unfixed = await publish(store)
    await count(store, unfixed, range(3))
    assert await published(store, unfixed) == [3]


async def test_a_model_is_made_of_what_was_released(store):
    campaign = await publish(store, **every(20))
    await count(store, campaign, range(19))
    with pytest.raises(UntrainableError, match="nothing before 20 devices"):
        await publish_trained(store, [campaign.id])
    await count(store, campaign, range(19, 30))
    assert (await publish_trained(store, [campaign.id], anyway=True))[0] == 30
    await count(store, campaign, range(30, 40))
    assert (await publish_trained(store, [campaign.id], anyway=True))[0] == 30


async def test_what_either_store_released_is_released_in_the_merged_one(combine, opened):
    """The next release waits for reports that neither has published."""
    for name, numbers in (("a", range(15)), ("b", range(15, 27))):
        one = await opened(name)
        campaign = await publish(one, **every(10))
        await count(one, campaign, numbers)
        await tally_to_publish(one, campaign)
    combine("a", "b", "c")
    merged = await opened("c")
    for numbers, released in ((range(27, 36), 27), ([36], 37)):
        await count(merged, campaign, numbers)
        assert await published(merged, campaign) == [released]


async def test_where_everything_is_asked_every_group_has_to_have_so_many_new_answers(store):
    """Two groups, of 64 and of 2 cells."""
    label = {"name": "label", "classes": ["yes", "no"]}
    campaign = await publish(store, label=label, **every(10, answers="all"))
    seen = []
    for question, first, end in ((0, 0, 30), (1, 0, 9), (1, 9, 10), (1, 10, 25), (0, 30, 35), (1, 25, 30), (0, 35, 40)):
        ids = [hashlib.sha256(b"%d %d" % (question, number)).digest()[:16] for number in range(first, end)]
        await count(store, campaign, [Report(question, one, b"\0") for one in ids])
        seen.append(await published(store, campaign))
    assert seen == [[0, 0], [0, 0], [30, 10], [30, 10], [30, 10], [30, 10], [40, 30]]


async def test_two_instances_release_the_same_and_never_less_apart_than_the_document_says(instances):
    """Both count and read at once; what they saw is one chain of releases."""
    campaign = await publish(instances[0], 1024, **every(25))

    async def answer(instance, numbers):
        seen = []
        for start in range(0, len(numbers), 8):
            await count(instance, campaign, numbers[start : start + 8])
            seen.append((await tally_to_publish(instance, campaign)).counts[0])
        return seen

    numbers = list(range(1024))
    seen = [*(await answer(instances[0], numbers[:8])), *(await answer(instances[1], numbers[8:16]))]
    for found in await asyncio.gather(*(answer(one, numbers[16 + side :: 2]) for side, one in enumerate(instances))):
        seen += found
    chain = sorted({tuple(counts.tolist()) for counts in seen}, key=sum)
    assert len(chain) > 10
    for before, after in itertools.pairwise(chain):
        assert sum(after) - sum(before) >= 25
        assert all(one <= other for one, other in zip(before, after, strict=True)), "a release has what the last had"
    assert max(chain[-1]) == 1
    for one in instances:
        assert (await one.tally(campaign.id)).n.tolist() == [1024]


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
    told = await feed((15, 16, 900), (0, 5, 200))
    assert (told.least_batch, told.otherwise) == (300, 4), "a batch of which nothing is new says nothing"


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


async def test_in_one_group_too(feed):
    assert (await feed((0, 5, 5), (2, 3, None))).otherwise >= 1


async def test_compaction_keeps_every_count_and_how_reports_came(feed, store):
    for number in range(COMPACT_AT + 10):
        arrivals = await feed((number, number + 1, 1000 - number))
    assert arrivals == Arrivals(COMPACT_AT + 10, COMPACT_AT + 10, 1000 - COMPACT_AT - 9)
    for number in range(COMPACT_AT + 10, 2 * COMPACT_AT + 20):
        arrivals = await feed((number, number + 1, None))
    assert arrivals == Arrivals(2 * COMPACT_AT + 20, COMPACT_AT + 10, 1000 - COMPACT_AT - 9)
    assert await cells_of(store, cell_campaign(1024), 2 * COMPACT_AT + 21) == [1] * (2 * COMPACT_AT + 20) + [0]


async def test_two_instances_keep_the_least_batch_of_both_and_what_came_otherwise_to_either(instances):
    campaign = await publish(instances[0], 1024)

    async def answer(side):
        for number in range(side, 300, 2):
            batch = None if number in (100, 101, 103) else 5000 + number
            await instances[side].count([replace(submission(campaign, [number]), batch=batch)])

    await asyncio.gather(answer(0), answer(1))
    for one in instances:
        assert (await one.state(campaign.id)).arrivals == Arrivals(300, 297, 5000)
