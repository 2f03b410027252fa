"""Pictures of every page at three widths, in light and dark: ``python tests/browser/screenshots.py FOLDER``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from browsing import answer, start_browser
from credit_draft import DRAFT

from simulations.fleet.aggregator import temporary_aggregator

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
    parser.add_argument("folder", type=Path)
    parser.add_argument("--devices", type=int, default=400)
    options = parser.parse_args()
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


if __name__ == "__main__":
    main()
