"""Pictures of every page at three widths, in light and dark: ``python tests/browser/screenshots.py FOLDER``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from browsing import answer, start_browser
from credit_draft import DRAFT

from simulations.fleet.aggregator import temporary_aggregator
from simulations.fleet.experiment import Plan, run
from simulations.fleet.network import Network
from simulations.tables.breast_cancer import demonstration_source

WIDTHS = (320, 390, 1280)
PAGES = {
    "login": "/login",
    "list": "/",
    "new": "/campaigns/new",
    "campaign": "/campaigns/{id}?liars=5",
    "empty": "/campaigns/{empty}",
    "federation": "/federation",
    "health": "/health",
    "tokens": "/tokens",
    "missing": "/campaigns/nothing",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where the pictures of all pages go")
    parser.add_argument(
        "--picture", type=Path, metavar="FILE", help="one picture instead, of what the demonstration learned"
    )
    parser.add_argument("--devices", type=int, default=400)
    options = parser.parse_args()
    if options.picture:
        take_picture(options.picture, options.devices)
        return
    options.folder.mkdir(parents=True, exist_ok=True)
    browser = start_browser()
    try:
        with temporary_aggregator() as aggregator:
            empty = aggregator.publish({**DRAFT, "closes": None, "title": "Nobody has answered yet"})
            campaign = aggregator.publish({**DRAFT, "closes": None})
            answer(aggregator, campaign, options.devices)
            aggregator.train(campaign)
            pages = {name: aggregator.admin_url + path for name, path in PAGES.items()}
            pages["public"] = f"{aggregator.url}/c/{{id}}"
            for name, address in pages.items():
                if name == "list":
                    browser.sign_in(aggregator)
                for width in WIDTHS:
                    for scheme in ("light", "dark"):
                        browser.resize(width, scheme=scheme)
                        browser.open(address.format(id=campaign.id, empty=empty.id))
                        if name == "public":
                            browser.wait(lambda: browser.one("[data-lab] button").is_enabled())
                            browser.click("[data-lab] button")
                        height = browser.driver.execute_script("return document.documentElement.scrollHeight")
                        browser.resize(width, height, scheme=scheme)
                        browser.driver.save_screenshot(str(options.folder / f"{name}-{width}-{scheme}.png"))
    finally:
        browser.driver.quit()


def take_picture(file: Path, devices: int) -> None:
    """The campaign's page after ``python -m simulations demo``, from the estimates on."""
    browser = start_browser()
    try:
        with temporary_aggregator() as aggregator:
            plan = Plan(devices, seed=1, progress=False)
            campaign = run(aggregator, demonstration_source(), plan, Network(seed=1)).campaign
            browser.sign_in(aggregator)
            browser.resize(1280, 900)
            browser.open(f"{aggregator.admin_url}/campaigns/{campaign.id}?liars=20")
            browser.driver.execute_script("document.querySelector('#estimates').scrollIntoView()")
            browser.driver.save_screenshot(str(file))
    finally:
        browser.driver.quit()


if __name__ == "__main__":
    main()
