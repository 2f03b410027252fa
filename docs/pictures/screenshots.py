"""Pictures of every page, and of what pages look like when something is wrong or missing, at three widths, in light and
dark: ``make screenshots``.
"""

import argparse
from pathlib import Path

from browsing import open_browser
from busy_world import busy_world
from scenery import scenery

from ldp_aggregator.dashboard.campaigns import TABS
from ldp_simulations.benchmarks import demonstration_source
from ldp_simulations.devices import Network
from ldp_simulations.experiment import Plan, run, temporary_aggregator

WIDTHS = (320, 390, 768, 1280)
# The page of a campaign down to its most telling features, in pixels.
WHAT_WAS_LEARNED = """
const foot = (one) => one.getBoundingClientRect().bottom + scrollY;
return [0, Math.round(Math.max(...[...document.querySelectorAll(".finding")].slice(0, 3).map(foot))) + 12];
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where the pictures of all pages go")
    parser.add_argument(
        "--picture", type=Path, metavar="FILE", help="one picture instead, of what the demonstration learned"
    )
    parser.add_argument("--try", type=Path, metavar="FILE", dest="first_screen", help="one of the page to try")
    parser.add_argument("--devices", type=int, default=400)
    options = parser.parse_args()
    if options.picture:
        take_picture(options.picture, options.devices)
        return
    if options.first_screen:
        take_first_screen(options.first_screen)
        return
    options.folder.mkdir(parents=True, exist_ok=True)
    with open_browser() as browser, temporary_aggregator() as aggregator:
        take(browser, options.folder, "login", f"{aggregator.admin_url}/login")
        take(browser, options.folder, "login-wrong", f"{aggregator.admin_url}/login", wrong_token)
        browser.sign_in(aggregator)
        take(browser, options.folder, "nothing", aggregator.admin_url)
        take(browser, options.folder, "nothing-federation", f"{aggregator.admin_url}/federation")
        pages = scenery(browser, aggregator, options.devices)
        for name, address in pages.items():
            take(browser, options.folder, name, address, ACTS.get(name, nothing))
        take(browser, options.folder, "new-wrong", pages["new"], wrong_draft)
        take(browser, options.folder, "new-columns", pages["new"], columns)
        take(browser, options.folder, "empty-trained", f"{pages['empty']}/model", trained)
        take(browser, options.folder, "token-made", pages["tokens"], make_token)
        take(browser, options.folder, "public-again", pages["public"], answer_often)
    with open_browser() as browser, temporary_aggregator() as aggregator:
        ids = busy_world(aggregator)
        browser.sign_in(aggregator)
        take(browser, options.folder, "busy-list", aggregator.admin_url)
        for name, campaign_id in ids.items():
            address = f"{aggregator.admin_url}/campaigns/{campaign_id}"
            for tab in ("", *TABS[1:]):
                take(browser, options.folder, f"busy-{name}{tab and '-'}{tab}", f"{address}/{tab}".rstrip("/"))


def take_first_screen(file):
    """The head of the page that explains by doing."""
    with open_browser() as browser:
        browser.resize(1100)
        browser.open((Path(__file__).parents[1] / "try" / "index.html").as_uri())
        browser.wait(lambda: browser.one('[data-act="answer"]').is_enabled())
        file.write_bytes(browser.one(".hero").screenshot_as_png)


def nothing(_browser):
    """Looks at the page as it is."""


def wrong_token(browser):
    browser.fill("#token", "ldp_nobody")
    clicked("main button", "#problem")(browser)


def clicked(selector, seen):
    """Clicks, and waits for what is seen then."""

    def act(browser):
        browser.click(selector)
        browser.wait(lambda: browser.all(seen))

    return act


def wrong_draft(browser):
    browser.click("details:has(#draft) > summary")
    browser.fill("#draft", '{"version": 1, "title": "Who falls?", "privacy": {"epsilon": -1}}')
    browser.wait(lambda: "not a campaign yet" in browser.text("#verdict"))


def columns(browser):
    browser.fill("#columns", "age: young | old\nhours: 0 to 100\nmissed: yes | no")
    browser.fill("#label", "missed")
    browser.wait(lambda: "This is a campaign" in browser.text("#verdict"))


def make_token(browser):
    browser.fill("#name", f"node {len(browser.all('tbody tr'))}")
    clicked('form[action="/tokens"] button', "#made-token")(browser)


def answer_once(browser):
    browser.wait(lambda: browser.one("[data-lab] button").is_enabled())
    browser.click("[data-lab] button")


def answer_often(browser):
    browser.wait(lambda: browser.one("[data-lab] button").is_enabled())
    browser.click("[data-lab] button[value=again]")
    browser.wait(lambda: "1,000 devices" in browser.text("[data-result]"))


trained = clicked('form[action$="/train"] button', ".problem")
ACTS = {"public": answer_once, "public-closed": answer_once}


def take(browser, folder, name, address, act=nothing):
    """A page from its top to its foot after ``act`` on it, in all widths and schemes."""
    for width in WIDTHS:
        for scheme in ("light", "dark"):
            browser.resize(width, scheme=scheme)
            browser.open(address)
            act(browser)
            height = browser.driver.execute_script("return document.documentElement.scrollHeight")
            browser.resize(width, height, scheme=scheme)
            browser.driver.save_screenshot(str(folder / f"{name}-{width}-{scheme}.png"))


def take_picture(file, devices):
    """The campaign's page after ``ldp-simulate demo``, from the estimates on."""
    with open_browser() as browser, temporary_aggregator() as aggregator:
        plan = Plan(devices, seed=1)
        campaign = run(aggregator, demonstration_source(), plan, Network(seed=1)).campaign
        browser.sign_in(aggregator)
        browser.driver.execute_cdp_cmd("Emulation.setScrollbarsHidden", {"hidden": True})
        browser.resize(1280, 900)
        browser.open(f"{aggregator.admin_url}/campaigns/{campaign.id}")
        top, end = browser.driver.execute_script(WHAT_WAS_LEARNED)
        browser.resize(1280, end - top)
        browser.driver.execute_script("window.scrollTo(0, arguments[0])", top)
        browser.driver.save_screenshot(str(file))


if __name__ == "__main__":
    main()
