"""Pages of other origins: who may upload and read, and that nothing more is allowed than that."""

import pytest
from cells import reports_of

from ldp_aggregator.server.apps import origin_headers, preflight_headers
from ldp_aggregator.service.settings import Settings, read_settings
from ldp_protocols import LdpError, encode_upload
from ldp_protocols.wire import MEDIA_TYPE

PAGE, OTHER = "https://app.example.org", "https://evil.example"
ALLOWED = "Access-Control-Allow-Origin"
ASKING = {"Origin": PAGE, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"}


@pytest.fixture
async def shared(serving):
    """A server that allows one page, its campaign's address, and the campaign."""
    async with serving(allowed_origins=(PAGE,)) as server:
        campaign = await server.publish()
        yield server, f"{server.public}/v1/campaigns/{campaign.id}", campaign


async def test_a_preflight_is_answered_for_a_page_that_is_allowed_and_remembered_long(shared):
    server, url, _ = shared
    answer = await server.ask("OPTIONS", url + "/reports", headers=ASKING)
    headers = answer.headers
    assert (answer.status, answer.content, headers[ALLOWED]) == (204, b"", PAGE)
    assert headers["Access-Control-Allow-Methods"] == "POST"
    allowed = headers["Access-Control-Allow-Headers"].lower()
    assert {"authorization", "content-type"} <= set(allowed.split(", "))  # an answer token, and the upload
    assert int(headers["Access-Control-Max-Age"]) >= 7200
    assert (headers["Vary"], headers["X-Content-Type-Options"]) == ("Origin", "nosniff")
    assert "Access-Control-Allow-Credentials" not in headers
    no_preflight = await server.ask("OPTIONS", url + "/reports", headers={"Origin": PAGE})
    assert (no_preflight.status, no_preflight.headers["Allow"]) == (405, "POST")


@pytest.mark.parametrize("origin", [OTHER, "null", PAGE + "/", PAGE.upper(), PAGE + ".evil.example"])
async def test_no_other_page_is_let_in(shared, origin):
    server, url, _ = shared
    changes = {"Origin": origin}
    answer = await server.ask("OPTIONS", url + "/reports", headers=ASKING | changes)
    assert (answer.status, answer.headers.get(ALLOWED)) == (405, None)
    answer = await server.ask("GET", url, headers=changes)
    assert (answer.status, answer.headers.get(ALLOWED)) == (200, None)
    assert answer.headers["Vary"] == "Origin", "a cache must not hand this answer to the page that is allowed"


async def test_a_page_reads_the_document_the_answers_to_its_uploads_and_their_problems(shared):
    server, url, campaign = shared
    asked = {"headers": {"Origin": PAGE}}
    answer = await server.ask("GET", url, **asked)
    assert (answer.content, answer.headers[ALLOWED]) == (campaign.document, PAGE)
    assert "ETag" in answer.headers["Access-Control-Expose-Headers"]
    model = await server.ask("GET", url + "/model", **asked)
    assert (model.status, model.headers[ALLOWED]) == (404, PAGE)
    for one in (answer, model):
        assert one.headers["Cross-Origin-Resource-Policy"] == "cross-origin"
    answer = await server.ask("GET", f"{server.public}/v1/directories/{'A' * 43}", **asked)
    assert (answer.status, answer.headers[ALLOWED]) == (404, PAGE), "a page may pin the publisher's key"
    headers = {"Origin": PAGE, "Content-Type": MEDIA_TYPE}
    for body, status in ((b"nonsense", 400), (encode_upload(reports_of(campaign, [1]), campaign), 200)):
        answer = await server.ask("POST", url + "/reports", data=body, headers=headers)
        assert (answer.status, answer.headers[ALLOWED]) == (status, PAGE)
        assert "Retry-After" in answer.headers["Access-Control-Expose-Headers"]
        assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin", "it is embedded nowhere"


async def test_what_needs_a_token_and_the_admin_listener_are_for_no_page(shared):
    server, url, _ = shared
    for address in (url + "/estimates", "/admin/v1/campaigns"):
        answer = await server.ask("OPTIONS", address, headers=ASKING)
        assert (answer.status, answer.headers.get(ALLOWED)) == (405, None)
        assert ALLOWED not in (await server.ask("GET", address, headers={"Origin": PAGE})).headers


async def test_without_a_setting_no_page_is_allowed_and_no_answer_varies(server):
    url = f"{server.public}/v1/campaigns/{(await server.publish()).id}"
    assert (await server.ask("OPTIONS", url + "/reports", headers=ASKING)).status == 405
    answer = await server.ask("GET", url, headers={"Origin": PAGE})
    assert not {ALLOWED, "Vary"} & set(answer.headers)


def test_origins_are_read_from_the_environment_and_where_all_are_allowed_answers_are_the_same_for_all(monkeypatch):
    monkeypatch.setenv("LDP_AGGREGATOR_ALLOWED_ORIGINS", f'["{PAGE}", "http://localhost:5173"]')
    for settings in (read_settings(), Settings()):
        assert settings.allowed_origins == (PAGE, "http://localhost:5173")
    assert origin_headers({"*"}, None) == origin_headers({"*"}, OTHER)
    assert origin_headers({"*"}, OTHER)[ALLOWED] == "*"
    assert "Vary" not in preflight_headers({"*"}, OTHER, "POST")


@pytest.mark.parametrize("origin", ["app.example.org", PAGE + "/", PAGE + "/path", "https://a,https://b", "https://*"])
def test_what_no_browser_sends_as_its_origin_is_refused(origin, monkeypatch):
    with pytest.raises(LdpError, match="origin"):
        read_settings(flags={"allowed_origins": (origin,)})
