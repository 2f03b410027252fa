// A device hears how a campaign stands before it asks anybody: nothing is spent on one that takes no answers.
import assert from "node:assert/strict";
import { test } from "node:test";
import { memoryStorage, problem } from "../dist/testing/index.js";
import { aggregator, changed, deviceOn, documents, RECORD, refuses, URL_OF_TESTS } from "./support/campaigns.mjs";

const ONE = documents["de-onebit"].id;
const DAY = 864e5;
const MORNING = Date.parse("2026-11-21T06:00:00Z");
const CODES = {
  "not-yet": "campaign-not-open",
  closing: "campaign-closing",
  closed: "campaign-closed",
  full: "campaign-full",
  deleted: "campaign-deleted",
};

/** A device that starts again and again on one storage, and what it asks for. */
class Life {
  now = MORNING;
  asked = [];
  texts = new Map();
  server = aggregator();

  constructor() {
    this.answer = () => undefined;
    this.server.intercept = (_, path) => {
      if (!path.endsWith("/state")) return undefined;
      this.asked.push(this.now);
      return this.answer();
    };
  }

  start(id = ONE, url = URL_OF_TESTS) {
    const { texts, server } = this;
    return deviceOn(memoryStorage(texts), server, { now: () => this.now }).campaign(url, id, { maxEpsilon: 1 });
  }
}

for (const [state, code] of Object.entries(CODES)) {
  test(`nobody is asked and nothing spent where a campaign is ${state}`, async () => {
    const life = new Life();
    life.server.states.set(ONE, state);
    const campaign = life.start();
    assert.equal((await campaign.nextStep()).step, "nothing");
    assert.equal((await campaign.refusal()).code, code);
    await refuses(code, campaign.grant());
    assert.deepEqual([life.texts.size, life.asked.length], [0, 1]);
  });

  test(`who has agreed spends nothing either once it was heard that a campaign is ${state}`, async () => {
    const life = new Life();
    const campaign = life.start();
    await campaign.grant();
    life.server.states.set(ONE, state);
    life.now += DAY;
    for (const one of [campaign, life.start()]) {
      assert.equal((await one.nextStep()).step, "nothing");
      await refuses(code, one.contribute(RECORD, "yes"));
      assert.equal(await one.receipt(), null);
    }
    assert.equal((await life.start(ONE, "https://elsewhere.example").nextStep()).step, "nothing");
    life.server.states.clear();
    life.now += DAY;
    assert.equal((await campaign.nextStep()).step, "contribute", "a closing was taken back");
  });
}

test("it is heard once a day, after a restart too, by all who ask at a time, and again where the clock went back", async () => {
  const life = new Life();
  const campaign = life.start();
  await Promise.all([campaign.nextStep(), campaign.nextStep()]);
  assert.deepEqual([life.asked.length, life.texts.size], [1, 0], "before a consent nothing is kept");
  await campaign.grant();
  for (const one of [campaign, life.start(), life.start()]) assert.equal((await one.nextStep()).step, "contribute");
  life.now += DAY - 1 - (life.now % DAY);
  assert.equal((await life.start().nextStep()).step, "contribute");
  assert.equal(life.asked.length, 1);
  life.now += 1;
  for (const one of [campaign, life.start()]) await one.nextStep();
  assert.equal(life.asked.length, 2);
  life.now -= 400 * DAY;
  await campaign.nextStep();
  assert.equal(life.asked.length, 3);
});

test("answering asks nobody how a campaign stands, and one who answered, declined or switched off does not either", async () => {
  const life = new Life();
  const campaign = life.start();
  await campaign.grant();
  life.now += DAY;
  await campaign.contribute(RECORD, "yes");
  assert.equal((await campaign.nextStep()).step, "nothing");
  const other = life.start(documents["oue-sign"].id);
  await other.withdraw();
  assert.equal((await other.nextStep()).step, "nothing");
  const device = deviceOn(memoryStorage(), life.server);
  await device.enable(false);
  assert.equal((await device.campaign(URL_OF_TESTS, ONE, { maxEpsilon: 1 }).refusal()).code, "switched-off");
  assert.equal(life.asked.length, 1);
});

test("where answers are sealed the relay is asked: the aggregator would see the address that it hides", async () => {
  const life = new Life();
  const key = Buffer.from([1, 0, 32, ...new Uint8Array(32).fill(9), 0, 4, 0, 1, 0, 1]).toString("base64url");
  const sealed = changed({ gateway: { key } }, "de-onebit");
  life.server.documents.set(sealed.id, sealed.document);
  assert.equal((await life.start(sealed.id).refusal()).code, "no-relay");
  assert.equal(life.asked.length, 0, "without a relay nobody is");
  life.server.states.set(sealed.id, "full");
  for (const [relay, place] of [
    ["https://relay.example/v1/ohttp", "https://relay.example/v1/v1/campaigns/"],
    ["https://relay.example", "https://relay.example/v1/campaigns/"],
    ["https://relay.example/a/", "https://relay.example/a/v1/campaigns/"],
  ]) {
    const asked = [];
    const fetch = (url, init) => {
      if (url.endsWith("/state")) asked.push(url);
      return life.server.fetch(url.replace(place, `${URL_OF_TESTS}/v1/campaigns/`), init);
    };
    const campaign = deviceOn(memoryStorage(), { fetch }, { relay }).campaign(URL_OF_TESTS, sealed.id, {
      maxEpsilon: 1,
    });
    const code = (await campaign.refusal()).code;
    assert.deepEqual([code, asked], ["campaign-full", [`${place}${sealed.id}/state`]]);
  }
});

const json = (value) => new Response(JSON.stringify(value));
for (const [name, answer] of Object.entries({
  silence: () => Promise.reject(new TypeError("no network")),
  "a refusal": () => problem(503, "busy"),
  "an older aggregator": () => problem(404, "not-found"),
  "a later word": () => json({ state: "paused" }),
  "a word of another place": () => json({ state: "constructor" }),
  "no JSON": () => new Response("<html>"),
  "another JSON": () => json([1]),
  "no word": () => json({ state: ["closed"] }),
  "too much": () => json({ state: "closed", more: "x".repeat(1024) }),
})) {
  test(`what cannot be heard or understood stops nobody: ${name}`, async () => {
    const life = new Life();
    life.answer = answer;
    const campaign = life.start();
    assert.equal((await campaign.nextStep()).step, "ask");
    await campaign.grant();
    assert.equal((await campaign.nextStep()).step, "contribute");
    assert.equal(life.asked.length, 1);
  });
}

test("a try that failed is not repeated for ten minutes, unless the clock went back", async () => {
  const life = new Life();
  life.answer = () => problem(503, "busy");
  const campaign = life.start();
  for (const [wait, tries] of [
    [0, 1],
    [1, 1],
    [599_998, 1],
    [1, 2],
    [-1, 3],
  ]) {
    life.now += wait;
    await campaign.nextStep();
    assert.equal(life.asked.length, tries);
  }
});

test("what is kept and is none of it stops nobody", async () => {
  for (const kept of [
    "",
    "no time",
    "Infinity closed",
    "x closed",
    `${MORNING}`,
    `${MORNING} shut`,
    "1 closed",
    "closed",
  ]) {
    const life = new Life();
    await life.start().grant();
    assert.ok(life.texts.has(`state ${ONE}`));
    life.texts.set(`state ${ONE}`, kept);
    assert.equal((await life.start().nextStep()).step, "contribute", kept);
  }
});

test("a storage that keeps nothing of it, or gives nothing, keeps nobody", async () => {
  const life = new Life();
  await life.start().grant();
  const storage = memoryStorage(life.texts);
  const fails =
    (name, call) =>
    (key, ...more) =>
      key.startsWith("state") ? Promise.reject(new Error("full")) : storage[call ?? name](key, ...more);
  const device = deviceOn({ ...storage, read: fails("read"), change: fails("change") }, life.server);
  assert.equal((await device.campaign(URL_OF_TESTS, ONE, { maxEpsilon: 1 }).nextStep()).step, "contribute");
});

test("a fake aggregator knows the campaigns that it has, their models and states, and nothing else", async () => {
  const { fetch, states } = aggregator();
  const at = async (path) => {
    const answer = await fetch(`${URL_OF_TESTS}/v1/campaigns/${path}`);
    return [answer.status, await answer.text()];
  };
  assert.deepEqual(await at(`${ONE}/state`), [200, '{"state":"open"}']);
  states.set(ONE, "closed");
  assert.deepEqual(await at(`${ONE}/state`), [200, '{"state":"closed"}']);
  assert.equal((await at(ONE))[1], documents["de-onebit"].document);
  for (const [path, code] of [
    [`${ONE}/model`, "no-model"],
    [`${ONE}/reports`, "not-found"],
    [`${ONE}/`, "not-found"],
    [`${"A".repeat(43)}/state`, "unknown-campaign"],
    ["A".repeat(43), "unknown-campaign"],
  ])
    assert.deepEqual(await at(path), [404, JSON.stringify({ status: 404, code })], path);
});

test("an aggregator that never says how a campaign stands takes half of the time of a call", async () => {
  const server = aggregator();
  const silent = (url, init) =>
    String(url).endsWith("/state")
      ? new Promise((_, fail) => init.signal.addEventListener("abort", () => fail(new Error("aborted"))))
      : server.fetch(url, init);
  const campaign = deviceOn(memoryStorage(), server, { fetch: silent }).campaign(URL_OF_TESTS, ONE, { maxEpsilon: 1 });
  const start = Date.now();
  assert.equal((await campaign.nextStep({ timeout: 1000 })).step, "ask");
  assert.ok(Date.now() - start < 1000);
});
