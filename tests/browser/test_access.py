"""Nobody is shut out: by keyboard, without JavaScript, with reduced motion, on a phone, in the dark, by axe-core."""

import re

import pytest
from browsing import CUT, answer, open_browser
from scenery import OPEN, scenery
from selenium.webdriver.common.keys import Keys

from ldp_simulations.experiment import temporary_aggregator

WIDTHS = (320, 390, 768, 1280)
ENOUGH = 300
"""Devices whose answers are enough to be drawn."""
COLUMNS = "age: young | old\nhours: 0 to 100\nmissed: yes | no"

# Whatever can be used; what is hidden, disabled or in closed details cannot.
USABLE = """
const everything = [...document.querySelectorAll("*")];
return everything.filter((one) => one.matches("a[href], button, input, select, textarea, summary, [tabindex='0']")
  && one.type !== "hidden" && !one.disabled && one.checkVisibility() && one.tabIndex >= 0)
  .map((one) => everything.indexOf(one));
"""
MOVING = """
const moves = (one) => { const style = getComputedStyle(one);
  return style.animationName !== "none" || style.transitionDuration.split(",").some((time) => parseFloat(time) > 0); };
return [...document.querySelectorAll("*")].filter(moves).map((one) => one.outerHTML.slice(0, 80));
"""


@pytest.fixture(scope="module")
def scene():
    """A server that everything is on, and the addresses of its pages. Tests look at it and change nothing there."""
    with temporary_aggregator() as running, open_browser() as opened:
        yield running, scenery(opened, running, ENOUGH)


def test_an_operator_trains_a_model_without_a_mouse(browser, aggregator):
    campaign = aggregator.publish(OPEN)
    answer(aggregator, campaign, ENOUGH)
    browser.open(f"{aggregator.admin_url}/login")
    browser.press(aggregator.token, Keys.ENTER)
    browser.wait(lambda: "Campaigns" in browser.text("h1"))
    browser.press(Keys.TAB)
    assert "Skip to the content" in browser.focused()
    browser.press(Keys.ENTER)
    browser.wait(lambda: browser.driver.execute_script("return document.activeElement.id") == "main")
    tab_to(browser, f"a {campaign.title}")
    browser.press(Keys.ENTER)
    browser.wait(lambda: browser.text("h1") == campaign.title)
    tab_to(browser, "a Model")
    browser.press(Keys.ENTER)
    browser.wait(lambda: browser.all("input[name=anyway]"))
    tab_to(browser, "input anyway")
    browser.press(Keys.SPACE)
    browser.press_with(Keys.SHIFT, Keys.TAB)
    assert "button Train" in browser.focused()
    browser.press(Keys.ENTER)
    browser.wait(lambda: "Version 1 of the model is published" in browser.text())
    tab_to(browser, "a Learned")
    browser.press(Keys.ENTER)
    browser.wait(lambda: browser.all("input[name=lied]"))
    tab_to(browser, "input lied")
    browser.press(Keys.ARROW_RIGHT)
    browser.wait(lambda: "lied=0.5" in browser.driver.current_url)


def tab_to(browser, wanted, most=60):
    for _ in range(most):
        browser.press(Keys.TAB)
        if wanted in browser.focused():
            assert "UNSEEN" not in browser.focused()
            return
    raise AssertionError(f"the tab key does not lead to {wanted}, it is at {browser.focused()}")


def test_the_tab_key_leads_to_all_that_can_be_used_in_the_order_it_is_read_and_one_sees_where(browser, scene):
    aggregator, pages = scene
    browser.sign_in(aggregator)
    for name, address in pages.items():
        browser.open(address)
        if browser.all("[data-lab]"):
            browser.wait(lambda: browser.one("[data-lab] button").is_enabled())
        stops = browser.stops()
        places = [int(stop.split()[0]) for stop in stops]
        assert places == sorted(places), name
        assert set(browser.driver.execute_script(USABLE)) == set(places), name
        assert not [stop for stop in stops if stop.endswith("UNSEEN")], name


@pytest.mark.parametrize("browser", [False], indirect=True)
def test_every_page_and_form_works_without_javascript(browser, aggregator):
    pages = scenery(browser, aggregator, ENOUGH)
    for name, address in pages.items():
        browser.open(address)
        assert browser.text("h1"), name
        assert name != "public" or "The lab needs JavaScript" in browser.text()
    browser.open(f"{pages['closed']}/settings")
    browser.click('form[action$="/reopen"] input[type=checkbox]')
    browser.click('form[action$="/reopen"] button')
    browser.wait(lambda: browser.text(".badge") == "open")
    browser.open(pages["campaign"])
    assert browser.all("svg.plot .reach")
    browser.open(pages["privacy"])
    browser.fill("#batch", "77")
    browser.click("#batch ~ button")
    browser.wait(lambda: "mixed by a relay with 77 devices" in browser.text())
    browser.open(pages["new"])
    browser.fill("#columns", COLUMNS)
    browser.fill("#label", "missed")
    browser.click("button[value=check]")
    browser.wait(lambda: "This is a campaign" in browser.text("#verdict"))
    browser.click("button[value=publish]")
    browser.wait(lambda: browser.text("h1") == "What tells missed?")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_is_cut_moves_where_people_ask_for_rest_or_shuts_anybody_out(browser, scene, scheme):
    aggregator, pages = scene
    for name, address in {"login": f"{aggregator.admin_url}/login", **pages}.items():
        if name != "login":
            browser.sign_in(aggregator)
        for width in WIDTHS:
            browser.resize(width, scheme=scheme)
            browser.open(address)
            wide = browser.driver.execute_script("return document.documentElement.scrollWidth")
            assert wide <= width, f"{name} is {wide} wide at {width}"
            for wrong in (CUT, MOVING):
                assert browser.driver.execute_script(wrong) == [], f"{name} at {width}"
        assert browser.violations() == [], name
    browser.open(f"{aggregator.admin_url}/campaigns/new")
    browser.fill("#columns", COLUMNS)
    browser.fill("#label", "missed")
    browser.wait(lambda: browser.all("#plan-reach"))
    assert browser.violations() == [], "plan"
    browser.click("details:has(#draft) > summary")
    browser.fill("#draft", "{")
    browser.wait(lambda: "not a campaign yet" in browser.text("#verdict"))
    assert browser.violations() == [], "a draft that is none"
    browser.open(f"{aggregator.admin_url}/tokens")
    browser.fill("#name", f"another of {scheme}")
    browser.click('form[action="/tokens"] button')
    browser.wait(lambda: browser.all("#made-token"))
    assert browser.violations() == [], "a token that was made"
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    assert browser.driver.execute_script(MOVING), "there is something that could"


def test_every_number_of_a_table_has_its_unit(browser, scene):
    """Counts and the columns that say their unit in their head aside."""
    plain = {
        "Reports",
        "Votes",
        "Version",
        "Devices",
        "Answers",
        "Rows",
        "Distance in standard errors",
        "ε",
        "Loss ε",
        "Published ε",
    }
    aggregator, pages = scene
    browser.sign_in(aggregator)
    for name, address in pages.items():
        browser.open(address)
        cells = browser.driver.execute_script(
            "return [...document.querySelectorAll('td.num')].map((cell) => ["
            "cell.closest('table').rows[0].cells[cell.cellIndex].textContent, cell.textContent,"
            "cell.closest('.finding, section')?.textContent.includes('in units of') ?? false])"
        )
        for head, text, is_told in cells:
            bare = re.fullmatch(r"[±\s\u2212\d.,\u202f]*\d(\s*to\s*[\u2212\d.,\u202f]+)?", text.strip())
            assert head in plain or is_told or not bare, f"{name}: {head}: {text}"
