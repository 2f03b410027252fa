"""Milliseconds that the page which explains by doing takes from a folder: ``python benchmarks/try_page.py``.

First paint and layout shifts with the processor four times slower (Chromium), the first redraw after a dial was turned,
and 20,000 answers, in Chromium and in Firefox. Shifts within half a second of a person's act count as theirs.
"""

import asyncio
import json
import sys
import time
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "support"))

from browsing import open_browser  # noqa: E402
from firefox import open_firefox  # noqa: E402

PAGE = (ROOT / "docs" / "try" / "index.html").as_uri()
RUNS = 5
SLOWER = 4
OBSERVE = """
window.shifts = [];
const note = list => window.shifts.push(...list.getEntries().filter(e => !e.hadRecentInput).map(e => e.value));
new PerformanceObserver(note).observe({type: "layout-shift", buffered: true});
"""
TURN = """
const began = performance.now();
const right = document.querySelector('[data-out="right"]'), dial = document.querySelector('[data-set="epsilon"]');
let first = null;
right.textContent = "?";
delete document.body.dataset.done;
const look = new MutationObserver(() => {
  if (first === null && right.textContent !== "?") first = performance.now() - began;
  if (document.body.dataset.done) { look.disconnect(); done([first, performance.now() - began]); }
});
look.observe(document.body, {subtree: true, childList: true, characterData: true, attributes: true});
dial.value = String((Number(dial.value) + 1) % 7);
dial.dispatchEvent(new Event("input", {bubbles: true}));
"""


def redrawn(told):
    """First redraw and last one after a turn of a dial, in milliseconds; the median of each."""
    firsts, lasts = zip(*told, strict=True)
    return f"first redraw {median(firsts):.0f}, 20,000 answers {median(lasts):.0f}"


def main():
    with open_browser() as browser:
        driver = browser.driver
        for width in (1280, 390):
            paints, shifts = [], []
            for _ in range(RUNS):
                browser.resize(width)
                driver.execute_cdp_cmd("Emulation.setCPUThrottlingRate", {"rate": SLOWER})
                browser.open("about:blank")
                browser.open(PAGE)
                time.sleep(2)
                entry = "performance.getEntriesByName('first-contentful-paint')[0]"
                paints.append(driver.execute_script(f"return {entry} ? {entry}.startTime : NaN"))
                driver.execute_script(OBSERVE)
                browser.click('[data-act="run"]')
                browser.wait(lambda: driver.execute_script("return document.body.dataset.done"))
                shifts.append(driver.execute_script("return window.shifts.reduce((a, b) => a + b, 0)"))
            told = f"first paint {median(paints):.0f}, layout shift {max(shifts):g}"
            print(f"Chromium, {width} pixels, {SLOWER}x slower: {told}")
        driver.execute_cdp_cmd("Emulation.setCPUThrottlingRate", {"rate": 1})
        browser.open(PAGE)
        time.sleep(1)
        driver.set_script_timeout(60)
        turn = f"const done = arguments[arguments.length - 1]; {TURN}"
        print(f"Chromium: {redrawn([driver.execute_async_script(turn) for _ in range(RUNS)])}")
    asyncio.run(in_firefox())


async def in_firefox():
    async with open_firefox() as tab:
        if tab is None:
            print("Firefox: none here")
            return
        await tab.open(PAGE)
        await asyncio.sleep(1)
        told = [await tab.evaluate(f"new Promise(done => {{ {TURN} }}).then(JSON.stringify)") for _ in range(RUNS)]
        print(f"Firefox: {redrawn([json.loads(one) for one in told])}")


if __name__ == "__main__":
    main()
