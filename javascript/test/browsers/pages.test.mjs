import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { chromium } from "playwright-core";
import { CHROMIUM, CHROMIUM_FLAGS, installed } from "./engines.mjs";
import { bodiesById, site } from "./site.mjs";

const skip = !installed(CHROMIUM);
let browser;

before(async () => {
  if (!skip) browser = await chromium.launch({ executablePath: CHROMIUM, args: CHROMIUM_FLAGS });
});
after(() => browser?.close());

/** A page of a browser context of its own. */
async function open(t, here, address = "/pages/page.html", context = undefined) {
  const own = context ?? (await browser.newContext());
  if (!context) t.after(() => own.close());
  const page = await own.newPage();
  await page.goto(here.url + address);
  await page.waitForFunction("window.ready");
  return page;
}

const answer = (page, here, age, url = here.url) =>
  page.evaluate(
    async ([url, id, age]) => {
      const { device, campaign } = make(url, id);
      await campaign.grant();
      const receipt = await campaign.contribute({ age, hours: 30 }, "yes");
      return { receipt, idle: await device.runOnce(10_000), status: await campaign.status() };
    },
    [url, here.campaign, age],
  );

/** Waits for the status of the page's kept campaign. */
async function until(page, condition) {
  for (let tries = 0; tries < 300; tries++) {
    if (condition(await page.evaluate(() => kept.campaign.status()))) return;
    await new Promise((done) => setTimeout(done, 100));
  }
  assert.fail(JSON.stringify(await page.evaluate(() => kept.campaign.status())));
}

test("two tabs at once answer once", { skip }, async (t) => {
  const here = await site(t);
  here.lose = 0.3;
  const context = await browser.newContext();
  t.after(() => context.close());
  const pages = await Promise.all(Array.from({ length: 4 }, () => open(t, here, "/pages/page.html", context)));
  const told = await Promise.all(pages.map((page, i) => answer(page, here, i % 2 ? "young" : "old")));
  assert.ok(
    told.every(({ receipt }) => receipt.at === told[0].receipt.at),
    "one receipt",
  );
  assert.ok(told.every(({ idle }) => idle));
  const bodies = bodiesById(here.uploads);
  assert.deepEqual(
    [...bodies.values()].map(({ size }) => size),
    [1],
  );
  assert.equal(here.counted(), 1);
});

test("the element for debug builds shows step, queue, last answer and ledger in a real page", { skip }, async (t) => {
  const here = await site(t);
  const page = await open(t, here);
  await answer(page, here, "old");
  const text = await page.evaluate(
    async ([url, id]) => {
      const { defineDebug } = await import("/dist/ldp-bayes-client.debug.min.js");
      defineDebug();
      const element = Object.assign(document.createElement("ldp-bayes-debug"), make(url, id));
      document.body.append(element);
      await element.refresh();
      return element.innerText;
    },
    [here.url, here.campaign],
  );
  assert.match(text, /nothing, because answered/);
  assert.match(text, /0 wait, 1 arrived/);
  assert.match(text, /with probability 0\.\d\d\); sent at .*reply: arrived/);
  assert.match(text, /contributed to 1 campaign/);
  assert.deepEqual(await page.evaluate("window.violations"), []);
});

test("who clears the storage is a new device, and the ledger had said so", { skip }, async (t) => {
  const here = await site(t);
  const page = await open(t, here);
  await answer(page, here, "old");
  const text = await page.evaluate(
    async ([url, id]) => {
      const ledger = await make(url, id).device.ledger();
      return `${ledger} ${ledger.note}`;
    },
    [here.url, here.campaign],
  );
  assert.match(text, /contributed to 1 campaign\./);
  assert.match(text, /storage of this installation is cleared, this count is lost/);
  const client = await page.context().newCDPSession(page);
  await client.send("Storage.clearDataForOrigin", { origin: here.url, storageTypes: "all" });
  const status = await page.evaluate(async ([url, id]) => make(url, id).campaign.status(), [here.url, here.campaign]);
  assert.deepEqual([status.consent, status.fate], [null, null]);
  await answer(page, here, "old");
  assert.equal(bodiesById(here.uploads).size, 2);
  assert.equal(here.counted(), 2);
});

test("a page reads no database into being, and erasing leaves none", { skip }, async (t) => {
  const here = await site(t);
  const page = await open(t, here);
  const names = () => page.evaluate(async () => (await indexedDB.databases()).map(({ name }) => name));
  await page.evaluate(
    async ([url, id]) => {
      const { device, campaign } = make(url, id);
      device.start();
      await campaign.fetch();
      await campaign.refusal();
      await campaign.status();
      await device.ledger();
    },
    [here.url, here.campaign],
  );
  assert.deepEqual(await names(), []);
  await answer(page, here, "old");
  assert.deepEqual(await names(), ["page"]);
  await page.evaluate(([url, id]) => make(url, id).device.erase(), [here.url, here.campaign]);
  assert.deepEqual(await names(), []);
});

test("what was answered offline is sent when the network is back, with no call of the app's", { skip }, async (t) => {
  const here = await site(t);
  const page = await open(t, here);
  await page.evaluate(
    async ([url, id]) => {
      window.kept = make(url, id);
      await kept.campaign.grant();
      kept.device.start();
    },
    [here.url, here.campaign],
  );
  await page.context().setOffline(true);
  await page.evaluate(() => kept.campaign.contribute({ age: "old" }, "no"));
  await until(page, ({ retries }) => retries > 2);
  assert.deepEqual(here.uploads, []);
  await page.context().setOffline(false);
  await until(page, ({ fate }) => fate === "arrived");
  assert.equal(here.counted(), 1);
});

test("a page that is reloaded goes on where it stopped", { skip }, async (t) => {
  const here = await site(t);
  const page = await open(t, here);
  here.lose = 1;
  await page.evaluate(
    async ([url, id]) => {
      const { device, campaign } = make(url, id);
      await campaign.grant();
      await campaign.contribute({ age: "old" }, "no");
      await device.runOnce(0);
    },
    [here.url, here.campaign],
  );
  here.lose = 0;
  await page.reload();
  await page.waitForFunction("window.ready");
  assert.equal((await answer(page, here, "young")).status.fate, "arrived");
  const bodies = bodiesById(here.uploads);
  assert.ok(here.uploads.length > 1);
  assert.deepEqual(
    [...bodies.values()].map(({ size }) => size),
    [1],
  );
});

test("default-src 'self' and trusted types are kept", { skip }, async (t) => {
  const here = await site(t);
  const context = await browser.newContext();
  t.after(() => context.close());
  const errors = [];
  const note = (message) => message.type() === "error" && errors.push(`${message.text()} ${message.location().url}`);
  context.on("console", note); // from before the page is loaded
  const page = await open(t, here, "/pages/page.html", context);
  await answer(page, here, "old");
  assert.deepEqual(await page.evaluate("violations"), []);
  assert.deepEqual(errors, []);
  // The policy is one that tells: what it forbids is noticed.
  await page.evaluate(() => fetch("http://127.0.0.1:9/").catch(() => {}));
  assert.equal((await page.evaluate("violations")).length, 1);
});

test("workers and service workers answer and deliver", { skip }, async (t) => {
  const here = await site(t);
  const page = await open(t, here);
  const told = { fate: "arrived", sent: 1 };
  assert.deepEqual(
    await page
      .evaluate(
        (id) =>
          new Promise((done) => {
            const worker = new Worker(
              trustedTypes
                .createPolicy("worker", { createScriptURL: (url) => url })
                .createScriptURL("/pages/worker.js"),
              { type: "module" },
            );
            worker.onmessage = ({ data }) => done(data);
            worker.postMessage(id);
          }),
        here.campaign,
      )
      .catch((error) => String(error)),
    told,
  );
  const other = await open(t, here);
  assert.deepEqual(
    await other
      .evaluate(async (id) => {
        const { active, installing, waiting } = await navigator.serviceWorker.register(
          trustedTypes.createPolicy("worker", { createScriptURL: (url) => url }).createScriptURL("/pages/worker.js"),
          { type: "module" },
        );
        const worker = active ?? waiting ?? installing;
        return new Promise((done) => {
          navigator.serviceWorker.onmessage = ({ data }) => done(data);
          navigator.serviceWorker.startMessages();
          if (worker.state === "activated") worker.postMessage(id);
          else worker.onstatechange = () => worker.state === "activated" && worker.postMessage(id);
        });
      }, here.campaign)
      .catch((error) => String(error)),
    told,
  );
  assert.equal(here.counted(), 2);
});

test("a page of another origin is served where the aggregator names it, and no other page", { skip }, async (t) => {
  // The page's site is the one origin, the aggregator itself, without the site in between, the other.
  const strange = await site(t);
  const page = await open(t, strange, `/pages/page.html?connect=${encodeURIComponent(strange.aggregator)}`);
  const code = await page.evaluate(
    async ([url, id]) =>
      make(url, id)
        .campaign.fetch()
        .then(
          () => "fetched",
          ({ code }) => code,
        ),
    [strange.aggregator, strange.campaign],
  );
  assert.equal(code, "unreachable");
  const named = await site(t, { origins: ["*"] });
  const allowed = await open(t, named, `/pages/page.html?connect=${encodeURIComponent(named.aggregator)}`);
  assert.equal((await answer(allowed, named, "old", named.aggregator)).status.fate, "arrived");
  assert.equal(named.counted(), 1);
  assert.deepEqual(named.uploads, [], "nothing went through the page's own site");
});
