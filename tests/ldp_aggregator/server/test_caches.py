"""Documents and campaigns in memory: bytes for who reads, a parse for who counts, as many as fit."""

import asyncio
import gc
import hashlib
import threading
from unittest.mock import AsyncMock

import pytest
from cells import cell_campaign

from ldp_aggregator.server import caches
from ldp_aggregator.server.caches import CampaignCache, SizedCache
from ldp_aggregator.store import StoreError
from ldp_aggregator.store.contract import Standing, unknown_campaign
from ldp_protocols import Campaign


class CountedDocuments:
    """A store of documents that counts how often each is read."""

    def __init__(self, campaigns):
        self.documents = {campaign.id: campaign.document for campaign in campaigns}
        self.reads = []

    async def document(self, campaign_id):
        self.reads.append(campaign_id)
        await asyncio.sleep(0)
        if campaign_id not in self.documents:
            raise unknown_campaign(campaign_id)
        return self.documents[campaign_id]

    async def standing(self, campaign_id):
        if campaign_id not in self.documents:
            raise unknown_campaign(campaign_id)
        return Standing("open")


@pytest.fixture
def parses(monkeypatch):
    """Note the campaigns that were parsed, and in which thread."""
    seen = []

    class Watched(Campaign):
        @classmethod
        def parse(cls, document, campaign_id=None):
            seen.append((campaign_id, threading.current_thread()))
            return Campaign.parse(document, campaign_id)

    monkeypatch.setattr(caches, "Campaign", Watched)
    return seen


async def test_two_hundred_campaigns_in_turn_are_served_unparsed_and_read_once(server, parses):
    campaigns = [await server.publish(title=f"number {number}") for number in range(200)]
    server.store.document = read = AsyncMock(wraps=server.store.document)
    for _ in range(3):
        for campaign in campaigns:
            answer = await server.ask("GET", f"{server.public}/v1/campaigns/{campaign.id}")
            assert (answer.content, answer.headers["ETag"]) == (campaign.document, f'"{campaign.id}"')
    assert parses == []
    assert sorted(call.args[0] for call in read.call_args_list) == sorted(campaign.id for campaign in campaigns)


async def test_who_waits_for_a_campaign_waits_for_one_parse_beside_the_loop(parses):
    campaign = cell_campaign()
    cache = CampaignCache(CountedDocuments([campaign]))
    leaving = asyncio.create_task(cache.get(campaign.id))
    waiting = [asyncio.create_task(cache.get(campaign.id)) for _ in range(20)]
    await asyncio.sleep(0)
    leaving.cancel()
    found = await asyncio.gather(*waiting)
    assert all(one is found[0] for one in found)
    assert await cache.get(campaign.id) is found[0]
    [(parsed, thread)] = parses
    assert parsed == campaign.id
    assert thread is not threading.current_thread()


async def test_what_does_not_fit_goes_and_the_last_one_asked_for_stays(parses):
    campaigns = [cell_campaign(title=f"number {number}") for number in range(4)]
    size = len(campaigns[0].document)
    store = CountedDocuments(campaigns)
    cache = CampaignCache(store, document_bytes=3 * size, parsed_bytes=2 * size)
    for number in (0, 1, 0, 2, 0, 1):
        assert (await cache.get(campaigns[number].id)).id == campaigns[number].id
    assert [parsed for parsed, _ in parses] == [campaigns[number].id for number in (0, 1, 2, 1)]
    assert store.reads == [campaigns[number].id for number in (0, 1, 2)]
    await cache.document(campaigns[3].id)
    await cache.document(campaigns[1].id)
    assert len(store.reads) == 4
    values = SizedCache(10)
    values.put("a", 1, 4)
    values.put("b", 2, 100)
    assert (values.get("a"), values.get("b")) == (None, 2), "a value larger than the cache is kept alone"
    values.put("b", 3, 5)
    values.put("c", 4, 5)
    assert (values.get("b"), values.get("c")) == (3, 4)


async def test_a_campaign_that_is_not_there_is_asked_for_again():
    campaign = cell_campaign()
    store = CountedDocuments([])
    cache = CampaignCache(store)
    for _ in range(2):
        with pytest.raises(StoreError, match="no campaign has the id"):
            await cache.get(campaign.id)
    store.documents[campaign.id] = campaign.document
    assert (await cache.get(campaign.id)).id == campaign.id
    with pytest.raises(StoreError, match="no campaign has the id"):
        await cache.document("../../etc/passwd")


async def test_a_store_that_could_not_say_how_a_campaign_stands_is_asked_again_at_once():
    campaign = cell_campaign()
    store = CountedDocuments([campaign])
    store.standing = AsyncMock(side_effect=[StoreError("busy"), Standing("open"), Standing("closed")])
    cache = CampaignCache(store)
    with pytest.raises(StoreError, match="busy"):
        await cache.standing(campaign.id)
    assert [await cache.standing(campaign.id) for _ in range(3)] == [b'{"state": "open"}'] * 3
    assert store.standing.call_count == 2


async def test_what_another_instance_deleted_is_served_no_more_and_where_nobody_can_say_what_is_kept_is(monkeypatch):
    monkeypatch.setattr(caches, "KEPT_SECONDS", 0.0)
    campaign, other = cell_campaign(), cell_campaign(title="Other")
    store = CountedDocuments([campaign, other])
    cache = CampaignCache(store)
    for one in (campaign, other):
        assert (await cache.get(one.id)).id == one.id
    store.standing = AsyncMock(side_effect=StoreError("busy"))
    assert await cache.document(campaign.id) == campaign.document
    assert cache.cached(campaign.id) is not None
    del store.documents[campaign.id]
    store.standing = AsyncMock(side_effect=lambda one: Standing("open" if one in store.documents else "deleted"))
    for ask in (cache.document, cache.get):
        with pytest.raises(StoreError, match="no campaign has the id"):
            await ask(campaign.id)
    assert cache.cached(campaign.id) is None
    assert cache.cached(other.id) is await cache.get(other.id)


async def test_who_asks_for_no_campaign_and_hangs_up_leaves_nothing_in_the_log():
    told = []
    asyncio.get_running_loop().set_exception_handler(lambda _, what: told.append(what))
    leaving = asyncio.create_task(CampaignCache(CountedDocuments([])).get(cell_campaign().id))
    await asyncio.sleep(0)
    leaving.cancel()
    for _ in range(10):
        await asyncio.sleep(0)
    del leaving
    gc.collect()
    assert told == []


async def test_a_damaged_document_is_not_served_for_caches_to_keep(server):
    campaign, other = await server.publish(), await server.publish(title="Other")
    await server.store._write(
        lambda db: db.execute("UPDATE campaigns SET document = $1 WHERE id = $2", other.document, campaign.id)
    )
    for one, status in ((campaign, 503), (other, 200)):
        assert (await server.ask("GET", f"{server.public}/v1/campaigns/{one.id}")).status == status


async def test_a_damaged_model_is_not_served_and_a_sound_one_has_the_hash_that_it_was_stored_with(server):
    campaign = await server.publish()
    model = await server.store.publish_model(campaign.id, '{"a": "model"}')
    url = f"{server.public}/v1/campaigns/{campaign.id}/model"
    found = await server.ask("GET", url)
    assert (found.status, found.headers["ETag"]) == (200, f'"{model.tag}"')
    assert model.tag == hashlib.sha256(model.document.encode()).hexdigest()
    await server.store._write(lambda db: db.execute("UPDATE models SET document = replace(document, 'm', 'n')"))
    assert (await server.ask("GET", url)).status == 503
