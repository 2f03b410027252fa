"""Tokens and what they open: by time, campaign and listener; uploads that need one; the trace of every act."""

from __future__ import annotations

import asyncio
import json
import logging
from dataclasses import replace
from datetime import timedelta

import pytest

from ldp_aggregator.server import app, desk
from ldp_aggregator.server.desk import UploadAccess
from ldp_aggregator.server.process import JsonFormatter
from ldp_aggregator.service.rights import make_token
from ldp_aggregator.service.signing import public_key, sign_directory
from ldp_aggregator.store import StoreError
from ldp_aggregator.store.clock import utc_now

HOUR = timedelta(hours=1)


async def add(server, name, scope, **changes):
    text, token = make_token(name, scope, utc_now())
    await server.store.add_token(replace(token, **changes))
    return {"Authorization": f"Bearer {text}"}


async def ask(server, method, url, headers, **more):
    async with server.session.request(method, url, headers=headers, **more) as answer:
        text = await answer.text()
        return answer.status, json.loads(text) if text else {}


def changing():
    """Every operation of the admin listener that changes something."""
    return [row for row in app.ADMIN if row.method != "GET"]


@pytest.fixture
async def campaigns(server, make_campaign, make_report):
    """Two open campaigns with a report each."""
    both = [make_campaign(8), make_campaign(8, title="Other")]
    for campaign in both:
        await server.store.create_campaign(campaign)
        await server.upload(campaign, [make_report(campaign, number, cell=0) for number in range(60)])
    return both


async def test_an_expired_token_opens_nothing(server):
    url = server.admin + "/admin/v1/campaigns"
    late = await add(server, "late", "admin", expires=utc_now() - HOUR)
    status, problem = await ask(server, "GET", url, late)
    assert (status, problem["code"]) == (401, "wrong-token")
    early = await add(server, "early", "admin", expires=utc_now() + HOUR)
    assert (await ask(server, "GET", url, early))[0] == 200


async def test_a_limited_token_opens_what_is_about_its_campaigns_only(server, campaigns):
    mine, other = campaigns
    headers = await add(server, "limited", "admin", campaigns=(mine.id,))
    base = server.admin + "/admin/v1"
    assert (await ask(server, "GET", f"{base}/campaigns/{mine.id}/estimates", headers))[0] == 200
    assert (await ask(server, "POST", f"{base}/campaigns/{mine.id}/train?anyway=true", headers))[0] == 200
    refused = [
        ("GET", f"/campaigns/{other.id}/estimates"),
        ("POST", f"/campaigns/{other.id}/train"),
        ("POST", f"/campaigns/{other.id}/close"),
        ("POST", f"/campaigns/{other.id}/reopen"),
        ("POST", f"/campaigns/{other.id}/seal"),
        ("POST", f"/campaigns/{other.id}/uploads"),
        ("DELETE", f"/campaigns/{other.id}"),
        ("POST", "/campaigns"),
        ("GET", "/campaigns"),
        ("GET", "/log"),
    ]
    for method, path in refused:
        status, problem = await ask(server, method, base + path, headers)
        assert (status, problem["code"]) == (403, "wrong-campaign"), path
    collector = await add(server, "limited collector", "collector", campaigns=(mine.id,))
    for campaign, expected in ((mine, 200), (other, 403)):
        url = f"{server.public}/v1/campaigns/{campaign.id}/estimates"
        assert (await ask(server, "GET", url, collector))[0] == expected
    assert (await server.store.state(other.id)).life.closed is None


@pytest.mark.parametrize("row", [row for row in app.PUBLIC if row.scopes], ids=lambda row: f"{row.method} {row.path}")
async def test_no_admin_token_opens_anything_on_the_public_listener(server, campaigns, row):
    campaign = campaigns[0]
    await server.store.set_uploads_need(campaign.id, "device")
    await asyncio.sleep(desk.KEPT_SECONDS)
    status, problem = await ask(
        server, row.method, server.public + row.path.replace("{id}", campaign.id), server.bearer("admin")
    )
    assert (status, problem["code"]) == (403, "wrong-scope")


async def test_a_campaign_takes_uploads_with_a_token_of_the_scope_it_states(server, make_campaign, make_report):
    campaign = make_campaign()
    await server.store.create_campaign(campaign, uploads_need="device")
    reports = [make_report(campaign, number) for number in range(4)]
    assert (await server.upload(campaign, reports[:1]))[1]["code"] == "missing-token"
    assert (await server.upload(campaign, reports[:1], **server.bearer("collector")))[1]["code"] == "wrong-scope"
    assert (await server.upload(campaign, reports[:1], **server.bearer("device")))[0] == 200
    assert (await server.upload(campaign, reports[1:2], **server.bearer("relay")))[0] == 200
    other = await add(server, "for another", "device", campaigns=("A" * 43,))
    assert (await server.upload(campaign, reports[2:3], **other))[1]["code"] == "wrong-campaign"
    late = await add(server, "late", "device", expires=utc_now() - HOUR)
    assert (await server.upload(campaign, reports[2:3], **late))[1]["code"] == "wrong-token"
    url = f"{server.admin}/admin/v1/campaigns/{campaign.id}/uploads"
    status, state = await ask(server, "POST", url + "?scope=relay", server.bearer("admin"))
    assert (status, state["uploads_need_token"]) == (200, "relay")
    assert (await server.upload(campaign, reports[2:3], **server.bearer("device")))[1]["code"] == "wrong-scope"
    assert (await ask(server, "POST", url + "?scope=admin", server.bearer("admin")))[1]["code"] == "malformed-query"
    assert (await ask(server, "POST", url, server.bearer("admin")))[1]["uploads_need_token"] is None
    assert (await server.upload(campaign, reports[2:3]))[0] == 200
    assert (await server.store.state(campaign.id)).reports == 3


async def test_what_a_campaign_asks_of_uploads_is_read_again_in_time_and_not_for_every_upload(server, make_campaign):
    campaign, now, reads = make_campaign(), [0.0], []
    await server.store.create_campaign(campaign)
    terms = server.store.terms

    class Counted:
        async def terms(self, campaign_id):
            reads.append(campaign_id)
            return await terms(campaign_id)

    access = UploadAccess(Counted(), None, lambda: now[0])
    for _ in range(5):
        assert await access.uploads_need(campaign.id) is None
    assert len(reads) == 1
    await server.store.set_uploads_need(campaign.id, "relay")
    now[0] += desk.KEPT_SECONDS
    assert await access.uploads_need(campaign.id) == "relay"
    assert len(reads) == 2


async def test_every_operation_that_changes_something_leaves_an_entry(server, campaigns):
    campaign_id, seed = campaigns[0].id, bytes(32)
    requests = {
        "/admin/v1/campaigns": ("", json.dumps(DRAFT)),
        "/admin/v1/campaigns/{id}/uploads": ("?scope=relay", None),
        "/admin/v1/campaigns/{id}/train": ("?anyway=true", None),
        "/admin/v1/campaigns/{id}/seal": ("?now=true", None),
        "/admin/v1/directories/{key}": ("", sign_directory(seed, 1, utc_now() + HOUR, {})),
    }
    for row in sorted(changing(), key=lambda row: row.method == "DELETE"):
        before = len(await server.store.acts())
        query, body = requests.get(row.path, ("", None))
        url = server.admin + row.path.replace("{id}", campaign_id).replace("{key}", public_key(seed)) + query
        headers = server.bearer("admin") | ({"Content-Type": "application/json"} if row.bodies else {})
        status, answered = await ask(server, row.method, url, headers, data=body)
        assert status < 300, (row.path, answered)
        [entry] = (await server.store.acts())[before:]
        assert (entry.act.actor, entry.outcome) == ("token a admin", "done"), row.path
        assert entry.act.campaign == (campaign_id if "{id}" in row.path else answered.get("id")), row.path


async def test_a_model_that_is_not_published_leaves_an_entry_of_a_failure(server, campaigns):
    url = f"{server.admin}/admin/v1/campaigns/{campaigns[0].id}/train"
    status, problem = await ask(server, "POST", url, server.bearer("admin"))
    assert (status, problem["code"]) == (409, "useless-model")
    entry = (await server.store.acts())[-1]
    assert (entry.act.act, entry.act.campaign, entry.outcome) == ("publish model", campaigns[0].id, "failed")
    assert (await ask(server, "GET", f"{server.public}/v1/campaigns/{campaigns[0].id}/model", {}))[0] == 404


DRAFT = {
    "version": 1,
    "title": "A third one",
    "label": {"name": "l", "classes": ["yes", "no"]},
    "features": [{"name": "f", "kind": "categorical", "values": ["a", "b"]}],
    "privacy": {"epsilon": 1.0},
}


async def test_the_log_tells_who_did_what_when_and_how_it_ended(server, campaigns):
    base = server.admin + "/admin/v1"
    await ask(server, "DELETE", f"{base}/campaigns/{campaigns[0].id}", server.bearer("admin"))
    await ask(server, "POST", f"{base}/campaigns/{campaigns[0].id}/close", server.bearer("admin"))
    status, log = await ask(server, "GET", f"{base}/log", server.bearer("admin"))
    assert status == 200
    told = [(act["actor"], act["act"], act["campaign"], act["outcome"]) for act in log["acts"]]
    assert told == [
        ("token a admin", "delete campaign", campaigns[0].id, "failed"),
        ("token a admin", "close campaign", campaigns[0].id, "done"),
    ]
    assert all(act["time"].endswith("Z") for act in log["acts"])
    assert len((await ask(server, "GET", f"{base}/log?last=1", server.bearer("admin")))[1]["acts"]) == 1
    assert server.tokens["admin"] not in json.dumps(log)


async def test_what_was_refused_for_its_token_is_no_act(server, campaigns):
    for scope in ("collector", "relay", "node", "device"):
        await ask(server, "POST", f"{server.admin}/admin/v1/campaigns/{campaigns[0].id}/close", server.bearer(scope))
    assert list(await server.store.acts()) == []


async def test_a_deleted_campaign_is_unknown_and_its_draft_is_refused(server):
    headers = server.bearer("admin") | {"Content-Type": "application/json"}
    url = server.admin + "/admin/v1/campaigns"
    _, created = await ask(server, "POST", url, headers, data=json.dumps(DRAFT))
    status, problem = await ask(server, "DELETE", f"{url}/{created['id']}", server.bearer("admin"))
    assert (status, problem["code"]) == (409, "campaign-not-closed")
    await ask(server, "POST", f"{url}/{created['id']}/close", server.bearer("admin"))
    assert (await ask(server, "DELETE", f"{url}/{created['id']}", server.bearer("admin")))[0] == 204
    assert (await ask(server, "DELETE", f"{url}/{created['id']}", server.bearer("admin")))[0] == 404
    status, problem = await ask(server, "POST", url, headers, data=json.dumps(DRAFT))
    assert (status, problem["code"]) == (409, "campaign-deleted")


async def test_no_text_of_an_exception_is_logged_not_even_the_stores(server, make_campaign, make_report, caplog):
    campaign = make_campaign()
    await server.store.create_campaign(campaign)

    async def quoting(*_arguments, **_more):
        raise StoreError("the database answered: invalid value 'secret' from 192.0.2.7") from OSError(28, "secret path")

    for name in ("count", "document", "state", "campaigns", "check"):
        setattr(server.store, name, quoting)
    await server.upload(campaign, [make_report(campaign, 1)])
    await ask(server, "GET", f"{server.public}/v1/campaigns/{make_campaign(title='x').id}", {})
    await ask(server, "GET", server.admin + "/admin/v1/campaigns", server.bearer("admin"))
    lines = [JsonFormatter().format(record) for record in caplog.records]
    assert any(json.loads(line)["reason"] == "StoreError from OSError ENOSPC" for line in lines)
    assert not any("secret" in line or "192.0.2.7" in line for line in lines)


def test_a_message_of_a_library_is_told_without_what_was_filled_in():
    formatter = JsonFormatter()

    def told(name, text, *arguments):
        record = logging.LogRecord(name, logging.ERROR, "file", 1, text, arguments, None)
        return json.loads(formatter.format(record))["event"]

    assert told("asyncio", "Task exception was never retrieved: ValueError('secret')") == "a message of asyncio"
    assert told("asyncpg.pool", "reset of %s failed", "secret") == "reset of %s failed"
    assert told("ldp_aggregator", "stopping") == "stopping"


@pytest.mark.parametrize("behind", [True, False])
async def test_behind_a_proxy_that_speaks_tls_the_cookie_is_secure(serving, behind):
    async with serving(admin_behind_tls=behind) as server:
        form = {"token": server.tokens["admin"]}
        async with server.session.post(server.admin + "/login", data=form, allow_redirects=False) as answer:
            assert answer.status == 303
            assert bool(answer.cookies["ldp_session"]["secure"]) is behind
