"""Campaigns that need not be kept are deleted in time, by the server, and that is written down."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from cells import publish

from ldp_aggregator.server.keeper import delete_once, keep
from ldp_aggregator.server.metrics import Metrics
from ldp_aggregator.store import SqliteStore, StoreError, UnknownCampaignError

KEPT = timedelta(days=30)
DAY = 86400


@pytest.fixture
async def store(tmp_path, clock):
    opened = SqliteStore(tmp_path / "store.sqlite3", clock=clock)
    yield opened
    await opened.close()


async def test_a_campaign_is_deleted_so_long_after_it_was_closed_and_an_open_one_never(store, clock):
    closed, opened = await publish(store), await publish(store, title="open")
    clock.step(365 * DAY)
    await store.close_campaign(closed.id)
    clock.step(30 * DAY - 1)
    await delete_once(store, Metrics(), clock, KEPT)
    assert len(await store.campaigns()) == 2
    clock.step(1)
    await delete_once(store, Metrics(), clock, KEPT)
    assert [state.id for state in await store.campaigns()] == [opened.id]
    [entry] = await store.acts()
    assert (entry.act.actor, entry.act.act, entry.act.campaign) == ("server", "delete campaign", closed.id)
    assert (entry.act.detail, entry.outcome) == ("closed for 30 days", "done")
    clock.step(365 * DAY)
    await delete_once(store, Metrics(), clock, KEPT)
    assert len(await store.campaigns()) == 1


async def test_what_is_not_told_how_long_keeps_everything(store, clock):
    campaign = await publish(store)
    await store.close_campaign(campaign.id)
    clock.step(3650 * DAY)
    keeper = asyncio.create_task(keep(store, Metrics(), clock))
    await asyncio.sleep(0.1)
    keeper.cancel()
    assert len(await store.campaigns()) == 1


async def test_a_campaign_that_cannot_be_deleted_keeps_no_other(store, clock, caplog):
    campaigns = [await publish(store, title=title) for title in ("first", "second", "third")]
    for campaign in campaigns:
        await store.close_campaign(campaign.id)
    works = store.delete_campaign

    async def delete(campaign_id):
        if campaign_id == campaigns[0].id:
            raise StoreError("secret text of a database")
        if campaign_id == campaigns[1].id:
            raise UnknownCampaignError(campaign_id)
        await works(campaign_id)

    store.delete_campaign = delete
    clock.step(30 * DAY)
    await delete_once(store, Metrics(), clock, KEPT)
    assert [state.id for state in await store.campaigns()] == [campaign.id for campaign in campaigns[:2]]
    told = [
        (record.message, record.campaign, record.reason) for record in caplog.records if record.levelname == "ERROR"
    ]
    assert told == [("campaign not deleted", campaigns[0].id, "StoreError")]
