"""A campaign is closed, reopened, sealed and deleted over HTTP, on both stores; each act is in the log, as it ended."""

from datetime import timedelta

import pytest
from postgres import empty, postgres  # noqa: F401 - a fixture

from ldp_aggregator.service.rights import make_token
from ldp_aggregator.store import SqliteStore, open_store
from ldp_aggregator.store.contract import utc_now
from ldp_aggregator.store.decisions import GRACE


@pytest.fixture
def later():
    """Set the store's clock ahead."""
    return [timedelta()]


@pytest.fixture(params=["sqlite", "postgres"])
async def kept(request, tmp_path, serving, later):
    """A server on this store, and a token of an administrator."""

    def clock():
        return utc_now() + later[0]

    if request.param == "sqlite":
        store = SqliteStore(tmp_path / "store.sqlite3", clock=clock)
    else:
        address = request.getfixturevalue("postgres").address
        await empty(address)
        store = await open_store(tmp_path, address, clock=clock)
    text, token = make_token("an operator", "admin", utc_now())
    await store.add_token(token)
    async with serving(store) as server:
        server.tokens["admin"] = text
        yield server
    await store.close()


async def ask(server, path, method="POST"):
    return await server.ask(method, f"/admin/v1/campaigns/{path}", "admin")


async def test_a_closing_is_taken_back_until_the_campaign_is_sealed(kept, later):
    campaign = await kept.publish()
    assert (await kept.upload(campaign, [0]))[0] == 200
    closed = await ask(kept, f"{campaign.id}/close")
    assert (closed.status, closed.json["status"], closed.json["reports"]) == (200, "closed", 1)
    assert (await kept.refused(campaign, [1])) == (409, "campaign-closed")
    reopened = await ask(kept, f"{campaign.id}/reopen")
    assert (reopened.status, reopened.json["status"], reopened.json["closed"]) == (200, "open", None)
    assert (await kept.upload(campaign, [1]))[0] == 200
    assert (await ask(kept, f"{campaign.id}/seal")).refused == (409, "campaign-not-closed")
    await ask(kept, f"{campaign.id}/close")
    early = await ask(kept, f"{campaign.id}/seal")
    assert early.refused == (409, "too-early-to-seal")
    assert "can be sealed from" in early.json["detail"]
    later[0] = GRACE + timedelta(seconds=1)
    sealed = await ask(kept, f"{campaign.id}/seal")
    assert (sealed.status, sealed.json["reports"]) == (200, 2)
    assert sealed.json["sealed"]
    assert (await ask(kept, f"{campaign.id}/reopen")).refused == (409, "campaign-sealed")
    assert (await kept.refused(campaign, [2])) == (409, "campaign-closed")
    assert await kept.store.check() == []
    assert (await ask(kept, campaign.id, "DELETE")).status == 204
    acts = [(one.act.act, one.act.actor, one.outcome) for one in await kept.store.acts(campaign_id=campaign.id)]
    assert acts == [
        (f"{act} campaign", "token an operator", outcome)
        for act, outcome in (
            ("close", "done"),
            ("reopen", "done"),
            ("seal", "failed"),
            ("close", "done"),
            ("seal", "failed"),
            ("seal", "done"),
            ("reopen", "failed"),
            ("delete", "done"),
        )
    ]


async def test_a_campaign_is_sealed_at_once_where_that_is_asked_for_and_of_none_nothing_is_written_down(kept):
    for act in ("close", "reopen", "seal", "train"):
        assert (await ask(kept, f"{'A' * 43}/{act}")).refused == (404, "unknown-campaign")
    assert list(await kept.store.acts()) == []
    campaign = await kept.publish()
    await ask(kept, f"{campaign.id}/close")
    for query in ("now=yes", "now=", "soon=true", "now=true&now=true"):
        assert (await ask(kept, f"{campaign.id}/seal?{query}")).refused == (400, "malformed-query"), query
    assert (await ask(kept, f"{campaign.id}/seal?now=false")).refused == (409, "too-early-to-seal")
    for query in ("?now=true", ""):
        assert (await ask(kept, f"{campaign.id}/seal{query}")).status == 200, "sealing twice changes nothing"
