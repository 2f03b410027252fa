"""A busy company's pages as its people see them: what a first screen says, how long pages are, how heavy, and whether
anything is cut or overlaps at any width.
"""

import time

import pytest
from browsing import CUT, open_browser
from busy_world import busy_world

from ldp_aggregator.dashboard.campaigns import TABS
from ldp_simulations.experiment import temporary_aggregator

WIDTHS = (1280, 768, 390)
MOST_HEIGHT = 2_600
"""Pixels of a page at 1280."""
FIRST_SCREEN = 800
MOST_ROW = 64
MOST_BYTES = 100_000
"""Of a page with all that it loads."""

# Pairs of texts that lie over each other, line by line, in the page or within one plot.
OVERLAPPING = """
const lines = [...document.querySelectorAll("main *, header *")]
  .filter((one) => one.checkVisibility() && !one.closest(".hidden, .skip, .scroll"))
  .flatMap((one) => [...one.childNodes].filter((part) => part.nodeType === 3 && part.textContent.trim()))
  .flatMap((text) => {
    const range = document.createRange();
    range.selectNodeContents(text);
    const foot = text.parentElement.getBoundingClientRect().bottom + 2;  // Below it a long title is clamped.
    return [...range.getClientRects()].filter((box) => box.bottom < foot).map((box) => [text, box]);
  });
const over = ([one, a], [other, b]) => one !== other
  && Math.min(a.right, b.right) - Math.max(a.left, b.left) > 2
  && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 4;
const found = new Set(), name = ([one]) => one.textContent.trim().slice(0, 60);
lines.forEach((one, place) => lines.slice(place + 1).forEach((other) => {
  if (over(one, other)) found.add(`${name(one)} | ${name(other)}`);
}));
return [...found];
"""
# Text of a plot that its picture cuts off.
BEYOND = """
return [...document.querySelectorAll("svg.plot text")].filter((one) => {
  const text = one.getBoundingClientRect(), plot = one.ownerSVGElement.getBoundingClientRect();
  return text.left < plot.left - 1 || text.right > plot.right + 1 || text.bottom > plot.bottom + 1;
}).map((one) => one.textContent);
"""
WEIGHT = """
return performance.getEntries().filter((one) => one.decodedBodySize !== undefined)
  .reduce((sum, one) => sum + one.decodedBodySize, 0);
"""


@pytest.fixture(scope="module")
def world():
    """The server, and the addresses of the pages of each of its campaigns and of the server itself."""
    with temporary_aggregator() as running:
        ids = busy_world(running)
        admin, campaigns = running.admin_url, f"{running.admin_url}/campaigns"
        pages = {
            "list": f"{admin}/",
            **{name: f"{campaigns}/{one}" for name, one in ids.items()},
            **{f"wide {tab}": f"{campaigns}/{ids['wide']}/{tab}" for tab in TABS[1:]},
            **{f"attacked {tab}": f"{campaigns}/{ids['attacked']}/{tab}" for tab in TABS[1:]},
            "wide feature": f"{campaigns}/{ids['wide']}?feature=1",
            "good feature": f"{campaigns}/{ids['good']}?feature=1&lied=1",
            "series feature": f"{campaigns}/{ids['series']}?feature=0",
            **{name: f"{admin}/{name}" for name in ("health", "tokens", "federation", "campaigns/new")},
        }
        yield running, pages


@pytest.fixture(scope="module")
def tab(world):
    running, _ = world
    with open_browser() as opened:
        opened.sign_in(running)
        yield opened
        assert opened.foreign() == []


def height(tab, selector="html"):
    return tab.driver.execute_script("return document.querySelector(arguments[0]).scrollHeight", selector)


def test_a_first_screen_answers_what_was_learned_how_good_healthy_and_attacked(tab, world):
    _, pages = world
    tab.resize(1280, FIRST_SCREEN)
    told = {
        "good": ("income tells most", " % right", "Healthy", "No sign of it"),
        "unmeasured": ("income tells most", "Not measured", "Healthy", "No sign of it"),
        "weak": ("Too little to tell", "Not published", "Too few answers", "No sign of it"),
        "none": ("Too little to tell", "Not published", "No answers yet", "Nothing to say yet"),
        "three": ("Too little to tell", "Not published", "Too few answers", "No sign of it"),
        "closed": ("income tells most", "Not published", "Closed", "No sign of it"),
        "attacked": ("income tells most", "Not measured", "Answers are refused", "150 contradictions"),
        "series": ("“yes” at ", "Not measured", "Healthy", "No sign of it"),
        "wide": (" tells most", "Not measured", "Healthy", "No sign of it"),
        "evaluation": (" % right", "Healthy", "No sign of it"),
    }
    for name, answers in told.items():
        tab.open(pages[name])
        found = [one.text for one in tab.all(".answers dt + dd")]
        assert [part for part, text in zip(answers, found, strict=True) if part not in text] == [], (name, found)
        foot = tab.driver.execute_script("return document.querySelector('.answers').getBoundingClientRect().bottom")
        assert foot < FIRST_SCREEN, name
        if name in ("three", "none", "weak"):
            assert "Fine" not in tab.text(".answers")
    tab.open(pages["unmeasured"])
    assert "At least " in tab.text(".answers")
    assert "if features are independent" in tab.text(".answers")
    assert tab.one(".answers form button").text == "Measure it: draft an evaluation"


def test_the_list_has_a_row_a_campaign_what_needs_somebody_first_and_what_is_closed_last(tab, world):
    _, pages = world
    tab.resize(1280)
    tab.open(pages["list"])
    rows = tab.all(".list tbody tr")
    assert len(rows) == 10
    assert "Somebody attacks this one" in rows[0].text
    assert "Act" in rows[0].text
    assert "It is over" in rows[-1].text
    assert max(row.size["height"] for row in rows) <= MOST_ROW


SPREAD = "return document.documentElement.scrollWidth"


def fits(tab, width):
    """Whether nothing is wider, within seconds: a busy browser lays a page out after it says that it is there."""
    until = time.monotonic() + 10
    while (too_wide := tab.driver.execute_script(SPREAD) > width) and time.monotonic() < until:
        time.sleep(0.1)
    return not too_wide


def test_no_page_is_longer_than_three_screens_heavier_than_a_picture_cut_or_overlapping(tab, world):
    _, pages = world
    for name, address in pages.items():
        for width in WIDTHS:
            tab.resize(width, scheme="light" if width == 768 else "dark")
            tab.open(address)
            assert fits(tab, width), (name, width)
            if width == 1280:
                assert height(tab) <= MOST_HEIGHT, name
                assert tab.driver.execute_script(WEIGHT) < MOST_BYTES, name
            for wrong in (CUT, OVERLAPPING, BEYOND):
                assert tab.driver.execute_script(wrong) == [], (name, width, wrong[:40])
    assert [one for one in tab.complaints() if "404" not in one] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nobody_is_shut_out_of_a_busy_companys_pages(tab, world, scheme):
    _, pages = world
    tab.resize(1280, scheme=scheme)
    for name in ("list", "good", "attacked", "series", "wide", "evaluation", "good feature", "health"):
        tab.open(pages[name])
        assert tab.violations() == [], name
