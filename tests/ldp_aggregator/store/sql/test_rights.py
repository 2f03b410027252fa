"""Tokens that end, speak for a node or are for some campaigns; the log of acts; deleted campaigns: in every store."""

import asyncio
import hashlib
from dataclasses import replace
from datetime import timedelta
from unittest.mock import AsyncMock

import pytest
from cells import publish, submission

from ldp_aggregator.service.rights import recorded
from ldp_aggregator.store import Act, StoredToken, StoreError

DAY = timedelta(days=1)


def make_token(name, clock, **more):
    return StoredToken(name, "relay", hashlib.sha256(name.encode()).digest(), clock(), **more)


async def test_a_token_comes_back_with_its_end_and_its_campaigns_and_is_in_use_until_it_expires(store, clock):
    until = make_token("until", clock, expires=clock() + DAY)
    kept = [make_token("always", clock), make_token("some", clock, campaigns=("A" * 43, "B" * 43)), until]
    for token in kept:
        await store.add_token(token)
    assert sorted(await store.tokens(), key=lambda token: token.name) == sorted(kept, key=lambda token: token.name)
    assert [await store.token(token.digest) for token in kept] == kept
    assert until.is_in_use(clock())
    assert until.is_in_use(clock() + DAY - timedelta(microseconds=1))
    assert not until.is_in_use(clock() + DAY)
    assert not replace(until, revoked=clock()).is_in_use(clock())


async def test_a_rotation_with_overlap_leaves_both_in_use_until_it_ends(store, clock):
    await store.add_token(make_token("old", clock, campaigns=("A" * 43,)))
    assert await store.rotate_token("old", make_token("new", clock), until=clock() + DAY)
    old, new = [next(t for t in await store.tokens() if t.name == name) for name in ("old", "new")]
    assert (old.revoked, old.expires, new.expires) == (None, clock() + DAY, None)
    assert (old.node, new.node) == ("old", "old"), "both speak for one node"
    await store.rotate_token("old", make_token("newer", clock), until=clock() + 30 * DAY)
    assert (await store.token(old.digest)).expires == clock() + DAY, "an overlap makes no token last longer"
    clock.step(86400)
    assert await store.rotate_token("old", make_token("third", clock)) is False, "what has expired is in use no more"


async def test_a_rotation_whose_answer_was_lost_is_done_once_and_every_later_token_speaks_for_the_first(store, clock):
    await store.add_token(make_token("first", clock))
    for name, old in (("second", "first"), ("third", "second")):
        new = make_token(name, clock)
        for _ in range(2):
            assert await store.rotate_token(old, new)
    tokens = {token.name: token for token in await store.tokens()}
    assert [tokens[name].node for name in ("first", "second", "third")] == ["first"] * 3
    assert [tokens[name].is_in_use(clock()) for name in ("first", "second", "third")] == [False, False, True]
    with pytest.raises(StoreError, match="exists already"):
        await store.rotate_token("third", replace(make_token("first", clock), digest=b"x" * 32))
    assert (await store.token(tokens["third"].digest)).is_in_use(clock()), "what fails changes nothing"
    assert await store.rotate_token("nobody", make_token("fourth", clock)) is False


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


async def test_what_uploads_need_is_kept_with_the_campaign(store):
    campaign = await publish(store, uploads_need="device")
    await publish(store, title="Other")
    assert [state.uploads_need for state in await store.campaigns()] == ["device", None]
    for need in ("relay", None):
        assert (await store.set_uploads_need(campaign.id, need)).uploads_need == need


@pytest.mark.parametrize(("first", "second", "merged"), [(None, "device", "device"), ("device", "relay", "relay")])
async def test_a_merged_campaign_asks_of_uploads_what_either_did(combine, opened, first, second, merged):
    for name, need in (("a", first), ("b", second)):
        campaign = await publish(await opened(name), uploads_need=need)
    combine("a", "b", "c")
    assert (await (await opened("c")).state(campaign.id)).uploads_need == merged


async def test_nothing_is_done_that_cannot_be_written_down_first(store, monkeypatch):
    full = AsyncMock(side_effect=StoreError("disk full"))
    with monkeypatch.context() as patch:
        patch.setattr(store, "begin_act", full)
        with pytest.raises(StoreError):
            async with recorded(store, "somebody", "create campaign"):
                await publish(store)
    assert await store.campaigns() == []
    with monkeypatch.context() as patch:
        patch.setattr(store, "end_act", full)
        async with recorded(store, "somebody", "create campaign"):
            await publish(store)
    assert len(await store.campaigns()) == 1, "what was done stays done where its end cannot be written down"
    assert [act.outcome for act in await store.acts()] == ["asked"]


@pytest.mark.parametrize("error", [ValueError, asyncio.CancelledError, KeyboardInterrupt])
async def test_whatever_ends_an_act_before_it_is_done_it_has_failed(store, error):
    with pytest.raises(error):
        async with recorded(store, "somebody", "create campaign"):
            raise error
    assert [act.outcome for act in await store.acts()] == ["failed"]


async def test_an_upload_that_meets_a_deletion_is_refused_alone(instances):
    first, second = instances
    deleted, other = [await publish(first, title=title) for title in ("deleted", "other")]
    await first.close_campaign(deleted.id)
    uploads = [[submission(one, [number]) for one in (deleted, other)] for number in range(40)]
    answers, _ = await asyncio.gather(
        asyncio.gather(*(second.count(pair) for pair in uploads)), first.delete_campaign(deleted.id)
    )
    assert {late.refused for late, _ in answers} <= {"campaign-closing", "campaign-closed", "campaign-deleted"}
    assert [sound.counted for _, sound in answers] == [1] * 40
    assert (await second.count(uploads[0][:1]))[0].refused == "campaign-deleted"
