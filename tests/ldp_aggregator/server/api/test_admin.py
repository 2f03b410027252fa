"""The admin listener: what it does, and that only an admin token makes it do so."""

from __future__ import annotations

import json

import pytest

from ldp_aggregator.store import SCOPES
from protocols import Campaign
from protocols.model import Model

DRAFT = {
    "version": 1,
    "title": "Will a customer miss a payment?",
    "label": {"name": "missed_payment", "classes": ["yes", "no"]},
    "features": [{"name": "age", "kind": "categorical", "values": ["young", "medium", "old"]}],
    "privacy": {"epsilon": 1.0},
}

TOML = b"""
version = 1
title = "Will a customer miss a payment?"
closes = 2100-01-01T00:00:00Z
label = {name = "missed_payment", classes = ["yes", "no"]}
privacy = {epsilon = 1.0}
[[features]]
name = "age"
kind = "categorical"
values = ["young", "medium", "old"]
"""

UNKNOWN_ID = "A" * 43

ROUTES = [
    ("POST", "/admin/v1/campaigns"),
    ("GET", "/admin/v1/campaigns"),
    ("POST", f"/admin/v1/campaigns/{UNKNOWN_ID}/close"),
    ("POST", f"/admin/v1/campaigns/{UNKNOWN_ID}/reopen"),
    ("POST", f"/admin/v1/campaigns/{UNKNOWN_ID}/seal"),
    ("POST", f"/admin/v1/campaigns/{UNKNOWN_ID}/train"),
    ("POST", f"/admin/v1/campaigns/{UNKNOWN_ID}/uploads"),
    ("GET", f"/admin/v1/campaigns/{UNKNOWN_ID}/estimates"),
    ("DELETE", f"/admin/v1/campaigns/{UNKNOWN_ID}"),
    ("GET", "/admin/v1/log"),
]


def draft(**changes):
    return json.dumps(DRAFT | changes).encode()


async def post(server, path, body=None, **headers):
    async with server.session.post(server.admin + path, data=body, headers=server.bearer("admin") | headers) as answer:
        return answer.status, await answer.json(content_type=None)


@pytest.mark.parametrize(("method", "path"), ROUTES)
async def test_only_an_admin_token_opens_an_admin_route(server, method, path):
    async def ask(headers):
        async with server.session.request(method, server.admin + path, headers=headers) as answer:
            return answer.status, (await answer.json(content_type=None)).get("code"), answer.headers

    status, code, headers = await ask({})
    assert (status, code, headers["WWW-Authenticate"]) == (401, "missing-token", "Bearer")
    for text in ("Basic YWRtaW46", "Bearer", "Bearer ", f"Token {server.tokens['admin']}"):
        assert (await ask({"Authorization": text}))[:2] == (401, "missing-token")
    for text in ("x", server.tokens["admin"] + "x", server.tokens["admin"][:-1], server.tokens["admin"].swapcase()):
        assert (await ask({"Authorization": f"Bearer {text}"}))[:2] == (401, "wrong-token")
    for scope in SCOPES:
        status, code, _ = await ask(server.bearer(scope))
        assert ((status, code) == (403, "wrong-scope")) == (scope != "admin")
    await server.store.revoke_token("a admin")
    assert (await ask(server.bearer("admin")))[:2] == (401, "wrong-token")
    assert await server.store.campaigns() == []


async def test_a_draft_becomes_a_campaign_once(server):
    body = json.dumps(DRAFT).encode()
    status, created = await post(server, "/admin/v1/campaigns", body, **{"Content-Type": "application/json"})
    assert (status, created["id"]) == (201, Campaign.compile(DRAFT).id)
    again = await post(server, "/admin/v1/campaigns", body, **{"Content-Type": "application/json"})
    assert again == (200, created)
    assert await server.store.document(created["id"]) == Campaign.compile(DRAFT).document


async def test_a_draft_may_be_toml_with_its_own_times(server):
    status, created = await post(server, "/admin/v1/campaigns", TOML, **{"Content-Type": "application/toml"})
    assert (status, created["id"]) == (201, Campaign.compile(DRAFT | {"closes": "2100-01-01T00:00:00Z"}).id)


@pytest.mark.parametrize(
    ("media_type", "body", "status", "code", "field"),
    [
        ("application/json", b"{", 400, "invalid-draft", "document"),
        ("application/toml", b"= 1", 400, "invalid-draft", "draft"),
        (
            "application/json",
            json.dumps(DRAFT | {"privacy": {"epsilon": 0}}).encode(),
            400,
            "invalid-draft",
            "privacy.epsilon",
        ),
        ("application/json", json.dumps(DRAFT | {"colour": "red"}).encode(), 400, "invalid-draft", "colour"),
        ("text/plain", b"{}", 415, "wrong-media-type", None),
    ],
)
async def test_a_draft_that_cannot_be_compiled_is_refused_by_field(server, media_type, body, status, code, field):
    answered, problem = await post(server, "/admin/v1/campaigns", body, **{"Content-Type": media_type})
    assert (answered, problem["code"], problem.get("field")) == (status, code, field)
    assert await server.store.campaigns() == []


async def test_campaigns_are_listed_with_their_state(server, make_report):
    body = json.dumps(DRAFT).encode()
    _, created = await post(server, "/admin/v1/campaigns?max_reports=3", body, **{"Content-Type": "application/json"})
    async with server.session.get(server.admin + "/admin/v1/campaigns", headers=server.bearer("admin")) as answer:
        [listed] = (await answer.json())["campaigns"]
    assert listed["id"] == created["id"]
    assert (listed["status"], listed["max_reports"], listed["reports"]) == ("open", 3, 0)


async def test_closing_is_answered_with_the_final_state(server, make_campaign, make_report):
    campaign = make_campaign()
    await server.store.create_campaign(campaign)
    await server.upload(campaign, [make_report(campaign, 1)])
    status, state = await post(server, f"/admin/v1/campaigns/{campaign.id}/close")
    assert (status, state["status"], state["reports"]) == (200, "closed", 1)


async def test_training_publishes_a_model_that_a_device_can_read(server, make_campaign, make_report):
    campaign = make_campaign(8)
    await server.store.create_campaign(campaign)
    assert (await post(server, f"/admin/v1/campaigns/{campaign.id}/train"))[1]["code"] == "nothing-to-train"
    await server.upload(campaign, [make_report(campaign, number, cell=number % 8) for number in range(200)])
    status, problem = await post(server, f"/admin/v1/campaigns/{campaign.id}/train")
    assert (status, problem["code"]) == (409, "useless-model")
    trained = await post(server, f"/admin/v1/campaigns/{campaign.id}/train?anyway=true")
    assert trained == (200, {"version": 1, "reports": 200})
    status, problem = await post(server, f"/admin/v1/campaigns/{campaign.id}/train?anyway=perhaps")
    assert (status, problem["code"]) == (400, "malformed-query")
    async with server.session.get(f"{server.public}/v1/campaigns/{campaign.id}/model") as answer:
        assert Model.from_json(await answer.read()).classes == ("yes", "no")
    status, problem = await post(server, f"/admin/v1/campaigns/{campaign.id}/train?post=none")
    assert (status, problem["code"]) == (400, "malformed-query")


@pytest.mark.parametrize("action", ["close", "train"])
async def test_acting_on_an_unknown_campaign_is_a_404(server, action):
    status, problem = await post(server, f"/admin/v1/campaigns/{UNKNOWN_ID}/{action}")
    assert (status, problem["code"]) == (404, "unknown-campaign")


async def test_health_needs_no_token_and_readiness_asks_the_store(server):
    for path, expected in (("/healthz", "ok"), ("/readyz", "ready")):
        async with server.session.get(server.operations + path) as answer:
            assert (answer.status, (await answer.json())["status"]) == (200, expected)
        for elsewhere in (server.public, server.admin):
            async with server.session.get(elsewhere + path) as answer:
                assert answer.status == 404


async def test_every_answer_carries_the_security_headers(server, make_campaign):
    for url in (server.operations + "/healthz", server.public + "/nowhere", server.admin + "/admin/v1/campaigns"):
        async with server.session.get(url) as answer:
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
            assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
            assert answer.headers["Cache-Control"] == "no-store"
            assert "Python" not in answer.headers["Server"]
            assert "aiohttp" not in answer.headers["Server"]
