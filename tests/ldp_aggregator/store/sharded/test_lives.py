"""Databases opened as one store, and campaigns whose life reaches one database after the other."""

from __future__ import annotations

import pytest

from ldp_aggregator.store import StoreError, UnknownCampaignError, open_store
from ldp_aggregator.store.postgres.store import PostgresStore


async def test_databases_are_opened_as_the_one_store_that_they_are_or_not_at_all(addresses, tmp_path):
    store = await open_store(tmp_path, " ".join(addresses))
    assert (await store.slots()).counts() == {0: 86, 1: 85, 2: 85}
    await store.close()
    first, second, third = addresses
    for wrong, match in (
        ([first], "is in 3 databases; name all of them, not 1"),
        ([first, second], "is in 3 databases; name all of them, not 2"),
        ([second], "this is database 1 of a store of several"),
        ([second, first, third], "name its first database first"),
        ([first, second, second], "named twice"),
    ):
        with pytest.raises(StoreError, match=match):
            await open_store(tmp_path, " ".join(wrong))
    again = await open_store(tmp_path, " ".join((first, third, second)), read_only=True)
    assert sorted(again.others) == [1, 2]
    await again.close()


async def test_a_database_with_campaigns_of_its_own_is_made_part_of_no_other_store(addresses, tmp_path, make_campaign):
    lone = await open_store(tmp_path, addresses[1])
    await lone.create_campaign(make_campaign())
    await lone.close()
    with pytest.raises(StoreError, match="has campaigns of its own"):
        await open_store(tmp_path, " ".join(addresses[:2]))
    with pytest.raises(StoreError, match="'ldp-aggregator shards add'"):
        await open_store(tmp_path, " ".join((addresses[1], addresses[2])))
    lone = await open_store(tmp_path, addresses[1])
    assert len(await lone.campaigns()) == 1
    await lone.close()


LIVES = {
    "create": lambda store, campaign: store.create_campaign(campaign),
    "close": lambda store, campaign: store.close_campaign(campaign.id),
    "reopen": lambda store, campaign: store.reopen_campaign(campaign.id),
    "seal": lambda store, campaign: store.seal_campaign(campaign.id, at_once=True),
    "delete": lambda store, campaign: store.delete_campaign(campaign.id),
}
BEFORE = {"create": (), "close": ("create",), "reopen": ("create", "close"), "seal": ("create", "close")}
BEFORE["delete"] = BEFORE["seal"]


@pytest.mark.parametrize("change", LIVES)
@pytest.mark.parametrize("dead", [0, 1, 2])
async def test_a_change_that_does_not_reach_every_database_is_completed_by_the_same_again(
    store, make_campaign, make_submission, make_report, monkeypatch, change, dead
):
    """A database fails at the moment it is asked; what the others have done stays."""
    campaign = make_campaign(1024)
    for earlier in BEFORE[change]:
        await LIVES[earlier](store, campaign)
        if earlier == "create":
            await store.count([make_submission(campaign, [make_report(campaign, n) for n in range(100)])])
    name = f"{change}_campaign"
    whole = getattr(PostgresStore, name)

    async def failing(self, *given, **more):
        if self is store.shard(dead):
            raise StoreError("no answer")
        return await whole(self, *given, **more)

    monkeypatch.setattr(PostgresStore, name, failing)
    with pytest.raises(StoreError, match="no answer"):
        await LIVES[change](store, campaign)
    monkeypatch.setattr(PostgresStore, name, whole)
    if change in ("close", "seal") and dead:
        assert any("once more" in finding.problem for finding in await store.audit())
    await LIVES[change](store, campaign)
    assert await store.audit() == []
    if change == "delete":
        with pytest.raises(UnknownCampaignError):
            await store.state(campaign.id)
        with pytest.raises(StoreError, match="was deleted"):
            await store.create_campaign(campaign)
        return
    life = (await store.state(campaign.id)).life
    assert (life.closed is None, life.sealed is None) == {
        "create": (True, True),
        "close": (False, True),
        "reopen": (True, True),
        "seal": (False, False),
    }[change]
    outcome = (await store.count([make_submission(campaign, [make_report(campaign, n) for n in range(200)])]))[0]
    assert outcome.refused == ("campaign-closed" if life.closed else None)
    assert (await store.tally(campaign.id)).counts[0].max() == 1
