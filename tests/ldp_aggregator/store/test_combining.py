"""Merging: k shards summed equal one node, bit for bit, and nothing counts twice."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import datetime, timezone

import pytest
from cells import cell_campaign, publish, submission

from ldp_aggregator.counting.tally import Arrivals
from ldp_aggregator.store import StoreError
from ldp_aggregator.store.backup import Combined
from ldp_aggregator.store.contract import utc_now
from ldp_aggregator.store.sql import store
from ldp_aggregator.store.sqlite.database import FILE_NAME


@pytest.fixture
def shards(opened):
    """Two data folders; ``fill(name, numbers)`` counts reports in one of them."""
    campaign = cell_campaign()

    async def fill(name, numbers, *, close=False, seal=False, batch=None, campaign=campaign):
        store = await opened(name)
        await store.create_campaign(campaign)
        await store.count([replace(submission(campaign, numbers), batch=batch)])
        if close:
            await store.close_campaign(campaign.id)
        if seal:
            await store.seal_campaign(campaign.id, at_once=True)
        return store

    async def read(name, campaign=campaign):
        store = await opened(name, read_only=True)
        assert await store.check() == []
        return await store.tally(campaign.id), await store.state(campaign.id)

    return campaign, fill, read


async def test_two_shards_equal_one_node(combine, shards):
    campaign, fill, read = shards
    other = cell_campaign(title="Other")
    await fill("a", range(30))
    await fill("b", range(30, 50))
    await fill("b", range(5), campaign=other)
    await fill("whole", range(50))
    assert combine("a", "b", "c") == [Combined(campaign.id, 50), Combined(other.id, 5)]
    merged, state = await read("c")
    assert merged == (await read("whole"))[0]
    assert (state.reports, state.life.closed) == (50, None)
    assert (await read("c", other))[0].n.tolist() == [5], "a campaign of one store alone is taken over"
    await fill("c", range(64))
    assert (await read("c"))[0].counts[0].tolist() == [1] * 64, "it knows the ids of both"


@pytest.mark.parametrize("closed", [False, True])
async def test_reports_in_both_shards_are_counted_twice_and_told(combine, shards, closed):
    campaign, fill, read = shards
    await fill("a", range(30), close=closed)
    await fill("b", range(27, 50), close=closed)
    assert combine("a", "b", "c") == [Combined(campaign.id, 53, overlap=3)]
    tally, state = await read("c")
    assert tally.counts[0].tolist() == [1] * 27 + [2] * 3 + [1] * 20 + [0] * 14
    assert (state.arrivals.overlap, state.arrivals.twice, state.life.closed is not None) == (3, 3, closed)
    assert state.to_json(utc_now())["counted_twice"] == 3
    assert (await read("a"))[0].n.tolist() == [30]


async def test_an_overlap_is_remembered_by_later_sums(combine, shards):
    campaign, fill, read = shards
    await fill("a", range(10))
    await fill("b", range(9, 20))
    await fill("c", range(18, 30))
    combine("a", "b", "ab")
    for first, second in (("ab", "c"), ("c", "ab")):
        assert combine(first, second, f"{first} {second}") == [Combined(campaign.id, 33, overlap=3)]
        assert (await read(f"{first} {second}"))[1].arrivals.overlap == 3
    assert combine("a", "a", "aa") == [Combined(campaign.id, 20, overlap=10)]


async def test_sealed_campaigns_are_merged_on_the_operators_word_only_and_that_is_told(tmp_path, combine, shards):
    campaign, fill, read = shards
    await fill("a", range(30), close=True, seal=True)
    await fill("b", range(29, 50))
    with pytest.raises(StoreError, match="--assume-disjoint"):
        combine("a", "b", "c")
    assert list((tmp_path / "c").iterdir()) == []
    merged = combine("a", "b", "c", assume_disjoint=True)
    assert merged == [Combined(campaign.id, 51, unchecked=21)]
    tally, state = await read("c")
    assert tally.n.tolist() == [51]
    assert state.life.sealed is not None
    assert (state.arrivals.overlap, state.arrivals.twice) == (0, 21)


async def test_how_reports_came_adds_up_when_stores_do(combine, shards):
    _, fill, read = shards
    for name, numbers, batch in (("a", range(10), 500), ("b", range(10, 20), 90), ("d", range(20, 25), None)):
        await fill(name, numbers, batch=batch)
    combine("a", "b", "c")
    assert (await read("c"))[1].arrivals == Arrivals(20, 20, 90)
    combine("c", "d", "e")
    assert (await read("e"))[1].arrivals == Arrivals(25, 20, 90)


async def test_a_damaged_store_one_that_is_there_and_one_that_is_not_are_not_merged(tmp_path, combine, shards):
    campaign, fill, _ = shards
    for number, name in enumerate("abc"):
        await fill(name, [number])
    with pytest.raises(StoreError, match="already"):
        combine("a", "b", "c")
    with pytest.raises(StoreError, match="there is no store in"):
        combine("a", "none", "d")
    with closing(sqlite3.connect(tmp_path / "b" / FILE_NAME)) as db, db:
        db.execute("UPDATE parts SET sums = substr(sums, 1, 32)")
    with pytest.raises(StoreError, match=f"{campaign.id} is damaged"):
        combine("a", "b", "d")
    assert list((tmp_path / "d").iterdir()) == []


async def test_a_sum_that_is_not_complete_is_no_store(tmp_path, combine, shards, monkeypatch):
    """A process that is killed leaves a file, and not one that anything takes for a store."""
    _, fill, _ = shards
    await fill("a", range(3))
    await fill("b", range(3, 6))
    seen = []

    async def watched(db, now, *floors):
        seen.extend(path.name for path in (tmp_path / "c").iterdir())
        await renew(db, now, *floors)

    renew = store.renew
    monkeypatch.setattr("ldp_aggregator.store.backup.renew", watched)
    combine("a", "b", "c")
    assert seen
    assert FILE_NAME not in seen
    assert {path.name for path in (tmp_path / "c").iterdir()} == {FILE_NAME, f"{FILE_NAME}.ids"}


async def test_a_sum_publishes_under_versions_that_neither_store_has_used(combine, opened):
    for name, versions in (("a", 1), ("b", 3)):
        store = await opened(name)
        campaign = await publish(store)
        for _ in range(versions):
            await store.publish_model(campaign.id, name)
    combine("a", "b", "c", now=datetime(1970, 1, 1, tzinfo=timezone.utc))
    assert (await (await opened("c")).publish_model(campaign.id, "sum")).version == 4
