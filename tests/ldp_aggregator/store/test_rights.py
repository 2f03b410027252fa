"""Tokens that end, speak for a node or are for some campaigns; the log of acts; deleted campaigns: in every store."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import replace
from datetime import timedelta

import pytest

from ldp_aggregator.store import Act, RefusedError, SqliteStore, StoredToken, StoreError, UnknownCampaignError
from ldp_aggregator.store.combining import combine_stores
from ldp_aggregator.store.sqlite.connections import FILE_NAME

DAY = timedelta(days=1)


def make_token(name, clock, **more):
    return StoredToken(name, "relay", hashlib.sha256(name.encode()).digest(), clock(), **more)


async def test_a_token_comes_back_with_its_end_and_its_campaigns(store, clock):
    kept = [
        make_token("always", clock),
        make_token("until", clock, expires=clock() + DAY),
        make_token("some", clock, campaigns=("A" * 43, "B" * 43)),
    ]
    for token in kept:
        await store.add_token(token)
    assert sorted(await store.tokens(), key=lambda token: token.name) == sorted(kept, key=lambda token: token.name)
    assert [await store.token(token.digest) for token in kept] == kept


def test_a_token_is_in_use_until_the_moment_it_expires(clock):
    token = make_token("until", clock, expires=clock() + DAY)
    assert token.is_in_use(clock())
    assert token.is_in_use(clock() + DAY - timedelta(microseconds=1))
    assert not token.is_in_use(clock() + DAY)
    assert not replace(token, revoked=clock()).is_in_use(clock())


async def test_a_rotation_with_overlap_leaves_both_in_use_until_it_ends(store, clock):
    await store.add_token(make_token("old", clock, campaigns=("A" * 43,)))
    assert await store.rotate_token("old", make_token("new", clock), until=clock() + DAY)
    old, new = [next(t for t in await store.tokens() if t.name == name) for name in ("old", "new")]
    assert (old.revoked, old.expires, new.expires) == (None, clock() + DAY, None)
    assert (old.node, new.node) == ("old", "old"), "both speak for one node"
    clock.step(86400)
    assert await store.rotate_token("old", make_token("third", clock)) is False, "what has expired is in use no more"


async def test_an_overlap_never_makes_a_token_last_longer(store, clock):
    await store.add_token(make_token("old", clock, expires=clock() + DAY))
    await store.rotate_token("old", make_token("new", clock), until=clock() + 30 * DAY)
    assert next(t for t in await store.tokens() if t.name == "old").expires == clock() + DAY


async def test_an_expired_token_has_no_say_about_its_nodes_share(store, clock, make_campaign):
    campaign = make_campaign(8)
    await store.create_campaign(campaign, federated=True)
    await store.add_token(replace(make_token("a", clock, expires=clock() + DAY), scope="node"))
    clock.step(86400)
    assert await store.put_share(campaign.id, "a", b"") == "wrong-token"
    assert await store.withdraw_share(campaign.id, "a") == "wrong-token"


async def test_in_an_overlap_both_tokens_send_the_share_of_one_node(store, clock, make_campaign):
    from ldp_aggregator.trainers import FederatedState, encode_share

    campaign = make_campaign(8)
    await store.create_campaign(campaign, federated=True)
    await store.add_token(replace(make_token("a", clock), scope="node"))
    await store.rotate_token("a", replace(make_token("b", clock), scope="node"), until=clock() + DAY)
    size = len(FederatedState(campaign).totals)
    for number, token in enumerate(("a", "b")):
        share = encode_share(campaign, [number] * size)
        assert await store.put_share(campaign.id, "a", share, token=token) is None
    assert [member.node for member in (await store.shares(campaign.id)).members] == ["a"]
    assert await store.put_share(campaign.id, "b", share, token="b") == "wrong-token", "b is a token and no node"


async def test_an_act_is_there_before_it_is_done_and_then_with_its_outcome(store, clock):
    first = await store.begin_act(Act("token admin", "close campaign", "A" * 43, "why not"))
    [entry] = await store.acts()
    assert (entry.number, entry.moment, entry.outcome) == (first, clock(), "asked")
    assert entry.act == Act("token admin", "close campaign", "A" * 43, "why not")
    await store.end_act(first, "done")
    clock.step(1)
    for outcome in ("failed", "done"):
        await store.end_act(await store.begin_act(Act("command line (root)", "create token")), outcome)
    assert [act.outcome for act in await store.acts()] == ["done", "failed", "done"]
    assert [act.outcome for act in await store.acts(last=2)] == ["failed", "done"], "the last ones, oldest first"
    assert [act.number for act in await store.acts(campaign_id="A" * 43)] == [first]
    assert list(await store.acts(campaign_id="B" * 43)) == []


async def test_what_uploads_need_is_kept_with_the_campaign(store, make_campaign):
    campaign, other = make_campaign(), make_campaign(title="Other")
    await store.create_campaign(campaign, uploads_need="device")
    await store.create_campaign(other)
    assert [state.uploads_need for state in await store.campaigns()] == ["device", None]
    assert (await store.set_uploads_need(campaign.id, "relay")).uploads_need == "relay"
    assert (await store.set_uploads_need(campaign.id, None)).uploads_need is None
    with pytest.raises(UnknownCampaignError):
        await store.set_uploads_need("A" * 43, "relay")


async def test_only_a_closed_campaign_is_deleted_and_its_id_is_never_used_again(
    store, make_campaign, make_submission, make_report
):
    campaign, other = make_campaign(), make_campaign(title="Other")
    for one in (campaign, other):
        await store.create_campaign(one)
        await store.count([make_submission(one, [make_report(one, number) for number in range(5)])])
        await store.publish_model(one.id, "{}")
    with pytest.raises(RefusedError, match="was not closed") as refused:
        await store.delete_campaign(campaign.id)
    assert refused.value.code == "campaign-not-closed"
    await store.close_campaign(campaign.id)
    await store.delete_campaign(campaign.id)
    for ask in (store.document, store.state, store.tally, store.model, store.delete_campaign):
        with pytest.raises(UnknownCampaignError):
            await ask(campaign.id)
    late = make_submission(campaign, [make_report(campaign, 9)])
    assert (await store.count([late]))[0].refused == "unknown-campaign"
    with pytest.raises(RefusedError, match="was deleted") as again:
        await store.create_campaign(campaign)
    assert again.value.code == "campaign-deleted"
    assert [state.id for state in await store.campaigns()] == [other.id]
    assert ((await store.state(other.id)).reports, (await store.model(other.id)).version) == (5, 1)
    assert await store.check() == []


@pytest.mark.parametrize(("first", "second", "merged"), [(None, "device", "device"), ("device", "relay", "relay")])
async def test_a_merged_campaign_asks_of_uploads_what_either_did(tmp_path, make_campaign, first, second, merged):
    for name, need in (("a", first), ("b", second)):
        (tmp_path / name).mkdir()
        store = SqliteStore(tmp_path / name / FILE_NAME)
        await store.create_campaign(make_campaign(), uploads_need=need)
        await store.close()
    combine_stores(tmp_path / "a", tmp_path / "b", tmp_path / "c")
    store = SqliteStore(tmp_path / "c" / FILE_NAME)
    assert (await store.state(make_campaign().id)).uploads_need == merged
    await store.close()


async def test_nothing_is_done_that_cannot_be_written_down_first(store, make_campaign, monkeypatch):
    from ldp_aggregator.service.rights import recorded

    async def full(_act):
        raise StoreError("disk full")

    monkeypatch.setattr(store, "begin_act", full)
    with pytest.raises(StoreError):
        async with recorded(store, "somebody", "create campaign"):
            await store.create_campaign(make_campaign())
    assert await store.campaigns() == []


async def test_what_was_done_stays_done_where_its_end_cannot_be_written_down(store, make_campaign, monkeypatch):
    from ldp_aggregator.service.rights import recorded

    async def full(_number, _outcome):
        raise StoreError("disk full")

    monkeypatch.setattr(store, "end_act", full)
    async with recorded(store, "somebody", "create campaign"):
        await store.create_campaign(make_campaign())
    assert len(await store.campaigns()) == 1
    assert [act.outcome for act in await store.acts()] == ["asked"]


async def test_an_upload_that_meets_a_deletion_is_refused_alone(
    postgres, tmp_path, make_campaign, make_submission, make_report
):
    from postgres import empty

    from ldp_aggregator.store import open_store

    await empty(postgres.address)
    first, second = [await open_store(tmp_path, postgres.address) for _ in range(2)]
    deleted, other = make_campaign(), make_campaign(title="Other")
    for campaign in (deleted, other):
        await first.create_campaign(campaign)
    await first.close_campaign(deleted.id)
    uploads = [[make_submission(one, [make_report(one, number)]) for one in (deleted, other)] for number in range(40)]
    answers, _ = await asyncio.gather(
        asyncio.gather(*(second.count(pair) for pair in uploads)), first.delete_campaign(deleted.id)
    )
    assert {late.refused for late, _ in answers} <= {"campaign-closed", "unknown-campaign"}
    assert [sound.counted for _, sound in answers] == [1] * 40
    assert (await second.count(uploads[0][:1]))[0].refused == "unknown-campaign"
    await first.close()
    await second.close()
