"""A real headless Chromium, for the tests of pages and for screenshots; skips where there is none, and says why."""

import json
import os
import shutil
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from ldp_client import perturb
from ldp_protocols import encode_upload
from ldp_protocols.wire import MEDIA_TYPE

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed; make setup installs it")
exceptions = pytest.importorskip("selenium.common.exceptions")
ui = pytest.importorskip("selenium.webdriver.support.ui")
ROOT = Path(__file__).resolve().parents[2]
AXE = Path(os.environ.get("LDP_AXE", ROOT / ".venv" / "axe" / "node_modules" / "axe-core" / "axe.min.js"))
WAIT_SECONDS = 60
OWN_SCHEMES = ("data", "blob", "about", "chrome", "devtools", "file")

# Of the focused element: its place among all elements, its name, and whether a ring around it can be seen.
_FOCUSED = """
const one = document.activeElement;
if (!one || one === document.body || one === document.documentElement) return "";
const style = getComputedStyle(one), box = one.getBoundingClientRect();
const ring = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
const across = box.width > 0 && box.right > 0 && box.left < innerWidth;
const there = across && box.height > 0 && box.bottom > 0 && box.top < innerHeight;
const name = (one.textContent || one.name || one.id).trim().slice(0, 40);
const place = [...document.querySelectorAll("*")].indexOf(one);
return `${place} ${one.tagName.toLowerCase()} ${name}${ring && there ? "" : " UNSEEN"}`;
"""

# Text that leaves the page, or the box that hides it. What scrolls has its own bar and is reached by keyboard.
CUT = """
const own = ".scroll, textarea, input, select, .hidden, .skip";
const scrolls = (one) => one && (one.matches(own) || scrolls(one.parentElement));
return [...document.querySelectorAll("main *, header *")].filter((one) => {
  const box = one.getBoundingClientRect();
  return box.width > 0 && !scrolls(one) && (box.right > innerWidth + 1 || box.left < -1
    || (getComputedStyle(one).overflowX === "hidden" && one.scrollWidth > one.clientWidth + 1));
}).map((one) => one.outerHTML.slice(0, 120));
"""


class Browser:
    """A tab. Every request it ever made is known; :meth:`foreign` are those to another host."""

    def __init__(self, driver):
        self.driver = driver
        self._requested = []

    def open(self, address):
        self.driver.get(address)

    def one(self, selector):
        return self.driver.find_element("css selector", selector)

    def all(self, selector):
        return self.driver.find_elements("css selector", selector)

    def text(self, selector="body"):
        return self.one(selector).text

    def wait(self, holds):
        """Until ``holds`` does, of this page or of the one that comes after it."""

        def still_holds(_driver):
            try:
                return holds()
            except exceptions.WebDriverException as error:
                # What the driver says of an element whose page goes away while it is read, beside the stale reference.
                if "does not belong to the document" in str(error):
                    return False
                raise

        ignored = (exceptions.NoSuchElementException, exceptions.StaleElementReferenceException)
        return ui.WebDriverWait(self.driver, WAIT_SECONDS, ignored_exceptions=ignored).until(still_holds)

    def click(self, selector):
        element = self.one(selector)
        self.driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)
        element.click()

    def fill(self, selector, text):
        element = self.one(selector)
        element.clear()
        element.send_keys(text)

    def press(self, *keys):
        """Keys to whatever has the focus."""
        webdriver.ActionChains(self.driver).send_keys(*keys).perform()

    def press_with(self, held, key):
        """A key while another one is held."""
        webdriver.ActionChains(self.driver).key_down(held).send_keys(key).key_up(held).perform()

    def focused(self):
        """The focused element by what people and selectors know of it; empty where nothing but the page has it."""
        return str(self.driver.execute_script(_FOCUSED))

    def stops(self, most=400):
        """Where the tab key leads from the page's top, until it leaves the page."""
        self.driver.execute_script("document.activeElement.blur(); window.getSelection().removeAllRanges()")
        found = []
        while len(found) < most:
            self.press(webdriver.Keys.TAB)
            where = self.focused()
            if not where or where in found[:1]:
                break
            found.append(where)
        return found

    def sign_in(self, aggregator):
        self.open(f"{aggregator.admin_url}/login")
        if self.all("#token"):
            self.fill("#token", aggregator.token)
            self.click("main button")
            self.wait(lambda: "Campaigns" in self.text("h1"))

    def resize(self, width, height=900, *, scheme="light"):
        """A viewport of exactly this size, in light or dark."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        told = {"prefers-color-scheme": scheme, "prefers-reduced-motion": "reduce"}
        features = [{"name": name, "value": value} for name, value in told.items()]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def requested(self):
        """The addresses of all requests so far."""
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                self._requested.append(message["params"]["request"]["url"])
        return self._requested

    def foreign(self):
        """The requests to any host but this machine's own."""
        parts = [urlsplit(address) for address in self.requested()]
        return [p.geturl() for p in parts if p.scheme not in OWN_SCHEMES and p.hostname != "127.0.0.1"]

    def complaints(self):
        """What the console says of errors and of what the policy refused."""
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] == "SEVERE"]

    def violations(self):
        """What axe-core finds that is serious or critical."""
        if not AXE.exists():
            pytest.skip(f"axe-core is not at {AXE}; make browser installs it")
        self.driver.execute_script(AXE.read_text(encoding="utf-8"))
        found = self.driver.execute_async_script(
            "const done = arguments[arguments.length - 1]; axe.run(document).then(done, (e) => done({violations: []"
            ", failed: String(e)}))"
        )
        assert "failed" not in found, found
        return [
            f"{one['id']}: {one['help']}: {node['html'][:200]}"
            for one in found["violations"]
            if one["impact"] in ("serious", "critical")
            for node in one["nodes"]
        ]


@contextmanager
def open_browser(*, javascript=True):
    """A browser as long as the block lasts. Skips where there is no Chromium with its driver."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("there is no headless Chromium; on Debian: apt-get install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--disable-dev-shm-usage",
        "--disable-gpu",
        "--disable-background-networking",
        "--disable-component-update",
        "--no-first-run",
        # Whatever is not this machine is not found: a page that asks for it breaks, and is seen.
        "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
    ):
        options.add_argument(argument)
    if not javascript:
        options.add_experimental_option("prefs", {"profile.managed_default_content_settings.javascript": 2})
    options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
    started = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    try:
        yield Browser(started)
    finally:
        started.quit()


def send(url, body, media_type=MEDIA_TYPE, token=None):
    """What the server answers, whatever that is."""
    request = urllib.request.Request(url, body, {"Content-Type": media_type})
    if token is not None:
        request.add_header("Authorization", f"Bearer {token}")
    try:
        with urllib.request.urlopen(request, timeout=60) as answered:
            return bytes(answered.read())
    except urllib.error.HTTPError as error:
        return bytes(error.read())


def answer(aggregator, campaign, devices):
    """So many devices answer over HTTP: half of one class, values in turn."""
    for number in range(devices):
        record = {
            feature.name: feature.values[number % feature.size]
            if feature.to_json()["kind"] == "categorical"
            else feature.low + number % 97 / 97 * (feature.high - feature.low)
            for feature in campaign.features
        }
        body = encode_upload(perturb(campaign, record, campaign.label.classes[number % 2]), campaign)
        assert json.loads(send(f"{aggregator.url}/v1/campaigns/{campaign.id}/reports", body)) == {"rejected": []}
