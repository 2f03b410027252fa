"""Merging: k shards summed equal one node, bit for bit, and nothing counts twice."""

from __future__ import annotations

import asyncio

import pytest

from ldp_aggregator.store import StoreError, open_store
from ldp_aggregator.store.backup import copy_store
from ldp_aggregator.store.merging import merge_stores


@pytest.fixture
def shards(tmp_path, make_campaign, make_submission, make_report):
    """Two data folders; ``fill(name, numbers)`` counts reports in one of them."""
    campaign = make_campaign()

    async def fill(name, numbers, *, close=False, campaign=campaign):
        store = await open_store(tmp_path / name)
        await store.create_campaign(campaign)
        if numbers:
            await store.count([make_submission(campaign, [make_report(campaign, number) for number in numbers])])
        if close:
            await store.close_campaign(campaign.id)
        await store.close()

    async def read(name, campaign=campaign):
        store = await open_store(tmp_path / name)
        tally, state, findings = (
            await store.tally(campaign.id),
            await store.state(campaign.id),
            await store.audit(),
        )
        await store.close()
        assert findings == []
        return tally, state

    return campaign, fill, read


async def test_two_shards_equal_one_node(tmp_path, shards):
    campaign, fill, read = shards
    await fill("a", range(30))
    await fill("b", range(30, 50))
    await fill("whole", range(50))
    assert merge_stores(tmp_path / "a", tmp_path / "b", tmp_path / "c") == [(campaign.id, 50)]
    merged, state = await read("c")
    assert merged == (await read("whole"))[0]
    assert (state.reports, state.life.closed) == (50, None)


async def test_a_merged_store_still_knows_the_ids_of_both(tmp_path, shards, make_submission, make_report):
    _, fill, read = shards
    await fill("a", range(30))
    await fill("b", range(30, 50))
    merge_stores(tmp_path / "a", tmp_path / "b", tmp_path / "c")
    await fill("c", range(64))
    assert (await read("c"))[0].counts[0].tolist() == [1] * 64


async def test_a_report_in_both_shards_is_refused_and_nothing_is_left(tmp_path, shards):
    _, fill, read = shards
    await fill("a", range(30))
    await fill("b", range(29, 50))
    with pytest.raises(StoreError, match="1 reports are counted in both stores"):
        merge_stores(tmp_path / "a", tmp_path / "b", tmp_path / "c")
    assert list((tmp_path / "c").iterdir()) == []
    assert (await read("a"))[0].n.tolist() == [30]


async def test_closed_campaigns_are_merged_on_the_operators_word_only(tmp_path, shards):
    _, fill, read = shards
    await fill("a", range(30), close=True)
    await fill("b", range(30, 50))
    with pytest.raises(StoreError, match="--assume-disjoint"):
        merge_stores(tmp_path / "a", tmp_path / "b", tmp_path / "c")
    merge_stores(tmp_path / "a", tmp_path / "b", tmp_path / "c", assume_disjoint=True)
    tally, state = await read("c")
    assert tally.n.tolist() == [50]
    assert state.life.closed is not None


async def test_a_campaign_of_one_store_alone_is_taken_over(tmp_path, shards, make_campaign):
    campaign, fill, read = shards
    other = make_campaign(title="Other")
    await fill("a", range(3))
    await fill("b", range(5), campaign=other)
    assert dict(merge_stores(tmp_path / "a", tmp_path / "b", tmp_path / "c")) == {campaign.id: 3, other.id: 5}
    assert (await read("c", other))[0].n.tolist() == [5]


async def test_an_existing_store_is_not_merged_into(tmp_path, shards):
    _, fill, _ = shards
    for name in ("a", "b", "c"):
        await fill(name, [])
    with pytest.raises(StoreError, match="already"):
        merge_stores(tmp_path / "a", tmp_path / "b", tmp_path / "c")
    with pytest.raises(StoreError, match="there is no store in"):
        merge_stores(tmp_path / "a", tmp_path / "none", tmp_path / "d")


async def test_a_copy_taken_while_reports_arrive_is_sound_and_takes_them_again(
    tmp_path, shards, make_submission, make_report
):
    campaign, fill, read = shards
    await fill("a", range(10))
    store = await open_store(tmp_path / "a")

    async def feed():
        for number in range(10, 64):
            await store.count([make_submission(campaign, [make_report(campaign, number)])])

    feeding = asyncio.create_task(feed())
    await asyncio.to_thread(copy_store, tmp_path / "a", tmp_path / "copy")
    await feeding
    await store.close()
    tally, _ = await read("copy")
    assert 10 <= int(tally.n.sum()) <= 64
    await fill("copy", range(64))
    assert (await read("copy"))[0].counts[0].tolist() == [1] * 64, "a restore may lose, and never counts twice"
    with pytest.raises(StoreError, match="already"):
        copy_store(tmp_path / "a", tmp_path / "copy")
