"""Tokens and what they open: by time, campaign and listener; uploads that need one; the trace of every act."""

import asyncio
import json
import logging
from dataclasses import replace
from datetime import timedelta
from unittest.mock import AsyncMock

import pytest
from cells import cell_campaign, publish
from drafts import draft, text

from ldp_aggregator.server import apps
from ldp_aggregator.server.access import UploadAccess
from ldp_aggregator.server.log import JsonFormatter
from ldp_aggregator.service.rights import make_token
from ldp_aggregator.service.signing import public_key, sign_directory
from ldp_aggregator.store import SqliteStore, StoreError
from ldp_aggregator.store.contract import utc_now

KEPT_SECONDS = 2.0


HOUR = timedelta(hours=1)
DRAFT = draft(text("f", "a", "b"), title="A third one")


async def add(server, name, scope, **changes):
    """A token that is called so."""
    server.tokens[name], token = make_token(name, scope, utc_now())
    await server.store.add_token(replace(token, **changes))


@pytest.fixture
async def campaigns(server):
    """Two open campaigns with 60 reports each."""
    both = [await server.publish(8), await server.publish(8, title="Other")]
    for campaign in both:
        await server.upload(campaign, [(number, 0) for number in range(60)])
    return both


async def test_a_limited_token_opens_what_is_about_its_campaigns_only_and_an_expired_one_nothing(server, campaigns):
    mine, other = campaigns
    await add(server, "late", "admin", expires=utc_now() - HOUR)
    await add(server, "early", "admin", expires=utc_now() + HOUR)
    assert (await server.ask("GET", "/admin/v1/campaigns", "late")).refused == (401, "wrong-token")
    assert (await server.ask("GET", "/admin/v1/campaigns", "early")).status == 200
    no_text = b"GET /admin/v1/campaigns HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \xff\r\n\r\n"
    assert (await (await server.dial(server.admin)).ask(no_text)).problem == (401, "wrong-token")
    await add(server, "limited", "admin", campaigns=(mine.id,))
    about = f"/admin/v1/campaigns/{mine.id}"
    assert (await server.ask("GET", f"{about}/estimates", "limited")).status == 200
    assert (await server.ask("POST", f"{about}/train?anyway=true", "limited")).status == 200
    for row in apps.ADMIN:
        if "{id}" in row.path or row.path in ("/admin/v1/campaigns", "/admin/v1/log"):
            answer = await server.ask(row.method, row.path.replace("{id}", other.id), "limited")
            assert answer.refused == (403, "wrong-campaign"), row.path
    await add(server, "collecting", "collector", campaigns=(mine.id,))
    for campaign, expected in ((mine, 200), (other, 403)):
        url = f"{server.public}/v1/campaigns/{campaign.id}/estimates"
        assert (await server.ask("GET", url, "collecting")).status == expected
    assert (await server.store.state(other.id)).life.closed is None


async def test_no_admin_token_opens_anything_on_the_public_listener(server):
    campaign = await server.publish(uploads_need="device")
    guarded = [row for row in apps.PUBLIC if row.scopes]
    assert guarded
    for row in guarded:
        url = server.public + row.path.replace("{id}", campaign.id)
        assert (await server.ask(row.method, url, "admin")).refused == (403, "wrong-scope"), row.path


async def test_a_revoked_token_ends_at_once_on_every_instance(serving, tmp_path):
    """Two servers on one store, each of which has just taken the token; another keeps its own."""
    path = tmp_path / "both.sqlite3"
    stores = [SqliteStore(path), SqliteStore(path)]
    campaign = await publish(stores[0], uploads_need="device")
    tokens = {}
    for name, scope in (("one", "admin"), ("two", "admin"), ("three", "collector"), ("four", "device")):
        tokens[name], stored = make_token(name, scope, utc_now())
        await stores[0].add_token(stored)
    async with serving(stores[0]) as first, serving(stores[1]) as second:

        async def statuses():
            found = []
            for server in (first, second):
                estimates = f"{server.public}/v1/campaigns/{campaign.id}/estimates"
                for name, url in (("one", "/admin/v1/campaigns"), ("two", "/admin/v1/campaigns"), ("three", estimates)):
                    answer = await server.ask("GET", url, headers={"Authorization": f"Bearer {tokens[name]}"})
                    found.append(answer.status)
                shown = {"Authorization": f"Bearer {tokens['four']}"}
                found.append((await server.upload(campaign, [len(found)], **shown))[0])
            return found

        assert await statuses() == [200] * 8
        for name in ("one", "three", "four"):
            await stores[1].revoke_token(name)
        assert await statuses() == [401, 200, 401, 401] * 2
    for store in stores:
        await store.close()


async def test_a_campaign_takes_uploads_with_a_token_of_the_scope_it_states(server):
    campaign = await publish(server.store, uploads_need="device")
    await add(server, "of another", "device", campaigns=("A" * 43,))
    await add(server, "late", "device", expires=utc_now() - HOUR)
    assert (await server.refused(campaign, [0])) == (401, "missing-token")
    refusals = {"collector": (403, "wrong-scope"), "of another": (403, "wrong-campaign"), "late": (401, "wrong-token")}
    for name, refused in refusals.items():
        assert (await server.refused(campaign, [0], **server.bearer(name))) == refused
    for number, name in enumerate(("device", "relay")):
        assert (await server.upload(campaign, [number], **server.bearer(name)))[0] == 200
    need = f"/admin/v1/campaigns/{campaign.id}/uploads"
    told = await server.ask("POST", need + "?scope=relay", "admin")
    assert (told.status, told.json["uploads_need_token"]) == (200, "relay")
    assert (await server.refused(campaign, [2], **server.bearer("device"))) == (403, "wrong-scope")
    assert (await server.ask("POST", need + "?scope=admin", "admin")).refused == (400, "malformed-query")
    assert (await server.ask("POST", need, "admin")).json["uploads_need_token"] is None
    assert (await server.upload(campaign, [2]))[0] == 200
    assert (await server.store.state(campaign.id)).reports == 3


async def test_what_a_campaign_asks_of_uploads_is_read_again_in_time_and_not_for_every_upload(server):
    campaign, now = await server.publish(), [0.0]
    server.store.terms = terms = AsyncMock(wraps=server.store.terms)
    access = UploadAccess(server.store, None, lambda: now[0])
    for _ in range(5):
        assert await access.uploads_need(campaign.id) is None
    assert terms.call_count == 1
    await server.store.set_uploads_need(campaign.id, "relay")
    now[0] += KEPT_SECONDS
    assert await access.uploads_need(campaign.id) == "relay"
    assert terms.call_count == 2


async def test_who_asks_while_it_is_read_waits_for_the_answer_and_is_let_in_by_none_that_is_missing(server):
    campaign, now, failing = await publish(server.store, uploads_need="device"), [0.0], [False]
    read, gate = server.store.terms, asyncio.Event()

    async def terms(campaign_id):
        await gate.wait()
        if failing[0]:
            raise StoreError("busy")
        return await read(campaign_id)

    server.store.terms = terms
    access = UploadAccess(server.store, None, lambda: now[0])
    asking = [asyncio.create_task(access.uploads_need(campaign.id)) for _ in range(3)]
    await asyncio.sleep(0)
    assert not access.is_known_open(campaign.id)
    assert not any(one.done() for one in asking)
    gate.set()
    assert await asyncio.gather(*asking) == ["device"] * 3
    await server.store.set_uploads_need(campaign.id, None)
    now[0] += KEPT_SECONDS
    assert await access.uploads_need(campaign.id) is None
    await server.store.set_uploads_need(campaign.id, "relay")
    now[0], failing[0] = now[0] + KEPT_SECONDS, True
    for _ in range(2):
        with pytest.raises(StoreError, match="busy"):
            await access.uploads_need(campaign.id)
        assert not access.is_known_open(campaign.id), "what was kept too long opens nothing where it cannot be read"
    failing[0] = False
    assert await access.uploads_need(campaign.id) == "relay"


@pytest.mark.parametrize("everywhere", [None, "relay"])
async def test_the_servers_demand_is_for_campaigns_that_ask_for_no_token_themselves(server, everywhere):
    asked = [(await publish(server.store, uploads_need=need, title=str(need))).id for need in (None, "device", "relay")]
    access = UploadAccess(server.store, everywhere)
    assert [await access.uploads_need(one) for one in asked] == [everywhere, "device", "relay"]
    assert [access.is_known_open(one) for one in asked] == [everywhere is None, False, False]


async def test_a_token_that_makes_nobody_a_relay_is_told_to_who_sends_too_much_and_hinders_no_single_answer(server):
    campaign = await server.publish()
    refusals = {"Bearer ldp_wrong": (401, "wrong-token"), server.bearer("node")["Authorization"]: (403, "wrong-scope")}
    for number, (shown, refused) in enumerate(refusals.items()):
        assert await server.refused(campaign, [10, 11], Authorization=shown) == refused
        assert await server.refused(campaign, bytes(9000), Authorization=shown) == refused
        assert (await server.upload(campaign, [number], Authorization=shown))[0] == 200
    assert (await server.store.state(campaign.id)).reports == 2


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
async def test_the_scheme_of_a_token_has_no_case_and_another_scheme_opens_nothing(server, scheme):
    for shown, status in ((scheme, 200), (f"x{scheme}", 401), ("Basic", 401)):
        headers = {"Authorization": f"{shown} {server.tokens['admin']}"}
        assert (await server.ask("GET", "/admin/v1/campaigns", headers=headers)).status == status


async def test_every_operation_that_changes_something_leaves_an_entry(server, campaigns):
    campaign_id, seed = campaigns[0].id, bytes(32)
    requests = {
        "/admin/v1/campaigns": ("", json.dumps(DRAFT)),
        "/admin/v1/campaigns/{id}/uploads": ("?scope=relay", None),
        "/admin/v1/campaigns/{id}/train": ("?anyway=true", None),
        "/admin/v1/campaigns/{id}/seal": ("?now=true", None),
        "/admin/v1/directories/{key}": ("", sign_directory(seed, 1, utc_now() + HOUR, {})),
    }
    changing = [row for row in apps.ADMIN if row.method != "GET"]
    for row in sorted(changing, key=lambda row: row.method == "DELETE"):
        before = len(await server.store.acts())
        query, body = requests.get(row.path, ("", None))
        path = row.path.replace("{id}", campaign_id).replace("{key}", public_key(seed)) + query
        headers = {"Content-Type": "application/json"} if row.bodies else {}
        answer = await server.ask(row.method, path, "admin", data=body, headers=headers)
        assert answer.status < 300, (row.path, answer)
        about = campaign_id if "{id}" in row.path else answer.json.get("id")
        [entry] = (await server.store.acts())[before:]
        assert (entry.act.actor, entry.outcome) == ("token a admin", "done"), row.path
        assert entry.act.campaign == about, row.path


async def test_the_log_tells_who_did_what_when_and_how_it_ended(server, campaigns):
    about = f"/admin/v1/campaigns/{campaigns[0].id}"
    for scope in ("collector", "relay", "node", "device"):  # What was refused for its token is no act.
        assert (await server.ask("POST", f"{about}/close", scope)).status == 403
    assert (await server.ask("POST", f"{about}/train", "admin")).refused == (409, "useless-model")
    assert (await server.ask("GET", f"{server.public}/v1/campaigns/{campaigns[0].id}/model")).status == 404
    await server.ask("DELETE", about, "admin")
    await server.ask("POST", f"{about}/close", "admin")
    log = await server.ask("GET", "/admin/v1/log", "admin")
    told = [(act["act"], act["outcome"]) for act in log.json["acts"]]
    assert told == [("publish model", "failed"), ("delete campaign", "failed"), ("close campaign", "done")]
    assert {(act["actor"], act["campaign"]) for act in log.json["acts"]} == {("token a admin", campaigns[0].id)}
    assert all(act["time"].endswith("Z") for act in log.json["acts"])
    assert len((await server.ask("GET", "/admin/v1/log?last=1", "admin")).json["acts"]) == 1
    assert server.tokens["admin"].encode() not in log.content


async def test_no_text_of_an_exception_is_logged_not_even_the_stores_or_a_librarys(server, caplog):
    campaign = await server.publish()

    async def quoting(*_arguments, **_more):
        raise StoreError("the database answered: invalid value 'secret' from 192.0.2.7") from OSError(28, "secret path")

    for name in ("count", "document", "state", "campaigns", "check"):
        setattr(server.store, name, quoting)
    await server.upload(campaign, [1])
    await server.ask("GET", f"{server.public}/v1/campaigns/{cell_campaign(title='x').id}")
    await server.ask("GET", "/admin/v1/campaigns", "admin")
    lines = [JsonFormatter().format(record) for record in caplog.records]
    assert any(json.loads(line)["reason"] == "StoreError store-unavailable from OSError ENOSPC" for line in lines)
    assert not any("secret" in line or "192.0.2.7" in line for line in lines)
    for name, said, arguments, told in (
        ("asyncio", "Task exception was never retrieved: ValueError('secret')", (), "a message of asyncio"),
        ("asyncpg.pool", "reset of %s failed", ("secret",), "reset of %s failed"),
        ("ldp_aggregator", "stopping", (), "stopping"),
    ):
        record = logging.LogRecord(name, logging.ERROR, "file", 1, said, arguments, None)
        assert json.loads(JsonFormatter().format(record))["event"] == told


@pytest.mark.parametrize("behind", [True, False])
async def test_behind_a_proxy_that_speaks_tls_the_cookie_is_secure(serving, behind):
    async with serving(admin_behind_tls=behind) as server:
        form = {"token": server.tokens["admin"]}
        answer = await server.ask("POST", "/login", data=form, allow_redirects=False)
        assert answer.status == 303
        assert ("Secure" in answer.headers["Set-Cookie"]) is behind


async def test_a_closing_is_taken_back_until_the_campaign_is_sealed_and_only_what_was_tried_is_written_down(server):
    campaign = await server.publish()

    async def ask(act="", method="POST", campaign_id=campaign.id):
        return await server.ask(method, f"/admin/v1/campaigns/{campaign_id}{act}", "admin")

    for act in ("/close", "/reopen", "/seal", "/train"):
        assert (await ask(act, campaign_id="A" * 43)).refused == (404, "unknown-campaign")
    assert (await server.upload(campaign, [0]))[0] == 200
    closed = await ask("/close")
    assert (closed.status, closed.json["status"], closed.json["reports"]) == (200, "closed", 1)
    assert (await server.refused(campaign, [1])) == (409, "campaign-closing")
    reopened = await ask("/reopen")
    assert (reopened.status, reopened.json["status"], reopened.json["closed"]) == (200, "open", None)
    assert (await server.upload(campaign, [1]))[0] == 200
    assert (await ask("/seal")).refused == (409, "campaign-not-closed")
    await ask("/close")
    for query in ("now=yes", "now=", "soon=true", "now=true&now=true"):
        assert (await ask(f"/seal?{query}")).refused == (400, "malformed-query"), query
    early = await ask("/seal?now=false")
    assert early.refused == (409, "too-early-to-seal")
    assert "can be sealed from" in early.json["detail"]
    sealed = await ask("/seal?now=true")
    assert (sealed.status, sealed.json["reports"]) == (200, 2)
    assert sealed.json["sealed"]
    assert (await ask("/seal")).json["sealed"] == sealed.json["sealed"], "sealing twice changes nothing"
    assert (await ask("/reopen")).refused == (409, "campaign-sealed")
    assert (await server.refused(campaign, [2])) == (409, "campaign-closed")
    assert await server.store.check() == []
    assert (await ask(method="DELETE")).status == 204
    acts = [f"{one.act.act.removesuffix(' campaign')} {one.outcome}" for one in await server.store.acts()]
    before = ["close done", "reopen done", "seal failed", "close done", "seal failed"]
    assert acts == [*before, "seal done", "seal done", "reopen failed", "delete done"]
