"""The page that explains local privacy by doing, in real browsers, from a folder and from an aggregator."""

import asyncio
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from firefox import open_firefox

from ldp_aggregator import NaiveBayes, Tally, estimate, train
from ldp_protocols import Campaign, decode_upload
from ldp_simulations.experiment import temporary_aggregator

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "try" / "index.html").as_uri()
TABLES = json.loads((ROOT / "javascript" / "try" / "tables.json").read_text(encoding="utf-8"))
BYTES = re.compile(r"^[0-9a-f ]{77}$")


class Page:
    """What a reader does on the page, and what it says."""

    def __init__(self, browser, address=PAGE):
        self.browser = browser
        browser.open("about:blank")
        browser.open(address)
        browser.wait(lambda: browser.one('[data-act="answer"]').is_enabled())

    def press(self, act):
        self.browser.click(f'[data-act="{act}"]')

    def turn(self, selector, value=None):
        self.browser.driver.execute_script(
            "const one = document.querySelector(arguments[0]);"
            "if (arguments[1] === null) one.checked = true; else one.value = arguments[1];"
            "one.dispatchEvent(new Event('input', {bubbles: true}))",
            selector,
            value,
        )

    def said(self, name):
        return self.browser.one(f'[data-out="{name}"]').get_attribute("textContent")

    def answered(self):
        """Wait until everybody has answered."""
        self.browser.wait(lambda: self.browser.driver.execute_script("return document.body.dataset.done"))

    def tally(self):
        """The campaign that was answered, and what the page says that it counted."""
        head, *lines = self.said("tally").splitlines()
        id_ = head.removeprefix("campaign ")
        text = next(one[1] for table in TABLES for one in table["documents"].values() if one[0] == id_)
        tally = Tally(Campaign.parse(text.encode(), id_))
        for place, line in enumerate(lines):
            n, counts = line.rpartition(": ")[2].split(" answers, ")
            tally.n[place] = int(n)
            tally.counts[place][:] = list(map(int, counts.split()))
        return tally


def right(table, model):
    """The share of the people held out that a model names rightly, in whole hundredths."""
    rows = [(digits, number) for digits, number in table["held_out"] for _ in range(number)]
    frame = {
        one["name"]: [one["values"][int(digits[i])] for digits, _ in rows] for i, one in enumerate(table["features"])
    }
    labels = np.array([table["label"]["values"][int(digits[-1])] for digits, _ in rows])
    return float((model.predict(pd.DataFrame(frame)) == labels).mean())


def test_what_the_page_shows_is_what_the_aggregator_makes_of_the_same_counts(browser):
    page = Page(browser)
    for table, place in ((TABLES[0], 4), (TABLES[2], 2)):
        page.turn(f'input[value="{table["name"]}"]')
        page.turn('[data-set="devices"]', str(place))
        page.answered()
        tally = page.tally()
        assert tally.n.sum() == (1000, 2000, 5000, 10000, 20000)[place]
        found = estimate(tally.campaign, tally).questions[1].cells
        shown = [re.match(r"(-?[\d.]+) ± ([\d.]+)", one.text).groups() for one in browser.all(".shares .num")]
        reach = np.maximum(found.high - found.value, found.value - found.low)
        for (value, of), wanted, its_reach in zip(shown, found.value, reach, strict=True):
            digit = 0.0501 if "." in of else 0.501
            assert (float(value), float(of)) == pytest.approx((100 * wanted, 100 * its_reach), abs=digit)
        model: NaiveBayes = train(tally.campaign, tally)
        assert float(page.said("right")) == pytest.approx(100 * right(table, model), abs=0.501)
    assert browser.complaints() == []


def test_a_device_answers_with_the_bytes_that_a_server_reads_and_says_no_to_a_second_time(browser):
    page = Page(browser)
    page.press("answer")
    browser.wait(lambda: "The server heard" in page.said("belief"))
    sent = page.said("bytes")
    assert BYTES.fullmatch(sent)
    campaign = Campaign.parse(TABLES[0]["documents"]["local 1"][1].encode(), TABLES[0]["documents"]["local 1"][0])
    [block] = decode_upload(bytes.fromhex(sent), campaign)
    question = campaign.questions[block.question]
    cell = block.payloads[0]
    values = (
        [None]
        if question.feature is None
        else next(one["values"] for one in TABLES[0]["features"] if one["name"] == question.feature)
    )
    classes = TABLES[0]["label"]["values"]
    heard = ", ".join(filter(None, (values[cell // len(classes)], classes[cell % len(classes)])))
    assert f"“{heard}”" in page.said("sent")
    assert f"The server heard “{heard}”" in page.said("belief")
    page.press("again")
    browser.wait(lambda: "Had it sent 5 answers" in page.said("belief"))
    assert (page.said("sent"), page.said("bytes")) == ("nothing more: your device said No", "")
    page.press("again")
    browser.wait(lambda: "Had it sent 10 answers" in page.said("belief"))
    page.press("lie")
    browser.wait(lambda: "You told it" in page.said("truth"))
    assert "A lie looks like noise" in page.said("hint")
    page.press("other")
    browser.wait(lambda: page.said("sent") == "nothing yet")
    assert browser.complaints() == []


def test_the_last_turn_of_a_dial_is_the_one_that_counts(browser):
    page = Page(browser)
    for epsilon in ("0", "6", "3", "5", "1"):
        page.turn('[data-set="epsilon"]', epsilon)
    page.turn('[data-set="devices"]', "1")
    page.answered()
    tally = page.tally()
    assert (tally.campaign.privacy.epsilon, tally.n.sum()) == (0.5, 2000)
    assert page.said("count").startswith("2,000 of 2,000 devices have answered, with 52 kB in all.")
    assert "even odds become 1.6 to 1" in browser.text('[data-note="epsilon"]')


def test_a_seed_draws_the_same_people_and_the_same_noise(browser):
    counted = []
    for seed in ("7", "7", "8"):
        page = Page(browser, f"{PAGE}#seed={seed}")
        page.turn('[data-set="devices"]', "0")
        page.answered()
        counted.append(page.said("tally"))
    assert counted[0] == counted[1] != counted[2]


def test_of_a_crowd_nothing_is_shown_before_all_of_it_has_answered(browser):
    page = Page(browser)
    page.turn('[data-set="devices"]', "0")
    page.answered()
    browser.driver.execute_script(
        "window.told = []; const said = (name) => document.querySelector(`[data-out=${name}]`).textContent;"
        "new MutationObserver(() => window.told.push([said('count'), said('right')]))"
        ".observe(document.body, {subtree: true, childList: true})"
    )
    page.turn('[value="crowd"]')
    browser.wait(lambda: "crowd" not in page.said("count") and page.said("right") != "?")
    page.answered()
    told = browser.driver.execute_script("return window.told")
    assert all(shown == "?" for count, shown in told if "until the crowd is complete" in count)
    assert page.tally().campaign.privacy.crowd.devices == 1000
    assert "If relay and server worked together" in browser.text('[data-note="way"]')


@pytest.mark.parametrize("width", [320, 390, 1280])
def test_no_row_grows_and_no_number_leaves_its_column_when_estimates_come(browser, width):
    browser.resize(width)
    page = Page(browser)
    heights = "return [...document.querySelectorAll('.shares li')].map((one) => one.getBoundingClientRect().height)"
    before = browser.driver.execute_script(heights)
    page.turn('[data-set="epsilon"]', "0")  # the most noise there is
    page.turn('[data-set="devices"]', "0")
    page.answered()
    assert browser.driver.execute_script(heights) == before
    wide = "[...document.querySelectorAll('.num')].filter((one) => one.scrollWidth > one.clientWidth + 1)"
    assert browser.driver.execute_script(f"return {wide}.map((one) => one.textContent)") == []


def test_liars_are_counted_and_what_they_say_is_seen(browser):
    page = Page(browser)
    page.turn('[data-set="epsilon"]', "6")
    page.answered()
    honest = page.tally()
    page.turn('[data-set="liars"]', "20")
    page.answered()
    shares = [tally.counts[1].reshape(-1, 2).sum(axis=0)[1] / tally.n[1] for tally in (honest, page.tally())]
    assert shares[1] - shares[0] > 0.08  # 0.12 is expected, with a deviation of 0.012


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_holds_for_screen_readers_and_on_small_screens_before_and_after(browser, scheme):
    for width in (1280, 320):
        browser.resize(width, scheme=scheme)
        page = Page(browser)
        assert browser.violations() == []
        page.press("answer")
        page.turn('[data-set="devices"]', "0")
        page.answered()
        browser.click("summary")
        assert browser.violations() == []
        assert browser.driver.execute_script("return document.documentElement.scrollWidth <= innerWidth")


def test_all_of_it_is_reached_by_keys_and_the_focus_is_seen(browser):
    Page(browser)
    stops = browser.stops()
    # Of a choice the ring is around its label.
    assert [one for one in stops if one.endswith("UNSEEN") and not re.search(" input (table|way) ", one)] == []
    named = " ".join(stops)
    for name in ("Answer", "Be somebody else", "Lie", "What if I answer again?", "people answer", "For those who"):
        assert name in named
    assert sum(" input " in one for one in stops) >= 6  # four dials, of which one twice, and two sets of choices


def test_nothing_is_asked_of_anybody_but_the_three_files(browser):
    page = Page(browser)
    page.press("answer")
    page.turn('[data-set="devices"]', "0")
    page.answered()
    asked = {one.rpartition("/")[2] for one in browser.requested() if one.startswith("file:")}
    assert asked == {"index.html", "try.css", "try.js"}
    blocked = browser.driver.execute_async_script(
        "const done = arguments[0]; fetch('https://example.org/').then(() => done('sent'), () => done('refused'))"
    )
    assert blocked == "refused"


def test_an_aggregator_offers_it_and_a_campaigns_page_leads_to_it(browser, monkeypatch):
    monkeypatch.setenv("LDP_AGGREGATOR_TRY_PAGE", "true")
    with temporary_aggregator() as aggregator:
        page = Page(browser, f"{aggregator.url}/try")
        page.press("answer")
        browser.wait(lambda: "The server heard" in page.said("belief"))
        page.turn('[data-set="devices"]', "0")
        page.answered()
        assert browser.complaints() == []


def test_everybody_answers_in_firefox_too_from_a_folder():
    async def answered():
        async with open_firefox() as tab:
            if tab is None:
                return None
            await tab.open(PAGE)
            await tab.evaluate("document.querySelector('[data-act=answer]').click()")
            await tab.evaluate("document.querySelector('[data-act=run]').click()")
            done = "document.body.dataset.done ? kept(true) : setTimeout(look, 50)"
            await tab.evaluate(f"new Promise(kept => {{ const look = () => {done}; look(); }})")
            text = "document.querySelector('[data-out={}]').textContent"
            return [await tab.evaluate(text.format(name)) for name in ("count", "right", "belief")]

    told = asyncio.run(answered())
    if told is None:
        pytest.skip("there is no Firefox; on Debian: apt-get install firefox-esr")
    count, guessed, belief = told
    assert count.startswith("20,000 of 20,000 devices have answered, with 520 kB")
    assert 74 < int(guessed) < 84
    assert "The server heard" in belief
