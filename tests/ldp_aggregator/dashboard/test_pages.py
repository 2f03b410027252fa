"""Every page, with nothing in the store, with something, and without a session."""

import json
import re
from datetime import timedelta
from pathlib import Path

import aiohttp
from drafts import text as text_feature

from ldp_aggregator.dashboard import campaigns, pages
from ldp_aggregator.dashboard.routes import ADMIN
from ldp_aggregator.dashboard.session import server_key
from ldp_aggregator.service.rights import make_token
from ldp_aggregator.store.contract import DAMAGED, StoreError, utc_now


async def test_a_page_stands_with_an_empty_store_and_forbids_what_is_not_this_servers(dashboard):
    for path in ("/", "/campaigns/new", "/federation", "/health", "/tokens"):
        async with dashboard.session.get(dashboard.admin + path) as answer:
            policy, text = answer.headers["Content-Security-Policy"], await answer.text()
        assert answer.status == 200
        assert text.startswith("<!doctype html>")
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        for inline in (" style=", "<style", "onclick"):
            assert inline not in text
    for path in ("/campaigns/" + "A" * 43, "/campaigns/x", "/assets/nothing.js", "/assets/..%2fpages.py"):
        status, text = await dashboard.get(path)
        assert (status, "<h1>" in text) == (404, True), "what is not there is a page of its own"


async def test_the_root_of_the_public_listener_is_a_page_that_names_no_campaign(dashboard):
    campaign = await dashboard.publish()
    async with aiohttp.ClientSession() as nobody, nobody.get(dashboard.public + "/") as answer:
        text = await answer.text()
        assert (answer.status, "Set-Cookie" in answer.headers) == (200, False)
    assert "Noisy answers are counted here" in text
    assert campaign.title not in text
    assert campaign.id not in text


async def test_a_campaigns_page_shows_every_feature_with_a_table_of_its_numbers(dashboard):
    campaign = await dashboard.publish()
    text = await dashboard.page(campaign)
    assert "No device has answered yet." in text
    assert "No model yet." in await dashboard.page(campaign, "/model")
    await dashboard.answer(campaign, 3)
    text = await dashboard.page(campaign)
    assert "Too few answers to draw anything: about " in text
    assert '<svg class="plot"' not in text
    await dashboard.answer(campaign, 900)
    text = await dashboard.page(campaign)
    assert text.count('<svg class="plot"') == 4 == text.count('aria-label="Table of ')
    for feature in ("age", "income", "hours"):
        assert f'aria-label="Table of {feature}"' in text
    assert "0 to 50,000" in text
    assert "missing" not in text.partition("<main")[2], "nobody lacks a value"
    assert 'class="reach"' not in text, "nobody is taken to lie"
    lied = await dashboard.page(campaign, "?lied=1")
    assert 'class="reach"' in lied
    assert "If 1 % lied" in lied
    assert "9\u00a0liars of 900\u00a0devices" in lied


async def test_each_tab_has_an_address_and_the_four_answers(dashboard):
    campaign = await dashboard.publish(people=20)
    first = await dashboard.page(campaign)
    assert await dashboard.page(campaign, "/learned") == first
    for tab in campaigns.TABS:
        text = await dashboard.page(campaign, f"/{tab}")
        for question in ("What was learned?", "How good is the model?", "Is it healthy?", "Is somebody lying?"):
            assert question in text
        assert text.count('aria-current="page"') == 1
    assert 'id="estimates">age<' in await dashboard.page(campaign, "?feature=0")
    for nothing in ("?feature=9", "?feature=x", "/nothing"):
        status, text = await dashboard.get(f"/campaigns/{campaign.id}{nothing}")
        assert status == 404
        assert nothing == "/nothing" or "Sign out" in text, "an error keeps the way to the other pages"


async def test_one_campaign_that_cannot_be_read_hides_no_other(dashboard, monkeypatch):
    good = await dashboard.publish(5, study="s", title="Good")
    assert (await dashboard.act(good, "train", anyway="yes"))[0] == 303
    bad = await dashboard.publish(title="Bad")
    document = dashboard.store.document

    async def fails(campaign_id):
        if campaign_id == bad.id:
            raise StoreError("a byte is not the one that was written", DAMAGED)
        return await document(campaign_id)

    monkeypatch.setattr(dashboard.store, "document", fails)
    status, text = await dashboard.get("/")
    assert (status, text.count("Cannot be read")) == (200, 1)
    assert "Model may be no better than guessing" in text
    assert "Not measured" in await dashboard.page(good)


async def test_without_a_label_pages_speak_of_answers_and_no_model_is_offered(dashboard):
    campaign = await dashboard.publish(label=None, pairs=[["age", "income"]])
    people = await dashboard.people_page(campaign)
    assert "averages of numbers, over all devices together. No model is made of it." in people
    assert "The model, which it downloads" not in people
    assert "missed_payment" not in people
    for reports in (0, 900):
        await dashboard.answer(campaign, reports)
        page = await dashboard.page(campaign)
        assert "/train" not in page
        assert ">Models<" not in page
        assert "Is it healthy?" in page
        assert "How good is the model?" not in page
        assert "No device has answered yet." in page or reports
    assert (await dashboard.get(f"/campaigns/{campaign.id}/model"))[0] == 404
    for key in re.findall(r'href="\?feature=(\w+)"', page):
        page += await dashboard.page(campaign, f"?feature={key}")
    for found in ("age", "income", "hours", "age and income"):
        assert f'aria-label="Table of {found}"' in page
    assert "Shares of 3 features" in page
    assert "Standard deviation: " in page
    assert "Median: " in page
    assert '<th scope="col">Class</th>' not in page
    status, text = await dashboard.act(campaign, "train")
    assert (status, "has no label to learn a model of; what it tells is in its estimates" in text) == (409, True)


async def test_training_publishes_a_version_that_can_be_downloaded(dashboard):
    campaign = await dashboard.publish()
    status, text = await dashboard.act(campaign, "train")
    assert (status, "no report has been counted yet" in text) == (409, True)
    await dashboard.answer(campaign, 4)
    status, text = await dashboard.act(campaign, "train")
    assert (status, "the model cannot be told from always guessing" in text) == (409, True)
    status, _, onward = await dashboard.send(f"/campaigns/{campaign.id}/train", {"anyway": "yes"})
    assert (status, onward) == (303, f"/campaigns/{campaign.id}/model?trained=1")
    model = await dashboard.store.model(campaign.id)
    assert await dashboard.get(f"/campaigns/{campaign.id}/model.json?version=1") == (200, model.document)
    assert "no evaluation round" in await dashboard.page(campaign, "/model")
    assert "Measure it: draft an evaluation" in await dashboard.page(campaign)


async def test_nonsense_in_an_address_breaks_no_page_and_the_stream_is_one_event_with_the_numbers_of_now(dashboard):
    campaign = await dashboard.publish(people=7)
    queries = ("?lied=-1", "?lied=x", "?lied=99999999999999999999", "?lied=nan", "?lied=inf", "?lied=%00")
    for query in (*queries, "/privacy?batch=0", "/model?trained=x"):
        assert await dashboard.page(campaign, query)
    status, text = await dashboard.get(f"/campaigns/{campaign.id}/live")
    assert status == 200
    retry, data = text.strip().split("\n")
    assert retry == "retry: 2000"
    now = json.loads(data.removeprefix("data: "))
    assert now["reports"] == {campaign.id: 7}
    assert sum(now["questions"]) == 7


async def test_what_a_draft_says_is_escaped(dashboard):
    hurt = '<script>alert("x")</script>'
    label, feature = {"name": hurt, "classes": [hurt, "no"]}, text_feature(hurt + "2", hurt, "</svg>", missing=True)
    campaign = await dashboard.publish(20, title=hurt, purpose=hurt, label=label, features=[feature])
    pages = [(await dashboard.get("/"))[1], await dashboard.page(campaign), await dashboard.people_page(campaign)]
    for page in pages:
        assert "<script>" not in page
        assert "&lt;script&gt;" in page


async def test_no_page_of_an_operator_opens_without_a_session(dashboard):
    campaign = await dashboard.publish(people=3)
    for route in ADMIN:
        if not route.is_open:
            path = dashboard.admin + route.path.replace("{id}", campaign.id)
            async with (
                aiohttp.ClientSession() as nobody,
                nobody.request(route.method, path, data={}, allow_redirects=False) as answer,
            ):
                assert answer.status in (303, 401), path
                assert answer.headers.get("Location", "/login").startswith("/login")
                assert campaign.title not in await answer.text()
    assert (await dashboard.store.state(campaign.id)).status(utc_now()) == "open"


async def test_a_session_ends_when_its_token_is_revoked_and_with_its_process(dashboard):
    text, token = make_token("second", "admin", utc_now())
    await dashboard.store.add_token(token)
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
        assert (await dashboard.sign_in(session, text))[0].status == 303
        await dashboard.store.revoke_token("second")
        async with session.get(f"{dashboard.admin}/", allow_redirects=False) as answer:
            assert answer.status == 303
    assert (await dashboard.get("/"))[0] == 200
    server_key.cache_clear()  # As in another process.
    assert (await dashboard.get("/"))[0] == 303
    assert (await dashboard.sign_in(dashboard.session, dashboard.tokens["admin"]))[0].status == 303
    assert (await dashboard.get("/"))[0] == 200
    await dashboard.store.revoke_token("a admin")
    assert (await dashboard.get("/"))[0] == 303


async def test_signing_in_takes_an_admins_token_gives_a_cookie_for_this_server_alone_and_leads_nowhere_else(dashboard):
    admin = dashboard.tokens["admin"]
    async with aiohttp.ClientSession() as other:
        for scope in ("collector", "node", "relay"):
            answer, text = await dashboard.sign_in(other, dashboard.tokens[scope])
            assert (answer.status, scope in text, bool(answer.cookies)) == (401, True, False)
        cookie = (await dashboard.sign_in(other, admin))[0].cookies["ldp_session"]
        assert (cookie["httponly"], cookie["samesite"], cookie["path"]) == (True, "Strict", "/")
        assert admin not in cookie.value
        for onward in ("//elsewhere.example", "https://elsewhere.example", "/\\elsewhere.example", "\t//x"):
            answer, _ = await dashboard.sign_in(other, admin, next=onward)
            assert answer.headers["Location"] == "/", onward


async def test_a_form_without_its_token_or_of_another_site_changes_nothing(dashboard):
    form = {"name": "n", "scope": "admin"}
    assert (await dashboard.send("/tokens", {"form_token": "0" * 64, **form}))[0] == 403
    foreign = ("Origin", "http://elsewhere.example"), ("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Site", "same-site")
    for header in foreign:
        assert (await dashboard.send("/tokens", form, headers=dict([header])))[0] == 403
    assert "n" not in [token.name for token in await dashboard.store.tokens()]
    proxied = {"Origin": "https://aggregator.example", "Sec-Fetch-Site": "same-origin"}
    status, _, _ = await dashboard.send("/tokens", {"name": "n", "scope": "relay"}, headers=proxied)
    assert status == 200, "a proxy that changes the host shuts nobody out"


async def test_a_tokens_text_is_on_one_page_once(dashboard):
    form = {"name": "a new one", "scope": "collector"}
    status, text, _ = await dashboard.send("/tokens", form)
    assert status == 200
    made = text.split('id="made-token">')[1].split("<")[0]
    assert made.startswith("ldp_")
    assert made not in (await dashboard.get("/tokens"))[1]
    assert (await dashboard.send("/tokens", form))[0] == 409
    for status in (303, 404):
        assert (await dashboard.send("/tokens/revoke", {"name": "a new one", "sure": "yes"}))[0] == status


async def test_what_an_operator_changes_here_takes_a_tick_is_counted_and_logged(dashboard, monkeypatch):
    campaign = await dashboard.publish(people=5)
    assert (await dashboard.act(campaign, "train", anyway="yes"))[0] == 303
    steps = (("close", "closed"), ("reopen", "open"), ("close", "closed"), ("seal", None), ("seal", "sealed"))
    for act, status in steps:
        if act == "seal":
            later = timedelta(days=2 if status else 0)
            monkeypatch.setattr(dashboard.store._writes, "_clock", lambda later=later: utc_now() + later)
        assert (await dashboard.act(campaign, act))[0] == 400, "it takes a tick"
        assert (await dashboard.act(campaign, act, sure="yes"))[0] == (303 if status else 409)
        life = (await dashboard.store.state(campaign.id)).life
        assert (life.closed is None, life.sealed is None) == (status == "open", status != "sealed")
    status, text = await dashboard.act(campaign, "reopen", sure="yes")
    assert (status, "its ids are gone" in text) == (409, True)
    assert f'action="/campaigns/{campaign.id}/reopen"' not in await dashboard.page(campaign, "/settings")
    await dashboard.send("/tokens", {"name": "n", "scope": "relay"})
    await dashboard.send("/tokens/revoke", {"name": "n", "sure": "yes"})
    async with dashboard.session.get(dashboard.operations + "/metrics") as answer:
        exposition = await answer.text()
    for kind, times in (("model-published", 1), ("campaign-closed", 2), ("token-made", 1), ("token-revoked", 1)):
        assert f'ldp_mutations_total{{kind="{kind}"}} {times}.0' in exposition
    done = ["publish model", *(f"{act} campaign" for act in ("close", "reopen", "close", "seal", "seal", "reopen"))]
    outcomes = ["done"] * 4 + ["failed", "done", "failed"] + ["done"] * 2
    acts = await dashboard.store.acts()
    assert [one.act.act for one in acts] == [*done, "create token", "revoke token"]
    assert [one.outcome for one in acts] == outcomes
    assert {one.act.actor for one in acts} == {"token a admin"}


def test_what_a_script_of_the_dashboard_imports_is_among_its_assets():
    static = Path(pages.__file__).parent / "static"
    imported = [
        name
        for script in static.glob("*.js")
        for name in re.findall(r'\bfrom ?"(?:/assets|\.)/([^"]+)"', script.read_text(encoding="utf-8"))
    ]
    assert "ldp-bayes-client.crowd.min.js" in imported
    assert [name for name in imported if not (static / name).is_file()] == []
