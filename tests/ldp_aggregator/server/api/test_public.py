"""The public listener: campaigns out, reports in, models and estimates out; and everything it refuses."""

from __future__ import annotations

import hashlib

import pytest

from protocols.wire import MEDIA_TYPE

UNKNOWN_ID = "A" * 43
FIRST, SECOND = '{"model": 1}', '{"model": 2}'


async def counted(server, campaign):
    return int((await server.store.tally(campaign.id)).n.sum())


async def test_a_campaign_is_served_as_stored_with_a_strong_tag(server, make_campaign):
    campaign = make_campaign()
    await server.store.create_campaign(campaign)
    url = f"{server.public}/v1/campaigns/{campaign.id}"
    async with server.session.get(url) as answer:
        assert answer.status == 200
        assert await answer.read() == campaign.document
        assert answer.content_type == "application/json"
        assert answer.headers["ETag"] == f'"{campaign.id}"'
        assert "immutable" in answer.headers["Cache-Control"]
    for condition in (f'"{campaign.id}"', f'"other", "{campaign.id}"', "*"):
        async with server.session.get(url, headers={"If-None-Match": condition}) as answer:
            assert (answer.status, await answer.read()) == (304, b"")
            assert answer.headers["ETag"] == f'"{campaign.id}"'
    async with server.session.get(url, headers={"If-None-Match": '"other"'}) as answer:
        assert answer.status == 200


async def test_an_upload_is_counted_and_its_retry_is_a_success(server, make_campaign, make_report):
    campaign = make_campaign()
    await server.store.create_campaign(campaign)
    reports = [make_report(campaign, number) for number in range(5)]
    for _ in range(3):
        assert await server.upload(campaign, reports) == (200, {"rejected": []})
    assert (await server.store.tally(campaign.id)).counts[0].tolist()[:6] == [1, 1, 1, 1, 1, 0]


async def test_only_failures_are_listed(server, make_campaign, make_report):
    campaign = make_campaign()
    await server.store.create_campaign(campaign)
    bad, other = make_report(campaign, 2, cell=64), make_report(campaign, 1, cell=9)
    await server.upload(campaign, [make_report(campaign, 1)])
    status, answer = await server.upload(campaign, [bad, other, make_report(campaign, 3)])
    assert status == 200
    assert answer == {"rejected": [[bad.id.hex(), "index-out-of-range"], [other.id.hex(), "conflicting-report"]]}
    assert await counted(server, campaign) == 2


REFUSED_BODIES = {
    "nothing": (b"", 400, "malformed-upload"),
    "text": (b"hello", 400, "malformed-upload"),
    "another version": (b"\x92\x02\x90", 400, "malformed-upload"),
    "no blocks": (b"\x92\x01\x90", 400, "malformed-upload"),
    "deep nesting": (b"\x91" * 5000, 400, "malformed-upload"),
}


@pytest.mark.parametrize("name", REFUSED_BODIES)
async def test_a_body_that_is_no_upload_is_refused(server, make_campaign, name):
    body, status, code = REFUSED_BODIES[name]
    campaign = make_campaign()
    await server.store.create_campaign(campaign)
    answered, problem = await server.upload(campaign, body)
    assert (answered, problem["code"], problem["status"]) == (status, code, status)
    assert await counted(server, campaign) == 0


REFUSED_HEADERS = {
    "another media type": ({"Content-Type": "application/json"}, 415, "wrong-media-type"),
    "compressed": ({"Content-Encoding": "gzip"}, 415, "compressed-body"),
    "marked as identity": ({"Content-Encoding": "identity"}, 415, "compressed-body"),
}


@pytest.mark.parametrize("name", REFUSED_HEADERS)
async def test_a_body_is_refused_by_its_headers(server, make_campaign, make_report, name):
    headers, status, code = REFUSED_HEADERS[name]
    campaign = make_campaign()
    await server.store.create_campaign(campaign)
    answered, problem = await server.upload(campaign, [make_report(campaign, 1)], **headers)
    assert (answered, problem["code"]) == (status, code)
    assert await counted(server, campaign) == 0


async def test_a_body_without_a_length_is_refused(server, make_campaign, make_report):
    from protocols import encode_upload

    campaign = make_campaign()
    await server.store.create_campaign(campaign)

    async def chunks():
        yield encode_upload([make_report(campaign, 1)])

    url = f"{server.public}/v1/campaigns/{campaign.id}/reports"
    async with server.session.post(url, data=chunks(), headers={"Content-Type": MEDIA_TYPE}) as answer:
        assert (answer.status, (await answer.json(content_type=None))["code"]) == (411, "length-required")
    assert await counted(server, campaign) == 0


async def test_too_many_bytes_or_reports_are_refused(serving, make_campaign, make_report):
    async with serving(limits={"body_bytes": 2048, "reports_per_upload": 20}) as server:
        campaign = make_campaign(128)
        await server.store.create_campaign(campaign)
        status, problem = await server.upload(campaign, [make_report(campaign, number) for number in range(21)])
        assert (status, problem["code"]) == (413, "too-many-reports")
        status, problem = await server.upload(campaign, b"x" * 2049)
        assert (status, problem["code"]) == (413, "body-too-large")
        assert await counted(server, campaign) == 0
        assert (await server.upload(campaign, [make_report(campaign, number) for number in range(20)]))[0] == 200


async def test_a_closed_campaign_refuses_with_its_own_code(server, make_campaign, make_report):
    campaign = make_campaign()
    await server.store.create_campaign(campaign)
    await server.upload(campaign, [make_report(campaign, 1)])
    await server.store.close_campaign(campaign.id)
    status, problem = await server.upload(campaign, [make_report(campaign, 2)])
    assert (status, problem["code"]) == (409, "campaign-closed")
    assert await counted(server, campaign) == 1


async def test_a_campaign_that_is_not_open_yet_refuses_with_its_own_code(server, make_campaign, make_report):
    campaign = make_campaign(opens="2100-01-01T00:00:00Z")
    await server.store.create_campaign(campaign)
    status, problem = await server.upload(campaign, [make_report(campaign, 2)])
    assert (status, problem["code"]) == (409, "campaign-not-open")
    assert await counted(server, campaign) == 0


@pytest.mark.parametrize("campaign_id", [UNKNOWN_ID, "short", "..%2F..", "A" * 44])
async def test_an_unknown_campaign_is_a_404_with_a_code(server, campaign_id):
    for path in ("", "/model"):
        async with server.session.get(f"{server.public}/v1/campaigns/{campaign_id}{path}") as answer:
            assert answer.status == 404
            assert answer.content_type == "application/problem+json"
            assert (await answer.json(content_type=None))["code"] in ("unknown-campaign", "not-found")


async def test_the_latest_model_is_served_and_revalidated(server, make_campaign):
    campaign = make_campaign()
    await server.store.create_campaign(campaign)
    url = f"{server.public}/v1/campaigns/{campaign.id}/model"
    async with server.session.get(url) as answer:
        assert (answer.status, (await answer.json(content_type=None))["code"]) == (404, "no-model")
    await server.store.publish_model(campaign.id, FIRST)
    async with server.session.get(url) as answer:
        first_tag = answer.headers["ETag"]
        assert (await answer.read(), answer.headers["Model-Version"]) == (FIRST.encode(), "1")
        assert first_tag == f'"{hashlib.sha256(FIRST.encode()).hexdigest()}"'
    async with server.session.get(url, headers={"If-None-Match": first_tag}) as answer:
        assert answer.status == 304
    await server.store.publish_model(campaign.id, SECOND)
    async with server.session.get(url, headers={"If-None-Match": first_tag}) as answer:
        assert (answer.status, await answer.read(), answer.headers["Model-Version"]) == (200, SECOND.encode(), "2")
    async with server.session.get(url, params={"version": "1"}) as answer:
        assert await answer.read() == FIRST.encode()
    async with server.session.get(url, params={"version": "3"}) as answer:
        assert (answer.status, (await answer.json(content_type=None))["code"]) == (404, "no-model")


@pytest.mark.parametrize(
    "query", ["version=0", "version=x", "version=1&version=2", "revision=1", "version=" + "9" * 30]
)
async def test_a_query_without_meaning_is_refused(server, make_campaign, query):
    campaign = make_campaign()
    await server.store.create_campaign(campaign)
    async with server.session.get(f"{server.public}/v1/campaigns/{campaign.id}/model?{query}") as answer:
        assert (answer.status, (await answer.json(content_type=None))["code"]) == (400, "malformed-query")


async def test_estimates_stand_still_between_releases_and_tell_what_they_reveal(server, make_campaign, make_report):
    campaign = make_campaign(privacy={"epsilon": 1.0, "discrete": "de", "release_every": 20})
    await server.store.create_campaign(campaign)

    async def told():
        url = f"{server.public}/v1/campaigns/{campaign.id}/estimates"
        async with server.session.get(url, headers=server.bearer("collector")) as answer:
            found = await answer.json()
        return found["questions"][0]["n"], found["published"]["reports"]

    seen = []
    for numbers in (range(19), range(19, 21), range(21, 40)):
        await server.upload(campaign, [make_report(campaign, number) for number in numbers])
        seen.append(await told())
    assert seen == [(0, 0), (21, 20), (21, 20)]


async def test_estimates_are_for_collectors_here_and_for_admins_on_their_listener(server, make_campaign, make_report):
    campaign = make_campaign(8)
    await server.store.create_campaign(campaign)
    await server.upload(campaign, [make_report(campaign, number, cell=0) for number in range(50)])
    ours = f"{server.public}/v1/campaigns/{campaign.id}/estimates"
    theirs = f"{server.admin}/admin/v1/campaigns/{campaign.id}/estimates"
    for url, scope in ((ours, "collector"), (theirs, "admin")):
        async with server.session.get(url, headers=server.bearer(scope), params={"post": "none"}) as answer:
            assert answer.status == 200
            question = (await answer.json())["questions"][0]
            assert question["n"] == 50
    async with server.session.get(url, headers=server.bearer("admin"), params={"post": "magic"}) as answer:
        assert (answer.status, (await answer.json(content_type=None))["code"]) == (400, "malformed-query")


async def test_uploads_can_be_kept_for_relays(serving, make_campaign, make_report):
    async with serving(uploads_need_token=True) as server:
        campaign = make_campaign()
        await server.store.create_campaign(campaign)
        status, problem = await server.upload(campaign, [make_report(campaign, 1)])
        assert (status, problem["code"]) == (401, "missing-token")
        status, problem = await server.upload(campaign, [make_report(campaign, 1)], **server.bearer("collector"))
        assert (status, problem["code"]) == (403, "wrong-scope")
        assert await counted(server, campaign) == 0
        assert (await server.upload(campaign, [make_report(campaign, 1)], **server.bearer("relay")))[0] == 200


async def test_paths_and_methods_that_do_not_exist_are_problems_too(server, make_campaign):
    async with server.session.get(f"{server.public}/nothing/here") as answer:
        assert (answer.status, (await answer.json(content_type=None))["code"]) == (404, "not-found")
    async with server.session.delete(f"{server.public}/v1/campaigns/{make_campaign().id}") as answer:
        assert (answer.status, (await answer.json(content_type=None))["code"]) == (405, "method-not-allowed")
        assert "GET" in answer.headers["Allow"]
    async with server.session.get(f"{server.public}/admin/v1/campaigns", headers=server.bearer("admin")) as answer:
        assert answer.status == 404
