"""Pages of other origins: who may upload and read, and that nothing more is allowed than that."""

from __future__ import annotations

import pytest

from ldp_aggregator.server.app import origin_headers, preflight_headers
from ldp_aggregator.service.settings import Settings, SettingsError, read_settings
from protocols import encode_upload
from protocols.wire import MEDIA_TYPE

PAGE, OTHER = "https://app.example.org", "https://evil.example"
ALLOWED = "Access-Control-Allow-Origin"
ASKING = {"Origin": PAGE, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"}


@pytest.fixture
async def shared(serving, make_campaign):
    """A server that allows one page, its campaign's address, and the campaign."""
    async with serving(allowed_origins=(PAGE,)) as server:
        campaign = make_campaign()
        await server.store.create_campaign(campaign)
        yield server, f"{server.public}/v1/campaigns/{campaign.id}", campaign


async def test_a_preflight_is_answered_for_a_page_that_is_allowed_and_remembered_long(shared):
    server, url, _ = shared
    async with server.session.options(url + "/reports", headers=ASKING) as answer:
        assert (answer.status, await answer.read()) == (204, b"")
        assert answer.headers[ALLOWED] == PAGE
        assert answer.headers["Access-Control-Allow-Methods"] == "POST"
        assert "content-type" in answer.headers["Access-Control-Allow-Headers"].lower()
        assert int(answer.headers["Access-Control-Max-Age"]) >= 7200
        assert answer.headers["Vary"] == "Origin"
        assert "Access-Control-Allow-Credentials" not in answer.headers
        assert answer.headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize("origin", [OTHER, "null", PAGE + "/", PAGE.upper(), PAGE + ".evil.example"])
async def test_no_other_page_is_let_in(shared, origin):
    server, url, _ = shared
    changes = {"Origin": origin}
    async with server.session.options(url + "/reports", headers=ASKING | changes) as answer:
        assert answer.status == 405
        assert ALLOWED not in answer.headers
    async with server.session.get(url, headers=changes) as answer:
        assert answer.status == 200
        assert ALLOWED not in answer.headers
        assert answer.headers["Vary"] == "Origin", "a cache must not hand this answer to the page that is allowed"


async def test_options_that_are_no_preflight_are_refused_as_ever(shared):
    server, url, _ = shared
    async with server.session.options(url + "/reports", headers={"Origin": PAGE}) as answer:
        assert (answer.status, answer.headers["Allow"]) == (405, "POST")


async def test_a_page_reads_the_document_the_answers_to_its_uploads_and_their_problems(shared, make_report):
    server, url, campaign = shared
    async with server.session.get(url, headers={"Origin": PAGE}) as answer:
        assert await answer.read() == campaign.document
        assert answer.headers[ALLOWED] == PAGE
        assert "ETag" in answer.headers["Access-Control-Expose-Headers"]
        assert answer.headers["Cross-Origin-Resource-Policy"] == "cross-origin"
    async with server.session.get(url + "/model", headers={"Origin": PAGE}) as answer:
        assert (answer.status, answer.headers[ALLOWED]) == (404, PAGE)
        assert answer.headers["Cross-Origin-Resource-Policy"] == "cross-origin"
    async with server.session.get(f"{server.public}/v1/directories/{'A' * 43}", headers={"Origin": PAGE}) as answer:
        assert (answer.status, answer.headers[ALLOWED]) == (404, PAGE), "a page may pin the publisher's key"
    for body, status in ((b"nonsense", 400), (None, 200)):
        headers = {"Origin": PAGE, "Content-Type": MEDIA_TYPE}
        data = body or encode_upload([make_report(campaign, 1)])
        async with server.session.post(url + "/reports", data=data, headers=headers) as answer:
            assert (answer.status, answer.headers[ALLOWED]) == (status, PAGE)
            assert "Retry-After" in answer.headers["Access-Control-Expose-Headers"]


async def test_what_needs_a_token_and_the_admin_listener_are_for_no_page(shared):
    server, url, _ = shared
    for address in (url + "/estimates", server.admin + "/admin/v1/campaigns"):
        async with server.session.options(address, headers=ASKING) as answer:
            assert answer.status == 405
            assert ALLOWED not in answer.headers
        async with server.session.get(address, headers={"Origin": PAGE}) as answer:
            assert ALLOWED not in answer.headers


async def test_without_a_setting_no_page_is_allowed_and_no_answer_varies(server, make_campaign):
    campaign = make_campaign()
    await server.store.create_campaign(campaign)
    url = f"{server.public}/v1/campaigns/{campaign.id}"
    async with server.session.options(url + "/reports", headers=ASKING) as answer:
        assert answer.status == 405
    async with server.session.get(url, headers={"Origin": PAGE}) as answer:
        assert ALLOWED not in answer.headers
        assert "Vary" not in answer.headers


def test_every_page_may_be_allowed_and_then_answers_are_the_same_for_all():
    assert origin_headers({"*"}, None) == origin_headers({"*"}, OTHER)
    assert origin_headers({"*"}, OTHER)[ALLOWED] == "*"
    assert "Vary" not in preflight_headers({"*"}, OTHER, "POST")


@pytest.mark.parametrize("origin", ["app.example.org", PAGE + "/", PAGE + "/path", "https://a,https://b", "https://*"])
def test_what_no_browser_sends_as_its_origin_is_refused(origin, monkeypatch):
    with pytest.raises(SettingsError, match="origin"):
        read_settings(flags={"allowed_origins": (origin,)})


def test_origins_are_read_from_the_environment(monkeypatch):
    monkeypatch.setenv("LDP_AGGREGATOR_ALLOWED_ORIGINS", f'["{PAGE}", "http://localhost:5173"]')
    assert read_settings().allowed_origins == (PAGE, "http://localhost:5173")
    assert Settings().allowed_origins == (PAGE, "http://localhost:5173")
