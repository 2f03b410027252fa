"""Shares of nodes, in every store: kept by campaign and node, replaced, withdrawn, refused, handed over, checked; and
counted as often as they were sent, whatever became of them.
"""

import asyncio
import hashlib
import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest
from cells import count, publish

from ldp_aggregator.node_statistics import Releases
from ldp_aggregator.store import Outcome, StoredToken, StoreError
from ldp_aggregator.store.backup import Combined, copy_store
from ldp_aggregator.store.sql.checks import change
from ldp_aggregator.store.sqlite.database import FILE_NAME
from ldp_aggregator.trainers import FederatedState, encode_share


@pytest.fixture
def make_token(clock):
    return lambda name, **more: StoredToken(name, "node", hashlib.sha256(name.encode()).digest(), clock(), **more)


@pytest.fixture
def federate(make_token):
    """Create a federated campaign and tokens of nodes a, b, c in a store."""

    async def make(store, **changes):
        campaign = await publish(store, 8, federated=True, **changes)
        known = {token.name for token in await store.tokens()}
        for name in sorted({"a", "b", "c"} - known):
            await store.add_token(make_token(name))
        return campaign

    return make


@pytest.fixture
async def campaign(store, federate):
    """Of nodes, in the store."""
    return await federate(store)


def share_of(campaign, seed, *, other_rows=False):
    size = len(FederatedState(campaign).totals)
    return encode_share(campaign, np.random.default_rng(seed).integers(-50, 500, size), other_rows=other_rows)


async def kept(store, campaign):
    return {member.node: member.share for member in (await store.shares(campaign.id)).members}


async def sent(store, campaign):
    return dict((await store.shares(campaign.id)).releases)


async def test_a_share_is_kept_byte_for_byte_until_another_takes_its_place_or_it_is_withdrawn(store, campaign, clock):
    share = share_of(campaign, 1)
    assert await store.put_share(campaign.id, "b", share) is None
    first = await store.shares(campaign.id)
    clock.step(60)
    assert await store.put_share(campaign.id, "b", share) is None
    assert await store.shares(campaign.id) == first, "a retry changes nothing"
    assert await store.share_digests(campaign.id) == (("b", hashlib.sha256(share).digest(), Releases()),)
    state = await store.state(campaign.id)
    assert (state.federated, state.shares, state.reports) == (True, 1, 0)
    await store.put_share(campaign.id, "b", share_of(campaign, 2))
    await store.put_share(campaign.id, "a", share_of(campaign, 3))
    members = (await store.shares(campaign.id)).members
    assert [(member.node, member.share) for member in members] == [
        ("a", share_of(campaign, 3)),
        ("b", share_of(campaign, 2)),
    ]
    assert (members[1].received - first.members[0].received).total_seconds() == 60
    other = await publish(store, 8, federated=True, title="Other")
    assert await store.put_share(other.id, "a", share_of(other, 1)) is None
    for _ in range(2):
        assert await store.withdraw_share(campaign.id, "a") is None
        assert await kept(store, campaign) == {"b": share_of(campaign, 2)}
    assert await kept(store, other) == {"a": share_of(other, 1)}
    assert await store.withdraw_share(other.id, "a") is None


async def test_shares_and_withdrawals_meet_the_life_of_a_campaign_as_reports_do(store, federate, clock):
    later = await federate(store, title="Later", opens="2026-02-01T00:00:00Z", closes="2026-03-01T00:00:00Z")
    for ask in (store.put_share(later.id, "a", share_of(later, 1)), store.withdraw_share(later.id, "a")):
        assert await ask == "campaign-not-open"
    clock.step(40 * 86400)
    assert await store.put_share(later.id, "a", share_of(later, 1)) is None
    clock.step(40 * 86400)
    closed = await federate(store, title="Closed by hand")
    await store.put_share(closed.id, "a", share_of(closed, 1))
    await store.close_campaign(closed.id)
    for campaign in (later, closed):
        assert await store.put_share(campaign.id, "a", share_of(campaign, 2)) == "campaign-closing"
        assert await store.withdraw_share(campaign.id, "a") == "campaign-closing"
        assert await kept(store, campaign) == {"a": share_of(campaign, 1)}


async def test_a_campaign_takes_one_kind_only_and_fsck_finds_a_share_of_another(store, campaign):
    reports = await publish(store, 8, title="Of devices")
    assert await store.create_campaign(reports, federated=True) is False
    await count(store, reports, [1])
    assert await store.put_share(reports.id, "a", share_of(reports, 1)) == "takes-reports"
    assert await store.withdraw_share(reports.id, "a") == "takes-reports"
    assert await store.shares(reports.id) is None
    assert await count(store, campaign, [1]) == Outcome(refused="takes-shares")
    assert (await store.state(campaign.id)).reports == 0
    await store.put_share(campaign.id, "a", share_of(reports, 1))
    [finding] = await store.check()
    assert str(finding).startswith(f"{campaign.id}: the share of 'a': the share is for another campaign")
    await store.withdraw_share(campaign.id, "a")


async def test_a_first_share_makes_a_campaign_without_reports_federated(store, federate):
    decided, campaign = await federate(store), await publish(store, 8, title="Undecided")
    limited = await publish(store, 8, title="Of so many devices", max_reports=5)
    assert await store.withdraw_share(campaign.id, "a") == "takes-reports"
    assert await store.put_share(campaign.id, "nobody", share_of(campaign, 1)) == "wrong-token"
    assert (await store.state(campaign.id)).federated is False
    assert await store.put_share(campaign.id, "a", share_of(campaign, 1)) is None
    salt = (await store.shares(campaign.id)).salt
    assert await store.put_share(campaign.id, "b", share_of(campaign, 2)) is None
    assert (await store.shares(campaign.id)).salt == salt
    assert len(salt) == 32
    assert (await store.shares(decided.id)).salt != salt, "every campaign has one of its own"
    assert await count(store, campaign, [1]) == Outcome(refused="takes-shares")
    assert await store.put_share(limited.id, "a", share_of(limited, 1)) == "takes-reports"


async def test_only_a_token_in_use_has_a_say_and_what_is_refused_is_not_counted(store, campaign, make_token, clock):
    await store.put_share(campaign.id, "a", share_of(campaign, 1))
    await store.add_token(make_token("late", expires=clock() + timedelta(days=1)))
    clock.step(86400)
    await store.revoke_token("a")
    for node in ("a", "late", "nobody"):
        assert await store.put_share(campaign.id, node, share_of(campaign, 2)) == "wrong-token"
        assert await store.withdraw_share(campaign.id, node) == "wrong-token"
    assert await kept(store, campaign) == {"a": share_of(campaign, 1)}, "revoking ends access and takes nothing back"
    await store.close_campaign(campaign.id)
    for node, refused in (("b", "campaign-closing"), ("a", "wrong-token")):
        assert await store.put_share(campaign.id, node, share_of(campaign, 2)) == refused
    assert await sent(store, campaign) == {"a": Releases()}
    assert await count(store, campaign, [1]) == Outcome(refused="takes-shares"), "also where it is closed"


async def test_an_operator_can_take_a_nodes_shares_out_of_every_campaign(store, campaign, federate):
    both = campaign, await federate(store, title="Second")
    for one in both:
        await store.put_share(one.id, "a", share_of(one, 1))
        await store.put_share(one.id, "b", share_of(one, 2))
    await store.close_campaign(both[1].id)
    assert [await store.withdraw_node("a") for _ in range(2)] == [2, 0]
    assert [list(await kept(store, one)) for one in both] == [["b"], ["b"]]


async def test_the_shares_of_a_rotated_token_stay_its_nodes(store, campaign, make_token, clock):
    await store.put_share(campaign.id, "a", share_of(campaign, 1))
    assert await store.rotate_token("a", make_token("a again")) is True
    assert await store.rotate_token("a", make_token("a third time")) is False
    assert await kept(store, campaign) == {"a": share_of(campaign, 1)}
    assert await store.put_share(campaign.id, "a", share_of(campaign, 1)) == "wrong-token"
    assert await store.put_share(campaign.id, "b", share_of(campaign, 2), token="a again") == "wrong-token"
    assert await store.put_share(campaign.id, "a", share_of(campaign, 2), token="a again") is None
    assert await kept(store, campaign) == {"a": share_of(campaign, 2)}
    assert await sent(store, campaign) == {"a": Releases(1)}, "a rotated token takes its node's count along"
    with pytest.raises(StoreError, match="'b' exists already"):
        await store.rotate_token("a again", replace(make_token("other"), name="b"))
    in_use = {token.name for token in await store.tokens() if token.revoked is None}
    assert in_use == {"a again", "b", "c"}, "a rotation that failed has changed nothing"
    await store.rotate_token("b", make_token("new"), until=clock() + timedelta(days=1))
    for seed, token in enumerate(("b", "new")):  # In an overlap both send.
        assert await store.put_share(campaign.id, "b", share_of(campaign, seed), token=token) is None
        assert (await kept(store, campaign))["b"] == share_of(campaign, seed)
    assert await store.put_share(campaign.id, "new", share_of(campaign, 1), token="new") == "wrong-token", "no node"


async def test_a_replacement_is_counted_in_its_campaign_but_not_the_same_share_again_or_one_of_other_rows(
    store, campaign, federate
):
    other = await federate(store, title="Other")
    assert await sent(store, campaign) == {}
    for seed, releases in ((1, 0), (1, 0), (2, 1), (2, 1), (1, 1), (2, 1), (3, 2)):
        await store.put_share(campaign.id, "a", share_of(campaign, seed))
        assert await sent(store, campaign) == {"a": Releases(releases)}
    await store.put_share(other.id, "a", share_of(other, 1))
    for seed, other_rows, releases in ((1, True, (0, 0)), (2, True, (0, 1)), (3, False, (1, 1)), (2, True, (1, 1))):
        await store.put_share(campaign.id, "b", share_of(campaign, seed, other_rows=other_rows))
        assert await sent(store, campaign) == {"a": Releases(2), "b": Releases(*releases)}, "the first is none, too"
    assert await sent(store, other) == {"a": Releases()}


async def test_a_share_is_withdrawn_from_its_campaign_and_from_no_other(store, federate):
    campaigns = [await federate(store, title=title) for title in ("one", "two")]
    for campaign in campaigns:
        for seed, node in enumerate("ab"):
            assert await store.put_share(campaign.id, node, share_of(campaign, seed)) is None
    assert await store.withdraw_share(campaigns[0].id, "a") is None
    assert [sorted(await kept(store, one)) for one in campaigns] == [["b"], ["a", "b"]]


async def test_withdrawing_takes_no_release_back(store, campaign):
    await store.put_share(campaign.id, "a", share_of(campaign, 1))
    await store.withdraw_share(campaign.id, "a")
    assert await store.share_digests(campaign.id) == (("a", None, Releases()),)
    await store.put_share(campaign.id, "a", share_of(campaign, 1))
    assert await sent(store, campaign) == {"a": Releases()}, "the same share tells nothing new"
    await store.withdraw_share(campaign.id, "a")
    await store.put_share(campaign.id, "a", share_of(campaign, 2))
    assert await sent(store, campaign) == {"a": Releases(1)}, "withdrawn and sent anew is a replacement"
    assert await store.withdraw_node("a") == 1
    assert await sent(store, campaign) == {"a": Releases(1)}


async def test_two_instances_on_one_database_agree(instances, federate):
    first, second = instances
    campaign = await federate(first)
    puts = [
        (first if seed % 2 else second).put_share(campaign.id, "abc"[seed % 3], share_of(campaign, seed % 3))
        for seed in range(30)
    ]
    assert await asyncio.gather(*puts) == [None] * 30
    assert await second.share_digests(campaign.id) == await first.share_digests(campaign.id)
    assert await kept(second, campaign) == {node: share_of(campaign, i) for i, node in enumerate("abc")}
    puts = [(first if i % 2 else second).put_share(campaign.id, "c", share_of(campaign, i % 7)) for i in range(28)]
    assert await asyncio.gather(*puts) == [None] * 28
    assert (await sent(first, campaign))["c"] == (await sent(second, campaign))["c"] == Releases(6)
    await asyncio.gather(second.revoke_token("a"), first.put_share(campaign.id, "a", share_of(campaign, 9)))
    assert await first.put_share(campaign.id, "a", share_of(campaign, 4)) == "wrong-token"
    await second.close_campaign(campaign.id)
    assert await first.put_share(campaign.id, "b", share_of(campaign, 4)) == "campaign-closing"


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("UPDATE shares SET share = zeroblob(99)", "shares 'a': its bytes are not those of its digest"),
        ("DELETE FROM releases", "the share of 'a': it is not among the shares that were sent"),
    ],
)
async def test_fsck_finds_what_was_changed(tmp_path, opened, federate, statement, problem):
    store = await opened("data")
    campaign = await federate(store)
    await store.put_share(campaign.id, "a", share_of(campaign, 1))
    with closing(sqlite3.connect(tmp_path / "data" / FILE_NAME)) as db, db:
        db.execute(statement)
    assert problem in [finding.problem for finding in await store.check()]


async def test_fsck_finds_shares_of_a_campaign_that_takes_reports(opened, federate):
    store = await opened("data")
    campaign = await federate(store)
    await store.put_share(campaign.id, "a", share_of(campaign, 1))
    await store._write(lambda db: change(db, "campaigns", ("id", campaign.id), {"salt": None}))
    assert [finding.problem for finding in await store.check()] == [
        "1 shares are stored, but the campaign takes reports"
    ]


@pytest.fixture
async def folders(opened, federate, clock):
    """Data folders with one federated campaign; ``fill(folder, [(node, seed), ...])``, None as a seed withdraws."""

    async def fill(name, history, **more):
        store = await opened(name, clock=clock)
        campaign = await federate(store)
        for node, seed in history:
            if seed is None:
                await store.withdraw_share(campaign.id, node)
            else:
                await store.put_share(campaign.id, node, share_of(campaign, seed, **more))
        return campaign

    return fill


@pytest.fixture
def read(opened):
    """The shares of a data folder, and how often each node's were sent."""

    async def look(name, campaign):
        store = await opened(name, read_only=True)
        assert await store.check() == []
        return await kept(store, campaign), await sent(store, campaign)

    return look


async def test_merged_stores_have_the_shares_of_both_and_count_what_was_sent_to_either_once(
    tmp_path, combine, folders, read
):
    campaign = await folders("one", [("a", 1), ("a", 2), ("b", 5)])
    await folders("two", [("a", 1), ("a", 3), ("a", None), ("b", 5), ("c", 3)])
    shares = {node: share_of(campaign, seed) for node, seed in (("a", 2), ("b", 5), ("c", 3))}
    expected = shares, {"a": Releases(2), "b": Releases(), "c": Releases()}
    for first, second in (("one", "two"), ("two", "one")):
        assert combine(first, second, f"{first} first") == [Combined(campaign.id, 3)]
        assert await read(f"{first} first", campaign) == expected
    copy_store(tmp_path / "one first", tmp_path / "copy")
    assert await read("copy", campaign) == expected


async def test_in_merged_stores_only_what_was_declared_to_both_or_after_another_is_of_other_rows(
    tmp_path, combine, folders, read
):
    campaign = await folders("one", [("a", 1), ("a", 2), ("a", 3)], other_rows=True)
    await folders("two", [("a", 3)], other_rows=True)
    await folders("another", [("a", 3)])
    assert (await read("one", campaign))[1] == {"a": Releases(0, 2)}
    for first, second in (("one", "two"), ("two", "one")):
        combine(first, second, f"{first} first")
        assert (await read(f"{first} first", campaign))[1] == {"a": Releases(1, 1)}
    with pytest.raises(StoreError, match="node 'a' has another share in each store"):
        combine("one", "another", "neither")
    assert list((tmp_path / "neither").iterdir()) == []


@pytest.mark.parametrize("taken", ["a report", "a limit", "nothing"])
async def test_campaigns_of_two_kinds_are_merged_only_where_nobody_answered_one(combine, opened, folders, read, taken):
    campaign = await folders("one", [("a", 1)])
    other = await opened("two")
    await publish(other, 8, max_reports=5 if taken == "a limit" else None)
    if taken == "a report":
        assert await count(other, campaign, [1]) == Outcome(counted=1)
    for first, second in (("one", "two"), ("two", "one")):
        if taken == "nothing":
            assert combine(first, second, f"{first} first") == [Combined(campaign.id, 1)]
            assert (await read(f"{first} first", campaign))[0] == {"a": share_of(campaign, 1)}
        else:
            with pytest.raises(StoreError, match="reports in one store and shares in the other"):
                combine(first, second, f"{first} first")
