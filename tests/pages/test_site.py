"""The site that ``make docs`` builds: nothing in it is loaded from elsewhere, and its pages open in a real browser."""

import functools
import http.server
import importlib
import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "build" / "docs"
LOADED = re.compile(
    r"<(?!a\s)\w[^>]*\s(?:src|srcset|href|xlink:href|data|poster)=[\"']?(?:[^\"'>]*,\s*)?((?:https?:)?//[^\s\"'>]+)"
)
"""What a browser fetches from another host without being asked; an ``a`` is followed by a person."""

OF_STYLES = re.compile(r"(?:\burl\(|@import)\s*[\"']?((?:https?:)?//[^\s\"')]+)")
WIDTHS = (320, 390, 1280, 1920)

FIGURES = """
return [...document.querySelectorAll("article img[src$='.svg']")].map(picture => {
  return [picture.getBoundingClientRect().width, picture.closest("p").clientWidth + 0.5];
});
"""
"""Widths of each figure and of the box that it stands in."""


@pytest.fixture(scope="module")
def pages() -> list[Path]:
    if not (SITE / "index.html").is_file():
        pytest.skip("the site is not built; make docs builds it")
    return sorted(SITE.rglob("*.html"))


def test_no_page_and_no_style_loads_anything_from_another_host(pages):
    styles = list(SITE.rglob("*.css"))
    assert len(pages) > 30
    assert styles
    for file in (*pages, *styles):
        text = file.read_text(encoding="utf-8")
        assert LOADED.findall(text) + OF_STYLES.findall(text) == [], file.name


def test_the_site_has_less_than_six_million_bytes(pages):
    assert sum(file.stat().st_size for file in SITE.rglob("*") if file.is_file()) < 6_000_000


def test_every_name_that_a_package_hands_on_is_in_the_reference(pages):
    for name in ("ldp_client", "ldp_protocols", "ldp_aggregator", "ldp_aggregator.trainers", "ldp_simulations"):
        package, page = importlib.import_module(name), name.rpartition(".")[2].removeprefix("ldp_")
        html = (SITE / "reference" / f"{page}.html").read_text(encoding="utf-8")
        missing = [name for name in package.__all__ if not re.search(rf'<h3 id="[\w.]*\b{name}"', html)]
        assert missing == [], page
        assert not re.search(r":(?:class|func|meth|mod|data):<code>", html)


def test_every_command_is_in_the_reference(pages):
    from ldp_aggregator.cli.common import ABOUT

    html = (SITE / "reference" / "commands.html").read_text(encoding="utf-8")
    assert [name for name in ABOUT if f"usage: ldp-aggregator {name} " not in html] == []
    for command in ("ldp-client contribute", "ldp-simulate plan", "ldp-issuer"):
        assert f"usage: {command} " in html


@pytest.fixture(scope="module")
def address(pages) -> Iterator[str]:
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=SITE)) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture
def browser():
    from browsing import open_browser  # Here, because all of it is skipped where there is no selenium.

    with open_browser() as opened:
        yield opened


@pytest.mark.timeout(900)  # every page at six widths
def test_every_page_opens_in_a_browser_without_other_hosts_complaints_or_sideways_scrolling(pages, address, browser):
    figures = 0
    for page in pages:
        for width in WIDTHS:
            browser.resize(width)
            browser.open(f"{address}/{page.relative_to(SITE)}")
            wide = browser.driver.execute_script("return document.documentElement.scrollWidth - innerWidth")
            assert wide <= 0, f"{page.name} at {width} pixels"
            boxes = browser.driver.execute_script(FIGURES)
            figures += len(boxes)
            assert all(0 < picture <= box for picture, box in boxes), f"a figure of {page.name} at {width} pixels"
    assert figures > 2 * len(WIDTHS)
    broken = browser.driver.execute_script("return [...document.images].filter(i => !i.naturalWidth).length")
    assert broken == 0
    assert browser.foreign() == []
    assert browser.complaints() == []


@pytest.mark.parametrize("opened", ["over HTTP", "from its folder"])
def test_the_search_finds_what_is_on_a_page(pages, address, opened, browser):
    browser.resize(1280)
    browser.open(f"{address if opened == 'over HTTP' else SITE.as_uri()}/index.html?q=federate")
    browser.wait(lambda: browser.one(".md-search-result__item a").get_attribute("href"))
    assert [one for one in browser.foreign() if not one.startswith(SITE.as_uri())] == []
