"""Pictures of every page at three widths, in light and dark: ``python tests/browser/screenshots.py FOLDER``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support" / "learning"))

from browsing import Browser, start_browser
from scenery import scenery

from simulations.fleet.aggregator import temporary_aggregator
from simulations.fleet.experiment import Plan, run
from simulations.fleet.network import Network
from simulations.tables.breast_cancer import demonstration_source

WIDTHS = (320, 390, 1280)


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
            take(browser, options.folder, "login", f"{aggregator.admin_url}/login")
            for name, address in scenery(browser, aggregator, options.devices).items():
                take(browser, options.folder, name, address)
    finally:
        browser.driver.quit()


def take(browser: Browser, folder: Path, name: str, address: str) -> None:
    """A page from its top to its foot, in all widths and schemes."""
    for width in WIDTHS:
        for scheme in ("light", "dark"):
            browser.resize(width, scheme=scheme)
            browser.open(address)
            if browser.all("button[value=check]"):
                browser.click("button[value=check]")
                browser.wait(lambda: browser.all("#plan-reach"))
            if browser.all("[data-lab]"):
                browser.wait(lambda: browser.one("[data-lab] button").is_enabled())
                browser.click("[data-lab] button")
            height = browser.driver.execute_script("return document.documentElement.scrollHeight")
            browser.resize(width, height, scheme=scheme)
            browser.driver.save_screenshot(str(folder / f"{name}-{width}-{scheme}.png"))


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
