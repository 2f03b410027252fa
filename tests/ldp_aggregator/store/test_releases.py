"""Shares that nodes ever sent, in every store: counted once, whatever is replaced, withdrawn, rotated or merged."""

from __future__ import annotations

import asyncio
import hashlib
import sqlite3

import numpy as np
import pytest
from postgres import empty

from ldp_aggregator.node_statistics import Releases
from ldp_aggregator.store import SqliteStore, StoredToken, open_store
from ldp_aggregator.store.backup import copy_store
from ldp_aggregator.store.combining import combine_stores
from ldp_aggregator.trainers import FederatedState, encode_share


@pytest.fixture
def federate(make_campaign, clock):
    """Create a federated campaign and tokens of nodes a, b in a store."""

    async def make(store, **changes):
        campaign = make_campaign(8, **changes)
        assert await store.create_campaign(campaign, federated=True)
        for name in "ab":
            if not any(token.name == name for token in await store.tokens()):
                await store.add_token(StoredToken(name, "node", hashlib.sha256(name.encode()).digest(), clock()))
        return campaign

    return make


def share_of(campaign, seed, *, other_rows=False):
    size = len(FederatedState(campaign).totals)
    return encode_share(campaign, np.random.default_rng(seed).integers(-50, 500, size), other_rows=other_rows)


async def sent(store, campaign):
    return dict((await store.shares(campaign.id)).releases)


async def test_a_replacement_is_counted_and_the_same_share_again_is_none(store, federate):
    campaign = await federate(store)
    assert await sent(store, campaign) == {}
    for seed, releases in ((1, 0), (1, 0), (2, 1), (2, 1), (1, 1), (2, 1), (3, 2)):
        await store.put_share(campaign.id, "a", share_of(campaign, seed))
        assert await sent(store, campaign) == {"a": Releases(releases)}
    await store.put_share(campaign.id, "b", share_of(campaign, 1))
    assert await sent(store, campaign) == {"a": Releases(2), "b": Releases()}
    assert await store.check() == []


async def test_withdrawing_takes_no_release_back(store, federate):
    campaign = await federate(store)
    await store.put_share(campaign.id, "a", share_of(campaign, 1))
    await store.withdraw_share(campaign.id, "a")
    assert await sent(store, campaign) == {"a": Releases()}
    assert await store.share_digests(campaign.id) == (("a", None, Releases()),)
    await store.put_share(campaign.id, "a", share_of(campaign, 1))
    assert await sent(store, campaign) == {"a": Releases()}, "the same share tells nothing new"
    await store.withdraw_share(campaign.id, "a")
    await store.put_share(campaign.id, "a", share_of(campaign, 2))
    assert await sent(store, campaign) == {"a": Releases(1)}, "withdrawn and sent anew is a replacement"
    assert await store.withdraw_node("a") == 1
    assert await sent(store, campaign) == {"a": Releases(1)}


async def test_a_share_of_other_rows_is_no_replacement_unless_it_is_the_first(store, federate):
    campaign = await federate(store)
    await store.put_share(campaign.id, "a", share_of(campaign, 1, other_rows=True))
    assert await sent(store, campaign) == {"a": Releases()}
    await store.put_share(campaign.id, "a", share_of(campaign, 2, other_rows=True))
    assert await sent(store, campaign) == {"a": Releases(0, 1)}
    await store.put_share(campaign.id, "a", share_of(campaign, 3))
    assert await sent(store, campaign) == {"a": Releases(1, 1)}
    await store.put_share(campaign.id, "a", share_of(campaign, 2, other_rows=True))
    assert await sent(store, campaign) == {"a": Releases(1, 1)}


async def test_what_is_refused_is_not_counted(store, federate):
    campaign = await federate(store)
    assert await store.put_share(campaign.id, "nobody", share_of(campaign, 1)) == "wrong-token"
    await store.put_share(campaign.id, "a", share_of(campaign, 1))
    await store.close_campaign(campaign.id)
    assert await store.put_share(campaign.id, "a", share_of(campaign, 2)) == "campaign-closed"
    assert await sent(store, campaign) == {"a": Releases()}


async def test_campaigns_count_apart(store, federate):
    first, second = await federate(store), await federate(store, title="Second")
    await store.put_share(first.id, "a", share_of(first, 1))
    await store.put_share(first.id, "a", share_of(first, 2))
    await store.put_share(second.id, "a", share_of(second, 1))
    assert [await sent(store, campaign) for campaign in (first, second)] == [{"a": Releases(1)}, {"a": Releases()}]


async def test_a_rotated_token_takes_its_count_along(store, federate, clock):
    campaign = await federate(store)
    await store.put_share(campaign.id, "a", share_of(campaign, 1))
    await store.put_share(campaign.id, "a", share_of(campaign, 2))
    await store.rotate_token("a", StoredToken("a again", "node", b"n" * 32, clock()))
    await store.put_share(campaign.id, "a", share_of(campaign, 3), token="a again")
    assert await sent(store, campaign) == {"a": Releases(2)}


async def test_concurrent_shares_of_one_node_are_all_counted(store, federate):
    campaign = await federate(store)
    shares = [share_of(campaign, seed % 12) for seed in range(36)]
    await asyncio.gather(*(store.put_share(campaign.id, "a", share) for share in shares))
    assert await sent(store, campaign) == {"a": Releases(11)}
    assert await store.check() == []


async def test_two_instances_count_together(postgres, tmp_path, clock, federate):
    await empty(postgres.address)
    first, second = [await open_store(tmp_path, postgres.address, clock=clock) for _ in range(2)]
    try:
        campaign = await federate(first)
        puts = [(first if i % 2 else second).put_share(campaign.id, "a", share_of(campaign, i % 7)) for i in range(28)]
        assert await asyncio.gather(*puts) == [None] * 28
        assert await sent(first, campaign) == await sent(second, campaign) == {"a": Releases(6)}
    finally:
        await first.close()
        await second.close()


async def test_the_count_outlives_its_process(tmp_path, federate, clock):
    store = SqliteStore(tmp_path / "s.sqlite3", clock=clock)
    campaign = await federate(store)
    for seed in (1, 2):
        await store.put_share(campaign.id, "a", share_of(campaign, seed))
    reopened = SqliteStore(tmp_path / "s.sqlite3", clock=clock)  # The first was never closed, as after a kill.
    await reopened.put_share(campaign.id, "a", share_of(campaign, 1))
    assert await sent(reopened, campaign) == {"a": Releases(1)}
    for one in (store, reopened):
        await one.close()


async def test_fsck_finds_a_share_that_was_not_counted(tmp_path, federate, clock):
    path = tmp_path / "s.sqlite3"
    store = SqliteStore(path, clock=clock)
    campaign = await federate(store)
    await store.put_share(campaign.id, "a", share_of(campaign, 1))
    with sqlite3.connect(path) as db:
        db.execute("DELETE FROM releases")
    db.close()
    assert [finding.problem for finding in await store.check()] == [
        "the share of 'a': it is not among the shares that were sent"
    ]
    await store.close()


@pytest.fixture
async def folders(tmp_path, federate, clock):
    """Data folders with one federated campaign; ``fill(folder, [(node, seed), ...])``, None as a seed withdraws."""

    async def fill(name, history, **more):
        store = await open_store(tmp_path / name, clock=clock)
        campaign = await federate(store)
        for node, seed in history:
            if seed is None:
                await store.withdraw_share(campaign.id, node)
            else:
                await store.put_share(campaign.id, node, share_of(campaign, seed, **more))
        await store.close()
        return campaign

    return fill


async def read(folder, campaign):
    store = await open_store(folder, read_only=True)
    try:
        assert await store.check() == []
        return await sent(store, campaign)
    finally:
        await store.close()


async def test_merged_stores_count_what_was_sent_to_either_once(tmp_path, folders):
    campaign = await folders("one", [("a", 1), ("a", 2), ("b", 5)])
    await folders("two", [("a", 1), ("a", 3), ("a", None), ("b", 5)])
    for first, second in (("one", "two"), ("two", "one")):
        combine_stores(tmp_path / first, tmp_path / second, tmp_path / f"{first} first")
        assert await read(tmp_path / f"{first} first", campaign) == {"a": Releases(2), "b": Releases()}
    copy_store(tmp_path / "one first", tmp_path / "copy")
    assert await read(tmp_path / "copy", campaign) == {"a": Releases(2), "b": Releases()}


async def test_in_merged_stores_only_what_was_declared_to_both_or_after_another_is_of_other_rows(tmp_path, folders):
    campaign = await folders("one", [("a", 1), ("a", 2), ("a", 3)], other_rows=True)
    await folders("two", [("a", 3)], other_rows=True)
    assert await read(tmp_path / "one", campaign) == {"a": Releases(0, 2)}
    combine_stores(tmp_path / "one", tmp_path / "two", tmp_path / "both")
    assert await read(tmp_path / "both", campaign) == {"a": Releases(1, 1)}
