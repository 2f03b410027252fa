"""Every page, with nothing in the store, with something, and without a session."""

from __future__ import annotations

import json

import aiohttp
import pytest

from ldp_aggregator.dashboard.routes import ADMIN
from ldp_aggregator.service.rights import make_token
from ldp_aggregator.store.clock import utc_now

PAGES = ("/", "/campaigns/new", "/federation", "/health", "/tokens")


@pytest.mark.parametrize("path", PAGES)
async def test_a_page_stands_with_an_empty_store(dashboard, path):
    status, text = await dashboard.get(path)
    assert status == 200
    assert text.startswith("<!doctype html>")


async def test_a_campaigns_page_shows_every_feature_with_a_table_of_its_numbers(dashboard):
    campaign = await dashboard.publish(people=60)
    status, text = await dashboard.get(f"/campaigns/{campaign.id}")
    assert status == 200
    assert text.count('<svg class="plot"') == text.count('aria-label="Table of ') + text.count("<polyline")
    for feature in ("age", "income", "hours"):
        assert f'aria-label="Table of {feature}"' in text


async def test_a_campaign_without_reports_says_so(dashboard):
    campaign = await dashboard.publish()
    status, text = await dashboard.get(f"/campaigns/{campaign.id}")
    assert status == 200
    assert "No device has answered this yet." in text
    assert "No model yet." in text


async def test_training_publishes_a_version_that_can_be_downloaded(dashboard):
    campaign = await dashboard.publish(people=4)
    status, text, _ = await dashboard.send(f"/campaigns/{campaign.id}/train", {})
    assert status == 409
    assert "do not show that the model is better" in text
    status, _, onward = await dashboard.send(f"/campaigns/{campaign.id}/train", {"anyway": "yes"})
    assert (status, onward) == (303, f"/campaigns/{campaign.id}?trained=1#models")
    status, text = await dashboard.get(f"/campaigns/{campaign.id}/model?version=1")
    assert status == 200
    assert text == (await dashboard.store.model(campaign.id)).document
    assert "no evaluation round" in (await dashboard.get(f"/campaigns/{campaign.id}"))[1]


async def test_training_without_reports_says_what_is_missing(dashboard):
    campaign = await dashboard.publish()
    status, text, _ = await dashboard.send(f"/campaigns/{campaign.id}/train", {})
    assert status == 409
    assert "no report has been counted yet" in text


async def test_lies_widen_what_an_estimate_can_be(dashboard):
    campaign = await dashboard.publish(people=60)
    _, honest = await dashboard.get(f"/campaigns/{campaign.id}")
    _, lied = await dashboard.get(f"/campaigns/{campaign.id}?liars=3")
    assert 'class="reach"' not in honest
    assert 'class="reach"' in lied


@pytest.mark.parametrize("query", ["?liars=-1", "?liars=x", "?liars=99999999999999999999", "?batch=0", "?liars=%00"])
async def test_nonsense_in_an_address_breaks_no_page(dashboard, query):
    campaign = await dashboard.publish(people=10)
    assert (await dashboard.get(f"/campaigns/{campaign.id}{query}"))[0] == 200


async def test_the_stream_is_one_event_with_the_numbers_of_now(dashboard):
    campaign = await dashboard.publish(people=7)
    status, text = await dashboard.get(f"/campaigns/{campaign.id}/live")
    assert status == 200
    retry, data = text.strip().split("\n")
    assert retry == "retry: 2000"
    now = json.loads(data.removeprefix("data: "))
    assert now["reports"] == {campaign.id: 7}
    assert sum(now["questions"]) == 7


async def test_what_a_draft_says_is_escaped(dashboard):
    hurt = '<script>alert("x")</script>'
    label = {"name": hurt, "classes": [hurt, "no"]}
    feature = {"name": hurt + "2", "kind": "categorical", "values": [hurt, "</svg>"]}
    campaign = await dashboard.publish(title=hurt, purpose=hurt, label=label, features=[feature])
    await dashboard.answer(campaign, 20)
    pages = [await dashboard.get("/"), await dashboard.get(f"/campaigns/{campaign.id}")]
    async with dashboard.session.get(f"{dashboard.public}/c/{campaign.id}") as answer:
        pages.append((answer.status, await answer.text()))
    for status, text in pages:
        assert status == 200
        assert "<script>" not in text
        assert "&lt;script&gt;" in text


async def test_closing_takes_a_tick(dashboard):
    campaign = await dashboard.publish()
    assert (await dashboard.send(f"/campaigns/{campaign.id}/close", {}))[0] == 400
    assert (await dashboard.store.state(campaign.id)).status(utc_now()) == "open"
    assert (await dashboard.send(f"/campaigns/{campaign.id}/close", {"sure": "yes"}))[0] == 303
    assert (await dashboard.store.state(campaign.id)).status(utc_now()) == "closed"


@pytest.mark.parametrize(
    "path", ["/campaigns/" + "A" * 43, "/campaigns/x", "/assets/nothing.js", "/assets/..%2fpages.py"]
)
async def test_what_is_not_there_is_a_page_of_its_own(dashboard, path):
    status, text = await dashboard.get(path)
    assert status == 404
    assert "<h1>" in text


@pytest.mark.parametrize(
    "route", [route for route in ADMIN if not route.is_open], ids=lambda route: f"{route.method} {route.path}"
)
async def test_no_page_of_an_operator_opens_without_a_session(dashboard, route):
    campaign = await dashboard.publish(people=3)
    path = route.path.replace("{id}", campaign.id)
    async with (
        aiohttp.ClientSession() as nobody,
        nobody.request(route.method, dashboard.admin + path, data={}, allow_redirects=False) as answer,
    ):
        assert answer.status in (303, 401)
        assert answer.headers.get("Location", "/login").startswith("/login")
        assert campaign.title not in await answer.text()
    assert (await dashboard.store.state(campaign.id)).status(utc_now()) == "open"


async def test_a_session_ends_when_its_token_is_revoked(dashboard):
    assert (await dashboard.get("/"))[0] == 200
    await dashboard.store.revoke_token("a admin")
    assert (await dashboard.get("/"))[0] == 303


@pytest.mark.parametrize("scope", ["collector", "node", "relay"])
async def test_tokens_of_other_scopes_open_no_session(dashboard, scope):
    async with (
        aiohttp.ClientSession() as other,
        other.post(f"{dashboard.admin}/login", data={"token": dashboard.tokens[scope]}) as answer,
    ):
        assert answer.status == 401
        assert scope in await answer.text()
        assert not answer.cookies


async def test_the_cookie_is_for_this_server_alone_and_holds_no_token(dashboard):
    async with (
        aiohttp.ClientSession() as other,
        other.post(
            f"{dashboard.admin}/login", data={"token": dashboard.tokens["admin"]}, allow_redirects=False
        ) as answer,
    ):
        cookie = answer.cookies["ldp_session"]
    assert (cookie["httponly"], cookie["samesite"], cookie["path"]) == (True, "Strict", "/")
    assert dashboard.tokens["admin"] not in cookie.value


async def test_a_form_without_its_token_changes_nothing(dashboard):
    status, _, _ = await dashboard.send("/tokens", {"form_token": "0" * 64, "name": "n", "scope": "admin"})
    assert status == 403
    assert "n" not in [token.name for token in await dashboard.store.tokens()]


@pytest.mark.parametrize(
    "header",
    [{"Origin": "http://elsewhere.example"}, {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}],
)
async def test_a_form_of_another_site_changes_nothing(dashboard, header):
    status, _, _ = await dashboard.send("/tokens", {"name": "n", "scope": "admin"}, headers=header)
    assert status == 403
    assert "n" not in [token.name for token in await dashboard.store.tokens()]


@pytest.mark.parametrize(
    "onward", ["//elsewhere.example", "https://elsewhere.example", "/\\elsewhere.example", "\t//x"]
)
async def test_signing_in_leads_nowhere_else(dashboard, onward):
    async with (
        aiohttp.ClientSession() as other,
        other.post(
            f"{dashboard.admin}/login", data={"token": dashboard.tokens["admin"], "next": onward}, allow_redirects=False
        ) as answer,
    ):
        assert answer.headers["Location"] == "/"


async def test_a_tokens_text_is_on_one_page_once(dashboard):
    status, text, _ = await dashboard.send("/tokens", {"name": "a new one", "scope": "collector"})
    assert status == 200
    made = text.split('id="made-token">')[1].split("<")[0]
    assert made.startswith("ldp_")
    assert made not in (await dashboard.get("/tokens"))[1]
    assert (await dashboard.send("/tokens", {"name": "a new one", "scope": "collector"}))[0] == 409
    assert (await dashboard.send("/tokens/revoke", {"name": "a new one", "sure": "yes"}))[0] == 303
    assert (await dashboard.send("/tokens/revoke", {"name": "a new one", "sure": "yes"}))[0] == 404


async def test_the_list_has_pages(dashboard):
    for number in range(14):
        await dashboard.publish(title=f"Campaign {number}.")
    _, first = await dashboard.get("/")
    _, second = await dashboard.get("/?page=2")
    assert "Campaign 13." in first
    assert "Campaign 0." not in first
    assert "Campaign 0." in second
    assert (await dashboard.get("/?page=3"))[0] == 404


async def test_every_page_forbids_what_is_not_this_servers(dashboard):
    async with dashboard.session.get(f"{dashboard.admin}/") as answer:
        policy, text = answer.headers["Content-Security-Policy"], await answer.text()
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert " style=" not in text
    assert "<style" not in text
    assert "onclick" not in text


async def test_a_token_is_needed_of_each_session_anew(dashboard):
    text, token = make_token("second", "admin", utc_now())
    await dashboard.store.add_token(token)
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as other:
        async with other.post(f"{dashboard.admin}/login", data={"token": text}) as answer:
            assert answer.status == 200
        await dashboard.store.revoke_token("second")
        async with other.get(f"{dashboard.admin}/", allow_redirects=False) as answer:
            assert answer.status == 303
    assert (await dashboard.get("/"))[0] == 200


async def test_what_an_operator_changes_here_is_counted_like_what_the_api_changes(dashboard):
    campaign = await dashboard.publish(people=5)
    await dashboard.send(f"/campaigns/{campaign.id}/train", {"anyway": "yes"})
    await dashboard.send(f"/campaigns/{campaign.id}/close", {"sure": "yes"})
    await dashboard.send("/tokens", {"name": "n", "scope": "relay"})
    await dashboard.send("/tokens/revoke", {"name": "n", "sure": "yes"})
    async with dashboard.session.get(dashboard.operations + "/metrics") as answer:
        exposition = await answer.text()
    for kind in ("model-published", "campaign-closed", "token-made", "token-revoked"):
        assert f'ldp_mutations_total{{kind="{kind}"}} 1.0' in exposition


async def test_a_proxy_that_changes_the_host_shuts_nobody_out(dashboard):
    proxied = {"Origin": "https://aggregator.example", "Sec-Fetch-Site": "same-origin"}
    assert (await dashboard.send("/tokens", {"name": "n", "scope": "relay"}, headers=proxied))[0] == 200


async def test_what_an_operator_changes_here_is_in_the_log_with_the_name_of_the_token(dashboard):
    campaign = await dashboard.publish(people=5)
    await dashboard.send(f"/campaigns/{campaign.id}/close", {"sure": "yes"})
    await dashboard.send("/tokens", {"name": "n", "scope": "relay"})
    await dashboard.send("/tokens/revoke", {"name": "n", "sure": "yes"})
    acts = [one.act.act for one in await dashboard.store.acts()]
    assert acts[-3:] == ["close campaign", "create token", "revoke token"]
    assert all(one.act.actor.startswith("token ") and one.outcome == "done" for one in await dashboard.store.acts())
