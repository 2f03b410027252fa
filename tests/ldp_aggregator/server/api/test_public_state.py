"""How a campaign stands, as everybody hears it."""

import asyncio
import json

import pytest


async def state_of(server, campaign_id):
    answer = await server.ask("GET", f"{server.public}/v1/campaigns/{campaign_id}/state")
    assert len(answer.content) <= 200
    if answer.status == 200:
        assert answer.headers["Content-Type"] == "application/json"
        assert answer.headers["Cache-Control"] == "public, max-age=60"
    return answer


@pytest.fixture
def at_once(monkeypatch):
    """Ask the store each time."""
    monkeypatch.setattr("ldp_aggregator.server.caches.KEPT_SECONDS", 0.0)


async def test_it_follows_the_campaign_until_it_is_deleted_and_uploads_hear_the_same(server, at_once):
    campaign = await server.publish(closes="2999-12-31T23:59:59Z")
    assert (await state_of(server, campaign.id)).json == {"state": "open", "ends": "2999-12-31"}
    assert (await server.upload(campaign, [1]))[0] == 200
    closed = (await server.store.close_campaign(campaign.id)).life.closed
    assert (await state_of(server, campaign.id)).json == {"state": "closing", "ends": f"{closed:%Y-%m-%d}"}
    assert await server.refused(campaign, [2]) == (409, "campaign-closing")
    assert (await server.upload(campaign, [1]))[0] == 200, "what was counted is a success"
    await server.store.reopen_campaign(campaign.id)
    assert (await state_of(server, campaign.id)).json["state"] == "open"
    await server.store.close_campaign(campaign.id)
    await server.store.seal_campaign(campaign.id, at_once=True)
    assert (await state_of(server, campaign.id)).json["state"] == "closed"
    assert await server.refused(campaign, [1]) == (409, "campaign-closed")
    await server.store.delete_campaign(campaign.id)
    assert (await state_of(server, campaign.id)).json == {"state": "deleted"}
    assert await server.refused(campaign, [1]) == (410, "campaign-deleted")
    document = await server.ask("GET", f"{server.public}/v1/campaigns/{campaign.id}")
    assert document.refused == (410, "campaign-deleted")


async def test_not_yet_full_unknown_and_without_an_end(server, at_once):
    later = await server.publish(opens="2999-01-01T00:00:00Z")
    assert (await state_of(server, later.id)).json == {"state": "not-yet"}
    full = await server.publish(title="full")
    assert (await state_of(server, full.id)).json == {"state": "open"}
    assert (await state_of(server, "A" * 43)).refused == (404, "unknown-campaign")
    assert (await state_of(server, "..")).status == 404


async def test_everybody_within_two_seconds_is_told_by_one_look_and_then_what_another_process_did_is_known(server):
    """Also of a document that is in memory, which is immutable for those who have it."""
    campaign = await server.publish()
    asked = []
    standing = server.store.standing

    async def counted(campaign_id):
        asked.append(campaign_id)
        return await standing(campaign_id)

    server.store.standing = counted
    address = f"{server.public}/v1/campaigns/{campaign.id}"
    answers = await asyncio.gather(*(state_of(server, campaign.id) for _ in range(50)))
    assert {answer.content for answer in answers} == {json.dumps({"state": "open"}).encode()}
    assert len(asked) == 1
    assert (await server.ask("GET", address)).status == 200
    await server.store.close_campaign(campaign.id)
    await server.store.delete_campaign(campaign.id)
    await asyncio.sleep(2)
    assert (await server.ask("GET", address)).refused == (410, "campaign-deleted")
    assert (await state_of(server, campaign.id)).json == {"state": "deleted"}
    assert len(asked) <= 4
