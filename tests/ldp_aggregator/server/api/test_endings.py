"""A campaign is closed, reopened, sealed and deleted over HTTP, on both stores; each act is in the log, as it ended."""

from __future__ import annotations

from datetime import timedelta

import pytest
from postgres import empty, postgres  # noqa: F401 - a fixture

from ldp_aggregator.service.rights import make_token
from ldp_aggregator.store import SqliteStore, open_store
from ldp_aggregator.store.clock import utc_now
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
    url = f"{server.admin}/admin/v1/campaigns/{path}"
    async with server.session.request(method, url, headers=server.bearer("admin")) as answer:
        return answer.status, await answer.json(content_type=None) if answer.status != 204 else None


async def test_a_closing_is_taken_back_until_the_campaign_is_sealed(kept, later, make_campaign, make_report):
    campaign = make_campaign()
    await kept.store.create_campaign(campaign)
    reports = [make_report(campaign, number) for number in range(3)]
    assert (await kept.upload(campaign, reports[:1]))[0] == 200
    assert (await ask(kept, f"{campaign.id}/close"))[1]["status"] == "closed"
    assert (await kept.upload(campaign, reports[1:2]))[1]["code"] == "campaign-closed"
    status, state = await ask(kept, f"{campaign.id}/reopen")
    assert (status, state["status"], state["closed"]) == (200, "open", None)
    assert (await kept.upload(campaign, reports[1:2]))[0] == 200
    status, problem = await ask(kept, f"{campaign.id}/seal")
    assert (status, problem["code"]) == (409, "campaign-not-closed")
    await ask(kept, f"{campaign.id}/close")
    status, problem = await ask(kept, f"{campaign.id}/seal")
    assert (status, problem["code"]) == (409, "too-early-to-seal")
    assert "can be sealed from" in problem["detail"]
    later[0] = GRACE + timedelta(seconds=1)
    status, state = await ask(kept, f"{campaign.id}/seal")
    assert (status, state["reports"]) == (200, 2)
    assert state["sealed"]
    status, problem = await ask(kept, f"{campaign.id}/reopen")
    assert (status, problem["code"]) == (409, "campaign-sealed")
    assert (await kept.upload(campaign, reports[2:]))[1]["code"] == "campaign-closed"
    assert await kept.store.check() == []
    assert (await ask(kept, campaign.id, "DELETE"))[0] == 204
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


async def test_a_campaign_is_sealed_at_once_where_that_is_asked_for(kept, make_campaign):
    campaign = make_campaign()
    await kept.store.create_campaign(campaign)
    await ask(kept, f"{campaign.id}/close")
    for query in ("now=yes", "now=", "soon=true", "now=true&now=true"):
        assert (await ask(kept, f"{campaign.id}/seal?{query}"))[1]["code"] == "malformed-query", query
    assert (await ask(kept, f"{campaign.id}/seal?now=false"))[1]["code"] == "too-early-to-seal"
    assert (await ask(kept, f"{campaign.id}/seal?now=true"))[0] == 200
    assert (await ask(kept, f"{campaign.id}/seal"))[0] == 200, "sealing twice changes nothing"


@pytest.mark.parametrize("act", ["close", "reopen", "seal"])
async def test_of_a_campaign_that_is_not_there_nothing_is_written_down(kept, act):
    assert (await ask(kept, f"{'A' * 43}/{act}"))[1]["code"] == "unknown-campaign"
    assert list(await kept.store.acts()) == []
