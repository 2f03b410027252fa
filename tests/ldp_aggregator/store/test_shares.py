"""Shares of nodes, in every store: kept by campaign and node, replaced, withdrawn, refused, handed over, checked."""

from __future__ import annotations

import asyncio
import hashlib
import sqlite3

import numpy as np
import pytest
from postgres import empty

from ldp_aggregator.node_statistics import Releases
from ldp_aggregator.store import Outcome, SqliteStore, StoredToken, StoreError, UnknownCampaignError, open_store
from ldp_aggregator.store.backup import copy_store
from ldp_aggregator.store.combining import Combined, combine_stores
from ldp_aggregator.trainers import FederatedState, encode_share

UNKNOWN_ID = "A" * 43


@pytest.fixture
def federate(make_campaign, clock):
    """Create a federated campaign and tokens of nodes a, b, c in a store."""

    async def make(store, **changes):
        campaign = make_campaign(8, **changes)
        assert await store.create_campaign(campaign, federated=True)
        for name in "abc":
            if not any(token.name == name for token in await store.tokens()):
                await store.add_token(StoredToken(name, "node", hashlib.sha256(name.encode()).digest(), clock()))
        return campaign

    return make


def share_of(campaign, seed):
    size = len(FederatedState(campaign).totals)
    return encode_share(campaign, np.random.default_rng(seed).integers(-50, 500, size))


async def kept(store, campaign):
    return {member.node: member.share for member in (await store.shares(campaign.id)).members}


async def test_a_share_is_kept_byte_for_byte_and_a_retry_changes_nothing(store, federate, clock):
    campaign = await federate(store)
    share = share_of(campaign, 1)
    assert await store.put_share(campaign.id, "a", share) is None
    first = await store.shares(campaign.id)
    clock.step(60)
    assert await store.put_share(campaign.id, "a", share) is None
    assert await store.shares(campaign.id) == first
    assert await store.share_digests(campaign.id) == (("a", hashlib.sha256(share).digest(), Releases()),)
    state = await store.state(campaign.id)
    assert (state.federated, state.shares, state.reports) == (True, 1, 0)
    assert await store.check() == []


async def test_another_share_takes_the_place_of_the_first_and_the_time_of_its_own(store, federate, clock):
    campaign = await federate(store)
    await store.put_share(campaign.id, "b", share_of(campaign, 1))
    before = (await store.shares(campaign.id)).members[0].received
    clock.step(60)
    await store.put_share(campaign.id, "b", share_of(campaign, 2))
    await store.put_share(campaign.id, "a", share_of(campaign, 3))
    members = (await store.shares(campaign.id)).members
    assert [member.node for member in members] == ["a", "b"]
    assert (members[1].share, (members[1].received - before).total_seconds()) == (share_of(campaign, 2), 60)


async def test_a_withdrawn_share_is_gone_and_withdrawing_again_is_a_success(store, federate):
    campaign = await federate(store)
    await store.put_share(campaign.id, "a", share_of(campaign, 1))
    await store.put_share(campaign.id, "b", share_of(campaign, 2))
    assert await store.withdraw_share(campaign.id, "a") is None
    assert await store.withdraw_share(campaign.id, "a") is None
    assert await kept(store, campaign) == {"b": share_of(campaign, 2)}


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
        assert await store.put_share(campaign.id, "a", share_of(campaign, 2)) == "campaign-closed"
        assert await store.withdraw_share(campaign.id, "a") == "campaign-closed"
        assert await kept(store, campaign) == {"a": share_of(campaign, 1)}
    assert await store.check() == []


async def test_a_campaign_takes_one_kind_only(store, federate, make_campaign, make_submission, make_report):
    federated, reports = await federate(store), make_campaign(8, title="Of devices")
    await store.create_campaign(reports)
    assert await store.create_campaign(reports, federated=True) is False
    await store.count([make_submission(reports, [make_report(reports, 1)])])
    assert await store.put_share(reports.id, "a", share_of(reports, 1)) == "takes-reports"
    assert await store.withdraw_share(reports.id, "a") == "takes-reports"
    assert await store.shares(reports.id) is None
    [outcome] = await store.count([make_submission(federated, [make_report(federated, 1)])])
    assert outcome == Outcome(refused="takes-shares")
    assert (await store.state(federated.id)).reports == 0


async def test_a_first_share_makes_a_campaign_without_reports_federated(
    store, federate, make_campaign, make_submission, make_report
):
    await federate(store)  # its nodes have tokens
    campaign, limited = make_campaign(8, title="Undecided"), make_campaign(8, title="Of so many devices")
    await store.create_campaign(campaign)
    await store.create_campaign(limited, max_reports=5)
    assert await store.withdraw_share(campaign.id, "a") == "takes-reports"
    assert await store.put_share(campaign.id, "nobody", share_of(campaign, 1)) == "wrong-token"
    assert (await store.state(campaign.id)).federated is False
    assert await store.put_share(campaign.id, "a", share_of(campaign, 1)) is None
    salt = (await store.shares(campaign.id)).salt
    assert await store.put_share(campaign.id, "b", share_of(campaign, 2)) is None
    assert (await store.shares(campaign.id)).salt == salt
    [outcome] = await store.count([make_submission(campaign, [make_report(campaign, 1)])])
    assert outcome == Outcome(refused="takes-shares")
    assert await store.put_share(limited.id, "a", share_of(limited, 1)) == "takes-reports"
    assert await store.check() == []


async def test_only_a_token_in_use_has_a_say(store, federate):
    campaign = await federate(store)
    await store.put_share(campaign.id, "a", share_of(campaign, 1))
    assert await store.put_share(campaign.id, "nobody", share_of(campaign, 2)) == "wrong-token"
    await store.revoke_token("a")
    assert await store.put_share(campaign.id, "a", share_of(campaign, 2)) == "wrong-token"
    assert await store.withdraw_share(campaign.id, "a") == "wrong-token"
    assert await kept(store, campaign) == {"a": share_of(campaign, 1)}, "revoking ends access and takes nothing back"


async def test_an_operator_can_take_a_nodes_shares_out_of_every_campaign(store, federate):
    first, second = await federate(store), await federate(store, title="Second")
    for campaign in (first, second):
        await store.put_share(campaign.id, "a", share_of(campaign, 1))
        await store.put_share(campaign.id, "b", share_of(campaign, 2))
    await store.close_campaign(second.id)
    assert await store.withdraw_node("a") == 2
    assert await store.withdraw_node("a") == 0
    assert [list(await kept(store, campaign)) for campaign in (first, second)] == [["b"], ["b"]]


async def test_the_shares_of_a_rotated_token_stay_its_nodes(store, federate, clock):
    campaign = await federate(store)
    await store.put_share(campaign.id, "a", share_of(campaign, 1))
    fresh = StoredToken("a again", "node", b"n" * 32, clock())
    assert await store.rotate_token("a", fresh) is True
    assert await store.rotate_token("a", StoredToken("a third time", "node", b"t" * 32, clock())) is False
    assert await kept(store, campaign) == {"a": share_of(campaign, 1)}
    assert await store.put_share(campaign.id, "a", share_of(campaign, 1)) == "wrong-token"
    assert await store.put_share(campaign.id, "b", share_of(campaign, 2), token="a again") == "wrong-token"
    assert await store.put_share(campaign.id, "a", share_of(campaign, 2), token="a again") is None
    assert await kept(store, campaign) == {"a": share_of(campaign, 2)}
    with pytest.raises(StoreError, match="'b' exists already"):
        await store.rotate_token("a again", StoredToken("b", "node", b"z" * 32, clock()))
    in_use = {token.name for token in await store.tokens() if token.revoked is None}
    assert in_use == {"a again", "b", "c"}, "a rotation that failed has changed nothing"


async def test_what_names_an_unknown_campaign_says_so(store):
    for ask in (store.shares(UNKNOWN_ID), store.share_digests(UNKNOWN_ID), store.put_share(UNKNOWN_ID, "a", b"")):
        with pytest.raises(UnknownCampaignError):
            await ask
    with pytest.raises(UnknownCampaignError):
        await store.withdraw_share(UNKNOWN_ID, "a")


async def test_every_campaign_has_a_salt_of_its_own_that_stays(store, federate):
    first, second = await federate(store), await federate(store, title="Second")
    salts = [(await store.shares(campaign.id)).salt for campaign in (first, second, first)]
    assert salts[0] == salts[2] != salts[1]
    assert len(salts[0]) == 32


async def test_fsck_finds_a_share_that_is_none_of_its_campaign(store, federate):
    campaign, other = await federate(store), await federate(store, title="Other")
    await store.put_share(campaign.id, "a", share_of(other, 1))
    [finding] = await store.check()
    assert str(finding).startswith(f"{campaign.id}: the share of 'a': the share is for another campaign")


async def test_concurrent_shares_of_one_node_leave_exactly_one(store, federate):
    campaign = await federate(store)
    shares = [share_of(campaign, seed) for seed in range(12)]
    answers = await asyncio.gather(*(store.put_share(campaign.id, "a", share) for share in shares))
    assert answers == [None] * 12
    assert len(await kept(store, campaign)) == 1
    assert (await kept(store, campaign))["a"] in shares


async def test_two_instances_on_one_database_agree(postgres, tmp_path, clock, federate):
    await empty(postgres.address)
    first, second = [await open_store(tmp_path, postgres.address, clock=clock) for _ in range(2)]
    try:
        campaign = await federate(first)
        puts = [
            (first if seed % 2 else second).put_share(campaign.id, "abc"[seed % 3], share_of(campaign, seed % 3))
            for seed in range(30)
        ]
        assert await asyncio.gather(*puts) == [None] * 30
        assert await second.share_digests(campaign.id) == await first.share_digests(campaign.id)
        assert await kept(second, campaign) == {node: share_of(campaign, i) for i, node in enumerate("abc")}
        await asyncio.gather(second.revoke_token("a"), first.put_share(campaign.id, "a", share_of(campaign, 9)))
        assert await first.put_share(campaign.id, "a", share_of(campaign, 4)) == "wrong-token"
        await second.close_campaign(campaign.id)
        assert await first.put_share(campaign.id, "b", share_of(campaign, 4)) == "campaign-closed"
    finally:
        await first.close()
        await second.close()


async def test_a_share_outlives_its_process(tmp_path, federate, clock):
    store = SqliteStore(tmp_path / "s.sqlite3", clock=clock)
    campaign = await federate(store)
    await store.put_share(campaign.id, "a", share_of(campaign, 1))
    reopened = SqliteStore(tmp_path / "s.sqlite3", clock=clock)  # The first was never closed, as after a kill.
    assert await kept(reopened, campaign) == {"a": share_of(campaign, 1)}
    for one in (store, reopened):
        await one.close()


async def test_fsck_finds_bytes_that_were_changed(tmp_path, federate, clock):
    path = tmp_path / "s.sqlite3"
    store = SqliteStore(path, clock=clock)
    campaign = await federate(store)
    await store.put_share(campaign.id, "a", share_of(campaign, 1))
    with sqlite3.connect(path) as db:
        db.execute("UPDATE shares SET share = ?", (share_of(campaign, 2),))
    db.close()
    assert [finding.problem for finding in await store.check()] == [
        "the share of 'a': its bytes are not those of its digest"
    ]
    with sqlite3.connect(path) as db:
        db.execute("UPDATE campaigns SET salt = NULL")
    db.close()
    assert [finding.problem for finding in await store.check()] == [
        "1 shares are stored, but the campaign takes reports"
    ]
    await store.close()


@pytest.fixture
async def folders(tmp_path, federate, clock):
    """Two data folders with one federated campaign; ``fill(folder, {node: seed})``."""

    async def fill(name, shares):
        store = await open_store(tmp_path / name, clock=clock)
        campaign = await federate(store)
        for node, seed in shares.items():
            await store.put_share(campaign.id, node, share_of(campaign, seed))
        await store.close()
        return campaign

    return fill


async def read(folder, campaign):
    store = await open_store(folder, read_only=True)
    try:
        assert await store.check() == []
        return await kept(store, campaign)
    finally:
        await store.close()


async def test_merged_stores_have_the_shares_of_both_and_a_copy_has_all(tmp_path, folders):
    campaign = await folders("one", {"a": 1, "b": 2})
    await folders("two", {"b": 2, "c": 3})
    assert combine_stores(tmp_path / "one", tmp_path / "two", tmp_path / "both") == [Combined(campaign.id, 3)]
    assert await read(tmp_path / "both", campaign) == {n: share_of(campaign, i) for i, n in enumerate("abc", 1)}
    copy_store(tmp_path / "both", tmp_path / "copy")
    assert await read(tmp_path / "copy", campaign) == await read(tmp_path / "both", campaign)


async def test_two_shares_of_one_node_are_not_merged(tmp_path, folders):
    await folders("one", {"a": 1})
    await folders("two", {"a": 2})
    with pytest.raises(StoreError, match="node 'a' has another share in each store"):
        combine_stores(tmp_path / "one", tmp_path / "two", tmp_path / "both")
    assert list((tmp_path / "both").iterdir()) == []


@pytest.mark.parametrize("taken", ["a report", "a limit"])
async def test_campaigns_of_two_kinds_are_not_merged(tmp_path, folders, make_submission, make_report, taken):
    campaign = await folders("one", {"a": 1})
    other = await open_store(tmp_path / "two")
    await other.create_campaign(campaign, max_reports=5 if taken == "a limit" else None)
    if taken == "a report":
        assert (await other.count([make_submission(campaign, [make_report(campaign, 1)])]))[0].refused is None
    await other.close()
    with pytest.raises(StoreError, match="reports in one store and shares in the other"):
        combine_stores(tmp_path / "one", tmp_path / "two", tmp_path / "both")


async def test_a_campaign_that_nobody_answered_merges_with_its_federated_twin(tmp_path, folders):
    campaign = await folders("one", {"a": 1})
    other = await open_store(tmp_path / "two")
    await other.create_campaign(campaign)
    await other.close()
    for first, second in (("one", "two"), ("two", "one")):
        output = tmp_path / f"{first} first"
        assert combine_stores(tmp_path / first, tmp_path / second, output) == [Combined(campaign.id, 1)]
        assert await read(output, campaign) == {"a": share_of(campaign, 1)}
