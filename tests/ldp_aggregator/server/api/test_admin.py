"""The admin listener: what it does, and that only an admin token makes it do so."""

import asyncio
import hashlib
import json
import re
from datetime import datetime, timezone
from types import SimpleNamespace

import pytest
from drafts import draft, text

from ldp_aggregator.server.api.admin import get_readiness
from ldp_aggregator.server.apps import ADMIN
from ldp_aggregator.server.problems import ProblemError
from ldp_aggregator.service.signing import described, gateway_of, public_key, sign_directory
from ldp_aggregator.store import SCOPES
from ldp_protocols import Campaign
from ldp_protocols.document.directory import read_directory
from ldp_protocols.document.model import Model

DRAFT = draft(text("age", "young", "medium", "old", missing=True))
TOML = b"""
version = 1
title = "t"
label = {name = "y", classes = ["a", "b"]}
privacy = {epsilon = 1.0}
features = [{name = "age", kind = "categorical", values = ["young", "medium", "old"]}]
windows = {from = 2100-01-04T01:00:00+01:00, length = "P7D", count = 52}
"""


@pytest.fixture
def post(server):
    """The answer to what an administrator sends."""

    async def send(path="", body=None, media_type="application/json"):
        headers = {"Content-Type": media_type} if body else {}
        return await server.ask("POST", "/admin/v1/campaigns" + path, "admin", data=body, headers=headers)

    return send


@pytest.mark.parametrize("row", [row for row in ADMIN if row.scopes], ids=lambda row: f"{row.method} {row.path}")
async def test_only_an_admin_token_opens_an_admin_route(server, row):
    method, path = row.method, re.sub(r"\{\w+\}", "A" * 43, row.path)

    async def ask(shown):
        return (await server.ask(method, path, headers={"Authorization": shown})).refused

    answer = await server.ask(method, path)
    assert (answer.refused, answer.headers["WWW-Authenticate"]) == ((401, "missing-token"), "Bearer")
    token = server.tokens["admin"]
    for shown in ("Basic YWRtaW46", "Bearer", "Bearer ", f"Token {token}"):
        assert await ask(shown) == (401, "missing-token")
    for wrong in ("x", token + "x", token[:-1], token.swapcase()):
        assert await ask(f"Bearer {wrong}") == (401, "wrong-token")
    for scope in set(SCOPES) - {"admin"}:
        assert await ask(f"Bearer {server.tokens[scope]}") == (403, "wrong-scope")
    assert (await server.ask(method, path, "admin")).json.get("code") not in ("wrong-scope", "wrong-token")
    await server.store.revoke_token("a admin")
    assert await ask(f"Bearer {token}") == (401, "wrong-token")
    assert await server.store.campaigns() == []


async def test_a_draft_becomes_a_campaign_once_and_is_listed_with_its_state(server, post):
    body = json.dumps(DRAFT).encode()
    created = await post("?max_reports=3", body)
    assert (created.status, created.json["id"]) == (201, Campaign.compile(DRAFT).id)
    again = await post("?max_reports=3", body)
    assert (again.status, again.json) == (200, created.json)
    assert await server.store.document(created.json["id"]) == Campaign.compile(DRAFT).document
    [listed] = (await server.ask("GET", "/admin/v1/campaigns", "admin")).json["campaigns"]
    assert listed["id"] == created.json["id"]
    assert (listed["status"], listed["max_reports"], listed["reports"]) == ("open", 3, 0)
    created = await post("", TOML, "application/toml")
    expected = Campaign.compile(DRAFT | {"windows": {"from": "2100-01-04T00:00:00Z", "length": "P7D", "count": 52}})
    assert (created.status, created.json["id"]) == (201, expected.id), "TOML has times of its own"


@pytest.mark.parametrize(
    ("media_type", "body", "field"),
    [
        ("application/json", b"{", "document"),
        ("application/toml", b"= 1", "draft"),
        ("application/json", json.dumps(DRAFT | {"privacy": {"epsilon": 0}}).encode(), "privacy.epsilon"),
        ("application/json", json.dumps(DRAFT | {"colour": "red"}).encode(), "colour"),
        ("application/json", json.dumps(DRAFT | {"gateway": gateway_of(bytes(32)).to_json()}).encode(), "gateway.key"),
    ],
)
async def test_a_draft_that_cannot_be_compiled_is_refused_by_field(server, post, media_type, body, field):
    answer = await post("", body, media_type)
    assert (answer.refused, answer.json["field"]) == ((400, "invalid-draft"), field)
    assert (await post("", b"{}", "text/plain")).refused == (415, "wrong-media-type")
    assert await server.store.campaigns() == []


async def test_training_publishes_a_model_that_a_device_can_read(server, post):
    campaign = await server.publish(8)
    train = f"/{campaign.id}/train"
    assert (await post(train)).refused == (409, "nothing-to-train")
    await server.upload(campaign, [(number, number % 8) for number in range(200)])
    assert (await post(train)).refused == (409, "useless-model")
    trained = await post(train + "?anyway=true")
    assert (trained.status, trained.json) == (200, {"version": 1, "reports": 200})
    for wrong in ("?anyway=perhaps", "?post=none"):
        assert (await post(train + wrong)).refused == (400, "malformed-query")
    model = await server.ask("GET", f"{server.public}/v1/campaigns/{campaign.id}/model")
    assert Model.from_json(model.content).classes == ("yes", "no")


async def test_health_needs_no_token_and_every_answer_carries_the_security_headers(server):
    for path, expected in (("/healthz", "ok"), ("/readyz", "ready")):
        answer = await server.ask("GET", server.operations + path)
        assert (answer.status, answer.json["status"]) == (200, expected)
        for elsewhere in (server.public, server.admin):
            assert (await server.ask("GET", elsewhere + path)).status == 404
    for url in (server.operations + "/healthz", server.public + "/nowhere", "/admin/v1/campaigns"):
        headers = (await server.ask("GET", url)).headers
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert headers["Cache-Control"] == "no-store"
        assert not {"Python", "aiohttp"} & set(headers["Server"].replace("/", " ").split())


SEED = bytes(32)
KEY = public_key(SEED)


def signed(version, seed=SEED, **campaigns):
    return sign_directory(seed, version, datetime(2100, 1, 1, tzinfo=timezone.utc), campaigns)


async def put(server, document, key=KEY):
    headers = {"Content-Type": "application/json"}
    return await server.ask("PUT", f"/admin/v1/directories/{key}", "admin", data=document, headers=headers)


async def get(server, key=KEY, **headers):
    return await server.ask("GET", f"{server.public}/v1/directories/{key}", headers=headers)


async def test_what_was_signed_is_served_byte_for_byte(server):
    assert (await get(server)).status == 404
    document = signed(3)
    assert (await put(server, document)).json == {"version": 3}
    found = await get(server)
    assert (found.status, found.content) == (200, document)
    assert found.headers["ETag"] == f'"{hashlib.sha256(document).hexdigest()}"'
    assert (await get(server, **{"If-None-Match": found.headers["ETag"]})).status == 304


async def test_an_older_one_another_of_its_version_or_of_another_key_does_not_take_its_place(server):
    for _ in range(2):  # The same again is a success.
        assert (await put(server, signed(3))).json == {"version": 3}
    for other in (signed(2), signed(3, A="ab" * 32)):
        assert (await put(server, other)).refused == (409, "older-directory")
    assert (await put(server, signed(4))).status == 200
    seed = bytes([1]) * 32
    assert (await put(server, signed(1, seed=seed), key=public_key(seed))).status == 200
    assert (await get(server)).content == signed(4)
    assert (await get(server, public_key(seed))).content == signed(1, seed=seed)
    assert described(read_directory(signed(9), KEY)) == "version 9 until 2100-01-01T00:00:00Z: no campaign"


async def test_what_the_key_has_not_signed_is_refused(server):
    forged = json.loads(signed(1)) | {"statement": json.loads(signed(2))["statement"]}
    for document in (signed(1, seed=bytes([1]) * 32), json.dumps(forged).encode(), b"{}", b"nonsense"):
        assert (await put(server, document)).refused == (400, "invalid-directory")
    for key, status in (("A" * 43, 400), ("x", 404)):
        assert (await put(server, signed(1), key=key)).status == status
    assert (await put(server, b" " * (1 << 17))).status == 413, "too long, before it is read"
    assert (await get(server)).status == 404
    assert list(await server.store.acts()) == []


async def test_the_log_tells_a_thousand_acts_at_the_most(server):
    for last, status in ((1, 200), (1000, 200), (1001, 400), (0, 400)):
        assert (await server.ask("GET", f"/admin/v1/log?last={last}", "admin")).status == status


async def test_a_draft_as_long_as_the_server_takes_is_taken_and_one_of_a_byte_more_is_not(serving):
    text = json.dumps(DRAFT)
    async with serving(limits={"body_bytes": len(text) + 10}) as server:
        for more, status in ((11, 413), (10, 201)):
            headers = {"Content-Type": "application/json"}
            body = text + " " * more
            answer = await server.ask("POST", "/admin/v1/campaigns", "admin", data=body, headers=headers)
            assert answer.status == status


@pytest.mark.parametrize(
    ("host", "status"),
    [
        *(("127.0.0.1", 200), ("[::1]:9100", 200), ("localhost", 200), ("10.0.0.7:9100", 200)),
        *(("127.0.0.1.evil.example", 421), ("localhost.evil.example", 421), ("evil.example", 421), ("::1.evil", 421)),
    ],
)
async def test_whoever_watches_asks_under_an_address_and_no_page_under_a_name_that_begins_like_one(
    server, host, status
):
    answer = await server.ask("GET", server.operations + "/healthz", headers={"Host": host})
    assert answer.status == status


async def test_a_server_that_is_leaving_or_whose_store_takes_nothing_is_not_ready():
    leaving, ingest = asyncio.Event(), SimpleNamespace(is_well=True)
    metrics = SimpleNamespace(gauges=SimpleNamespace(keyless=lambda: ["A" * 43]))
    context = SimpleNamespace(
        leaving=leaving, ingest=ingest, metrics=metrics, settings=SimpleNamespace(operations_names=())
    )
    request = SimpleNamespace(http=SimpleNamespace(host="localhost:9100"), context=context)
    answer = await get_readiness(request)
    assert json.loads(answer.body) == {"status": "ready", "gateway_key_missing": ["A" * 43]}
    ingest.is_well = False
    for code in ("store-unavailable", "stopping"):
        with pytest.raises(ProblemError) as refused:
            await get_readiness(request)
        assert (refused.value.code, refused.value.status) == (code, 503)
        leaving.set()
