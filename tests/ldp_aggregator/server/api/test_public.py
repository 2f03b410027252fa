"""The public listener: campaigns out, reports in, models and estimates out; and everything it refuses."""

import hashlib
from datetime import timedelta

import numpy as np
import pytest
from cells import cell_report, cells_of
from drafts import draft, text

from ldp_aggregator.node_statistics import encode_share
from ldp_aggregator.service.signing import public_key, sign_directory
from ldp_aggregator.store import StoredToken
from ldp_aggregator.store.contract import utc_now
from ldp_protocols import Campaign, encode_upload
from ldp_protocols.wire import MEDIA_TYPE

UNKNOWN_ID = "A" * 43
FIRST, SECOND = '{"model": 1}', '{"model": 2}'


@pytest.fixture
async def campaign(server):
    return await server.publish()


@pytest.fixture
def url(server, campaign):
    return f"{server.public}/v1/campaigns/{campaign.id}"


@pytest.fixture
def get(server, url):
    """The answer to a question about the campaign."""
    return lambda path="", scope="", **more: server.ask("GET", url + path, scope, **more)


async def test_a_campaign_is_served_as_stored_with_a_strong_tag(get, campaign):
    answer = await get()
    assert (answer.status, answer.content) == (200, campaign.document)
    assert answer.headers["Content-Type"].startswith("application/json")
    assert answer.headers["ETag"] == f'"{campaign.id}"'
    assert "immutable" in answer.headers["Cache-Control"]
    for condition in (f'"{campaign.id}"', f'"other", "{campaign.id}"', "*"):
        answer = await get(headers={"If-None-Match": condition})
        assert (answer.status, answer.content, answer.headers["ETag"]) == (304, b"", f'"{campaign.id}"')
    assert (await get(headers={"If-None-Match": '"other"'})).status == 200


async def test_an_upload_is_counted_and_what_is_listed_tells_nothing_of_known_ids(server, campaign):
    for _ in range(3):
        assert await server.upload(campaign, range(5)) == (200, {"rejected": []})
    bad, other = cell_report(campaign, 8, cell=64), cell_report(campaign, 1, cell=9)
    rejected = [[bad.id.hex(), "index-out-of-range"]]
    assert await server.upload(campaign, [bad, other, 5]) == (200, {"rejected": rejected})
    for asked in ([cell_report(campaign, 1, cell=9)], [1], [5], [(5, 1)]):
        assert await server.upload(campaign, asked) == (200, {"rejected": []})
    assert await cells_of(server.store, campaign, 10) == [1] * 6 + [0] * 4


REFUSED = {
    "text": (b"hello", {}, 400, "malformed-upload"),
    "another media type": ([1], {"Content-Type": "application/json"}, 415, "wrong-media-type"),
    "compressed": ([1], {"Content-Encoding": "gzip"}, 415, "compressed-body"),
    "marked as identity": ([1], {"Content-Encoding": "identity"}, 415, "compressed-body"),
}


@pytest.mark.parametrize("name", REFUSED)
async def test_what_is_no_upload_is_refused(server, campaign, name):
    body, headers, status, code = REFUSED[name]
    answered, problem = await server.upload(campaign, body, **headers)
    assert (answered, problem["code"], problem["status"]) == (status, code, status)
    assert not any(await cells_of(server.store, campaign))


async def test_a_body_without_a_length_and_too_many_bytes_or_reports_are_refused(serving):
    async def chunks():
        yield encode_upload([cell_report(campaign, 1)], campaign)

    async with serving(limits={"body_bytes": 2048, "reports_per_upload": 20}) as server:
        campaign = await server.publish(128)
        url, headers = f"{server.public}/v1/campaigns/{campaign.id}/reports", {"Content-Type": MEDIA_TYPE}
        answer = await server.ask("POST", url, data=chunks(), headers=headers)
        assert answer.refused == (411, "length-required")
        assert await server.refused(campaign, range(21)) == (413, "too-many-reports")
        assert await server.refused(campaign, b"x" * 2049) == (413, "body-too-large")
        assert not any(await cells_of(server.store, campaign))
        assert (await server.upload(campaign, range(20)))[0] == 200


async def test_the_latest_model_is_served_and_revalidated(server, campaign, get):
    assert (await get("/model")).refused == (404, "no-model")
    await server.store.publish_model(campaign.id, FIRST)
    first = await get("/model")
    assert (first.content, first.headers["Model-Version"]) == (FIRST.encode(), "1")
    assert first.headers["ETag"] == f'"{hashlib.sha256(FIRST.encode()).hexdigest()}"'
    condition = {"If-None-Match": first.headers["ETag"]}
    assert (await get("/model", headers=condition)).status == 304
    await server.store.publish_model(campaign.id, SECOND)
    answer = await get("/model", headers=condition)
    assert (answer.status, answer.content, answer.headers["Model-Version"]) == (200, SECOND.encode(), "2")
    assert (await get("/model?version=1")).content == FIRST.encode()
    assert (await get("/model?version=3")).refused == (404, "no-model")
    for query in ("version=0", "version=x", "version=1&version=2", "revision=1", "version=" + "9" * 30):
        assert (await get(f"/model?{query}")).refused == (400, "malformed-query")


async def test_what_never_changes_is_kept_for_a_year_and_what_may_is_asked_for_again(server, campaign, get):
    await server.store.publish_model(campaign.id, FIRST)
    federated = Campaign.compile(draft(text("x", "a", "b")))
    await server.store.create_campaign(federated, federated=True)
    share = encode_share(federated, np.zeros(6, dtype=np.int64))
    await server.store.add_token(StoredToken("node", "node", b"n" * 32, utc_now()))
    assert await server.store.put_share(federated.id, "node", share) is None
    key, until = public_key(bytes(32)), utc_now() + timedelta(days=1)
    await server.store.put_directory(key, 1, sign_directory(bytes(32), 1, until, {}))
    year, again = "public, max-age=31536000, immutable", "public, no-cache"
    for path, told in (
        (f"campaigns/{campaign.id}", year),
        (f"campaigns/{campaign.id}/model?version=1", year),
        (f"campaigns/{campaign.id}/model", again),
        (f"campaigns/{federated.id}/model", again),
        (f"directories/{key}", again),
        (f"campaigns/{campaign.id}/state", "public, max-age=60"),
        (f"campaigns/{'A' * 43}", "no-store"),
        (f"campaigns/{campaign.id}/model?version=2", "no-store"),
    ):
        assert (await server.ask("GET", f"{server.public}/v1/{path}")).headers["Cache-Control"] == told, path
    estimates = f"{server.public}/v1/campaigns/{campaign.id}/estimates"
    assert (await server.ask("GET", estimates, "collector")).headers["Cache-Control"] == "no-store"


async def test_estimates_are_for_collectors_and_stand_still_between_releases(server, campaign, url):
    await server.upload(campaign, range(50))
    theirs = f"/admin/v1/campaigns/{campaign.id}/estimates"
    for address, scope in ((url + "/estimates", "collector"), (theirs, "admin")):
        answer = await server.ask("GET", address + "?post=none", scope)
        assert (answer.status, answer.json["questions"][0]["n"]) == (200, 50)
    assert (await server.ask("GET", theirs + "?post=magic", "admin")).refused == (400, "malformed-query")
    fixed, seen = await server.publish(privacy={"epsilon": 1.0, "discrete": "de", "release_every": 20}), []
    for numbers in (range(19), range(19, 21), range(21, 40)):
        await server.upload(fixed, numbers)
        found = (await server.ask("GET", f"{server.public}/v1/campaigns/{fixed.id}/estimates", "collector")).json
        seen.append((found["questions"][0]["n"], found["published"]["reports"]))
    assert seen == [(0, 0), (21, 20), (21, 20)], "and they tell what they reveal"


async def test_uploads_can_be_kept_for_relays(serving):
    async with serving(uploads_need_token=True) as server:
        campaign = await server.publish()
        assert await server.refused(campaign, [1]) == (401, "missing-token")
        assert await server.refused(campaign, [1], **server.bearer("collector")) == (403, "wrong-scope")
        assert not any(await cells_of(server.store, campaign))
        assert (await server.upload(campaign, [1], **server.bearer("relay")))[0] == 200


async def test_campaigns_paths_and_methods_that_do_not_exist_are_problems(server):
    for campaign_id in (UNKNOWN_ID, "short", "..%2F..", "A" * 44):
        for path in ("", "/model"):
            answer = await server.ask("GET", f"{server.public}/v1/campaigns/{campaign_id}{path}")
            assert answer.headers["Content-Type"].startswith("application/problem+json")
            assert answer.refused in ((404, "unknown-campaign"), (404, "not-found"))
    assert (await server.ask("GET", f"{server.public}/nothing/here")).refused == (404, "not-found")
    answer = await server.ask("DELETE", f"{server.public}/v1/campaigns/{UNKNOWN_ID}")
    assert answer.refused == (405, "method-not-allowed")
    assert "GET" in answer.headers["Allow"]
    assert (await server.ask("GET", f"{server.public}/admin/v1/campaigns", "admin")).status == 404
