"""Pages for everybody: the one that explains local privacy by doing is served where the operator wants it only."""

from pathlib import Path

import aiohttp
import pytest

from ldp_aggregator.dashboard import public

FILES = {"index.html": "text/html", "try.css": "text/css", "try.js": "text/javascript"}


async def got(address):
    """Status, headers and text, as somebody without a session gets them."""
    async with aiohttp.ClientSession() as nobody, nobody.get(address, allow_redirects=False) as answer:
        return answer.status, answer.headers, await answer.text()


async def test_the_page_to_try_is_not_there_by_default_and_nothing_links_to_it(dashboard):
    campaign = await dashboard.publish()
    for path in ("/try", "/try/", "/try/try.js"):
        assert (await got(dashboard.public + path))[0] == 404
    assert "/try/" not in (await got(f"{dashboard.public}/c/{campaign.id}"))[2]


async def test_the_page_to_try_is_served_with_its_files_and_a_policy_that_lets_it_send_nothing(dashboards):
    async with dashboards(try_page=True) as dashboard:
        campaign = await dashboard.publish()
        assert '<a href="/try/">' in (await got(f"{dashboard.public}/c/{campaign.id}"))[2]
        status, headers, _ = await got(f"{dashboard.public}/try")
        assert (status, headers["Location"]) == (308, "/try/")
        folder = Path(public.__file__).parent / "static" / "try"
        assert sorted(FILES) == sorted(file.name for file in folder.iterdir())
        for name, kind in {"": "text/html", **FILES}.items():
            status, headers, text = await got(f"{dashboard.public}/try/{name}")
            assert (status, headers["Content-Type"]) == (200, f"{kind}; charset=utf-8")
            assert text == (folder / (name or "index.html")).read_text(encoding="utf-8")
            policy = dict(part.split(" ", 1) for part in headers["Content-Security-Policy"].split("; "))
            assert (policy["default-src"], policy["worker-src"]) == ("'none'", "blob:")
            assert "connect-src" not in policy
            assert (headers["X-Content-Type-Options"], "Set-Cookie" in headers) == ("nosniff", False)
        assert (await dashboard.get("/try/"))[0] == 404, "operators' listener has no page for everybody"


@pytest.mark.parametrize("name", ["nothing.js", "..%2fpages.css", "%2e%2e%2flab.js", "x/y"])
async def test_nothing_but_the_pages_own_files_is_served_below_it(dashboards, name):
    async with dashboards(try_page=True) as dashboard:
        assert (await got(f"{dashboard.public}/try/{name}"))[0] == 404
