import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { Decisions as Classifier } from "../dist/classifier/decisions.js";
import { step } from "../dist/device/answering.js";
import { parseCampaign } from "../dist/core.js";
import { problems } from "../dist/problems.js";
import "fake-indexeddb/auto";
import { Ledger } from "../dist/device/ledger.js";
import { ledgerText } from "../dist/words.js";
import { browserStorage } from "../dist/browser/index.js";
import { Device, fileStorage } from "../dist/node/index.js";
import { keyValueStorage } from "../dist/react-native/index.js";
import { memoryStorage, problem } from "../dist/testing/index.js";
import { aggregator, deviceOn, documents, models, RECORD, refuses, URL_OF_TESTS } from "./support/campaigns.mjs";

const ONE = documents["de-onebit"].id;
const OTHER = documents["oue-sign"].id;
const ALL = documents.all.id;

function keyValueStore(map = new Map()) {
  return {
    getItem: async (key) => map.get(key) ?? null,
    setItem: async (key, value) => void map.set(key, value),
    removeItem: async (key) => void map.delete(key),
    getAllKeys: async () => [...map.keys()],
  };
}

let made = 0;
const storages = {
  memory: () => {
    const texts = new Map();
    return () => memoryStorage(texts);
  },
  file: (t) => {
    const folder = mkdtempSync(join(tmpdir(), "device-"));
    t.after(() => rmSync(folder, { recursive: true, force: true }));
    return () => fileStorage(folder);
  },
  IndexedDB: () => {
    const name = `database ${made++}`;
    return () => browserStorage(name);
  },
  "React Native": () => {
    const storage = keyValueStorage(keyValueStore());
    return () => storage;
  },
};

for (const [kind, open] of Object.entries(storages)) {
  const named = (promise) => `${promise} (${kind})`;

  test(named("a device that agreed answers once, and what it sends is the same at every try"), async (t) => {
    const [reopen, server] = [open(t), aggregator()];
    const campaign = deviceOn(reopen(), server).campaign(URL_OF_TESTS, ONE, { maxEpsilon: 1 });
    assert.equal((await campaign.status()).consent, null);
    await campaign.grant();
    const receipt = await campaign.contribute(RECORD, "yes");
    assert.deepEqual(await campaign.contribute({ colour: "red" }, "no"), receipt);
    server.loseAnswers = 2;
    let now = Date.now();
    for (let start = 0; start < 3; start++) {
      // an app that starts again on the same storage
      const device = deviceOn(reopen(), server, { now: () => now });
      await device.runOnce(0);
      now += 24 * 3600e3;
    }
    assert.equal(server.uploads.length, 3);
    assert.equal(new Set(server.uploads).size, 1);
    const device = deviceOn(reopen(), server);
    assert.equal((await device.campaign(URL_OF_TESTS, ONE, { maxEpsilon: 1 }).status()).fate, "arrived");
    const [sent, ...more] = await device.sent();
    assert.deepEqual(more, []);
    assert.match(sent.said, / with probability 0\.\d\d\)$/);
    assert.match(sent.asked, /class/);
    assert.match(server.uploads[0], new RegExp(`${sent.id}.*${sent.payload}(00)*$`));
    assert.equal(await device.runOnce(5000), true);
    assert.equal(server.uploads.length, 3);
  });

  test(named("nothing is stored and nothing is sent before somebody decides"), async (t) => {
    const [reopen, server] = [open(t), aggregator()];
    const storage = reopen();
    const writes = [];
    const device = deviceOn(
      { ...storage, change: (...change) => (writes.push(change[0]), storage.change(...change)) },
      server,
    );
    const campaign = device.campaign(URL_OF_TESTS, ONE, { maxEpsilon: 1 });
    await campaign.fetch();
    assert.equal(await campaign.refusal(), null);
    await refuses("consent-missing", campaign.contribute(RECORD, "yes"));
    assert.equal(await device.runOnce(5000), true);
    assert.match(String(await device.ledger()), /contributed to no campaign/);
    await device.export();
    assert.deepEqual(writes, []);
    if (kind === "IndexedDB")
      assert.ok(!(await indexedDB.databases()).some(({ name }) => name === `database ${made - 1}`));
  });

  test(named("a campaign that cannot be had is nothing to do, and the status says why"), async (t) => {
    const server = aggregator();
    let away = true;
    const fetch = (...given) => (away ? Promise.reject(new TypeError("Failed to fetch")) : server.fetch(...given));
    const campaign = deviceOn(open(t)(), { fetch }).campaign(URL_OF_TESTS, ONE, { maxEpsilon: 1 });
    assert.equal((await campaign.nextStep()).step, "nothing");
    assert.equal((await campaign.status()).problem, "unreachable");
    away = false;
    assert.equal((await campaign.nextStep()).step, "ask");
    assert.equal((await campaign.status()).problem, null);
  });

  test(named("nobody is asked twice: not after a yes, not after an answer, not after a no"), async (t) => {
    const [reopen, server] = [open(t), aggregator()];
    const start = (id = ONE, options = { maxEpsilon: 1 }) =>
      deviceOn(reopen(), server).campaign(URL_OF_TESTS, id, options);
    assert.equal((await start().nextStep()).step, "ask");
    await start().fetch();
    assert.equal((await start().nextStep()).step, "ask");
    await start().grant();
    assert.equal((await start().nextStep()).step, "contribute");
    await start().contribute(RECORD, "yes");
    assert.equal((await start().nextStep()).step, "nothing");
    await start(OTHER).withdraw();
    assert.equal((await start(OTHER).nextStep()).step, "nothing");
    assert.equal((await start(ALL, { maxEpsilon: 0.1 }).nextStep()).step, "nothing");
    await start(OTHER).grant();
    assert.equal((await start(OTHER).nextStep()).step, "contribute");
  });

  test(named("who withdraws before anything left gets the loss back, and nothing is sent"), async (t) => {
    const [reopen, server] = [open(t), aggregator()];
    const device = deviceOn(reopen(), server);
    const campaign = device.campaign(URL_OF_TESTS, ONE, { maxEpsilon: 1 });
    await campaign.grant();
    const { epsilon } = await campaign.contribute(RECORD, "yes");
    assert.deepEqual(await campaign.withdraw(), { deleted: 1, onItsWay: 0, refunded: epsilon });
    assert.equal((await device.ledger()).totalEpsilon, 0);
    assert.equal(await device.runOnce(5000), true);
    await refuses("consent-missing", campaign.contribute(RECORD, "yes"));
    assert.deepEqual(server.uploads, []);
    await campaign.grant();
    await campaign.contribute(RECORD, "yes");
    assert.equal(await device.runOnce(5000), true);
    assert.equal(server.uploads.length, 1);
  });

  test(named("erasing leaves nothing, and what follows is a new device"), async (t) => {
    const [reopen, server] = [open(t), aggregator()];
    const storage = reopen();
    const device = deviceOn(storage, server);
    const campaign = device.campaign(URL_OF_TESTS, ONE, { maxEpsilon: 1 });
    await campaign.grant();
    await campaign.contribute(RECORD, "yes");
    await device.erase();
    assert.equal(await storage.read("device"), null);
    assert.equal(await storage.read(`campaign ${ONE}`), null);
    assert.equal((await campaign.status()).consent, null);
    assert.equal(await device.runOnce(5000), true);
    assert.deepEqual(server.uploads, []);
  });

  test(named("many at once contribute once"), async (t) => {
    const [reopen, server] = [open(t), aggregator()];
    await deviceOn(reopen(), server).campaign(URL_OF_TESTS, ONE, { maxEpsilon: 1 }).grant();
    const devices = Array.from({ length: 8 }, () => deviceOn(reopen(), server));
    const records = ["red", "green", "0"].map((colour) => ({ ...RECORD, colour }));
    await Promise.all(
      devices.map(async (device, i) => {
        await device.campaign(URL_OF_TESTS, ONE, { maxEpsilon: 1 }).contribute(records[i % 3], "no");
        await device.runOnce(1000);
      }),
    );
    assert.equal(new Set(server.uploads).size, 1);
  });
}

test("a damaged ledger is never taken for an empty one", async () => {
  const [texts, server] = [new Map(), aggregator()];
  const campaign = deviceOn(memoryStorage(texts), server).campaign(URL_OF_TESTS, ONE, { maxEpsilon: 1 });
  await campaign.grant();
  await campaign.contribute(RECORD, "yes");
  const whole = texts.get("device");
  for (const damaged of ["", whole.slice(0, -1), whole.replace('"waiting"', '"arrived"'), "x"]) {
    texts.set("device", damaged);
    await refuses("storage-corrupt", campaign.contribute(RECORD, "yes"));
    assert.equal(texts.get("device"), damaged);
  }
});

test("where a campaign cannot be had there is nothing to do; nor where it is another document", async () => {
  const next = (status, body) =>
    deviceOn(memoryStorage(), { fetch: async () => new Response(body, { status }) })
      .campaign(URL_OF_TESTS, ONE, { maxEpsilon: 1 })
      .nextStep();
  assert.deepEqual(await next(404, "gone"), { step: "nothing", reason: "http-404" });
  assert.deepEqual(await next(200, "{}"), { step: "nothing", reason: "wrong-hash" });
});

test("a campaign that costs more than a cap is refused, and the cap of all campaigns is exact", async () => {
  const server = aggregator();
  const device = deviceOn(memoryStorage(), server, { maxTotalEpsilon: 2 });
  const cheap = device.campaign(URL_OF_TESTS, ONE, { maxEpsilon: 0.99 });
  assert.equal((await cheap.refusal()).code, "loss-above-cap");
  await refuses("loss-above-cap", cheap.grant());
  assert.equal((await cheap.status()).consent, null);
  const [one, other, third] = [ONE, OTHER, documents["sue-laplace"].id].map((id) =>
    device.campaign(URL_OF_TESTS, id, { maxEpsilon: 1 }),
  );
  for (const campaign of [one, other, third]) await campaign.grant();
  for (const campaign of [one, other]) await campaign.contribute(RECORD, "yes");
  await refuses("total-above-cap", third.contribute(RECORD, "yes"));
  const ledger = await device.ledger();
  assert.ok(ledger.totalEpsilon <= 2 && ledger.totalEpsilon > 1.99);
  assert.equal(ledger.receipts.length, 2);
});

test("a person is told no less than was spent", () => {
  const receipt = (epsilon) => ({ title: "t", at: 0, epsilon, fate: "arrived", questions: [0] });
  for (const [spent, told] of [
    [0.12341, "0.1235"],
    [0.1234, "0.1234"],
    [1e-9, "0.0001"],
    [3.299999999996, "3.3"],
    [2.00001, "2.0001"],
  ])
    assert.match(
      ledgerText([receipt(spent)], 5),
      new RegExp(`far: epsilon ${told} of at most 5.*epsilon ${told};`, "s"),
    );
  const two = new Ledger([receipt(0.1), receipt(0.2)], 5, "installation", "");
  assert.equal(two.totalEpsilon, 0.30000000000000004, "the next double above three tenths");
});

test("an answer that another tab gives at any moment is this campaign's own, not one too many", async () => {
  let moments = 0;
  for (let reached = true; reached; moments++) {
    const [server, texts] = [aggregator(), new Map()];
    const tab = (storage) =>
      deviceOn(storage, server, { maxTotalEpsilon: 1 }).campaign(URL_OF_TESTS, ONE, { maxEpsilon: 1 });
    const [other, slow] = [tab(memoryStorage(texts)), memoryStorage(texts)];
    let reads = 0;
    const read = async (key) => {
      if (key === "device" && reads++ === moments) {
        await other.grant();
        await other.contribute(RECORD, "yes");
      }
      return slow.read(key);
    };
    const campaign = tab({ ...slow, read });
    assert.equal(await campaign.refusal(), null);
    await campaign.grant();
    await campaign.contribute(RECORD, "yes");
    assert.equal((await campaign.nextStep()).step, "nothing");
    reached = reads > moments;
  }
  assert.ok(moments > 4);
});

test("campaigns that are not open, of an answered study, or of another recipient are refused", async () => {
  const server = aggregator();
  const [wide, moments] = [documents.wide.id, documents.moments.id];
  const at = (time) => deviceOn(memoryStorage(), server, { now: () => Date.parse(time), maxTotalEpsilon: 50 });
  const code = async (device, id) => (await device.campaign(URL_OF_TESTS, id, { maxEpsilon: 5 }).refusal())?.code;
  assert.equal(await code(at("2025-12-30T00:00:00Z"), wide), "campaign-not-open");
  assert.equal(await code(at("2025-12-31T12:00:00Z"), wide), undefined);
  assert.equal(await code(at("2026-12-31T23:59:59Z"), wide), undefined);
  assert.equal(await code(at("2027-01-01T23:59:59Z"), wide), undefined, "a clock may be a day ahead");
  assert.equal(await code(at("2027-01-02T00:00:01Z"), wide), "campaign-closed");
  const device = deviceOn(memoryStorage(), server, { maxTotalEpsilon: 50 });
  const first = device.campaign(URL_OF_TESTS, ALL, { maxEpsilon: 5 });
  await first.grant();
  await first.contribute(RECORD, "yes");
  assert.equal(await code(device, moments), "study-answered");
  const other = device.campaign(URL_OF_TESTS, ONE, { maxEpsilon: 5 });
  await other.grant();
  assert.equal(
    (await device.campaign("https://elsewhere.example", ONE, { maxEpsilon: 5 }).load(documents["de-onebit"].document))
      .id,
    ONE,
  );
  const elsewhere = device.campaign("https://elsewhere.example", ONE, { maxEpsilon: 5 });
  await elsewhere.load(documents["de-onebit"].document);
  await refuses("other-recipient", elsewhere.contribute(RECORD, "yes"));
  await device.enable(false);
  assert.equal(await code(device, ONE), "switched-off");
});

test("what cannot be answered spends nothing", async () => {
  const device = deviceOn(memoryStorage(), aggregator());
  const campaign = device.campaign(URL_OF_TESTS, ONE, { maxEpsilon: 1 });
  await campaign.grant();
  await refuses("undeclared-label", campaign.contribute(RECORD, "perhaps"));
  await refuses("not-a-record", campaign.contribute(null, "yes"));
  assert.equal((await device.ledger()).receipts.length, 0);
  assert.deepEqual(
    (await campaign.preview({ colour: "mauve", hours: "many", extra: 1 })).problems.map(({ feature }) => feature),
    ["colour", "größe", "hours", "extra"],
  );
});

test("a preview and a promise take the document at hand, and store, draw and send nothing", async () => {
  const [texts, server] = [new Map(), aggregator()];
  const campaign = deviceOn(memoryStorage(texts), server).campaign(URL_OF_TESTS, ONE, { maxEpsilon: 1 });
  await refuses("not-fetched", campaign.preview(RECORD, "yes"));
  await refuses("not-fetched", campaign.explained());
  await campaign.load(documents["de-onebit"].document);
  const told = await campaign.preview(RECORD, "yes");
  assert.deepEqual(told.problems, []);
  assert.equal(told.questions[0].truth, "yes");
  assert.match(String(told), /^class, asked with probability 0\.143: what is true is yes\n {2}0\.576 {2}yes\n/);
  assert.match(String((await campaign.explained()).policy), /sends that to http:\/\/127\.0\.0\.1:8080, which sees/);
  const broken = new Proxy({}, { get: () => assert.fail(), ownKeys: () => assert.fail() });
  assert.equal((await campaign.preview(broken, "yes")).questions.length, told.questions.length);
  assert.deepEqual([texts.size, server.uploads.length], [0, 0]);
});

test("what left is said in words as long as the document is at hand, and in hexadecimal after", async () => {
  const [texts, server] = [new Map(), aggregator()];
  const device = deviceOn(memoryStorage(texts), server);
  const campaign = device.campaign(URL_OF_TESTS, ONE, { maxEpsilon: 1 });
  await campaign.grant();
  await campaign.contribute(RECORD, "yes");
  await device.runOnce(0);
  const [told] = await device.sent();
  assert.match(told.said, / with probability 0\.\d\d\)$/);
  texts.set(`campaign ${ONE}`, "damaged");
  const [{ asked, said, payload }] = await device.sent();
  assert.deepEqual([asked, said], ["", payload]);
});

test("wrong set-ups are refused before anything happens", () => {
  const options = { maxTotalEpsilon: 1, identity: "per installation" };
  const code = (wrong) => (error) => error.code === wrong;
  assert.throws(() => new Device(memoryStorage(), { maxTotalEpsilon: 1 }), code("bad-identity"));
  assert.throws(() => new Device(memoryStorage(), { ...options, identity: new Uint8Array(31) }), code("bad-identity"));
  assert.throws(() => new Device(memoryStorage(), { ...options, identity: "x".repeat(40) }), code("bad-identity"));
  for (const cap of [0, -1, NaN, Infinity, undefined, "x"])
    assert.throws(() => new Device(memoryStorage(), { ...options, maxTotalEpsilon: cap }), code("bad-cap"));
  const device = new Device(memoryStorage(), options);
  for (const url of [
    "http://example.org",
    "ftp://example.org",
    "https://",
    "https://a/?q",
    "https://u:p@a",
    "http://localhost.evil.example",
    "http://127.0.0.1.evil.example",
    "https://a b",
  ]) {
    assert.throws(() => device.campaign(url, ONE, { maxEpsilon: 1 }), code("bad-url"), url);
  }
  for (const url of ["https://a.example/base/", "http://localhost:8080", "http://127.0.0.1", "http://[::1]:1"])
    device.campaign(url, ONE, { maxEpsilon: 1 });
  assert.throws(() => device.campaign(URL_OF_TESTS, "short", { maxEpsilon: 1 }), code("bad-campaign-id"));
});

test("a model is classified with, and the stored one where the server cannot be reached", async () => {
  const server = aggregator();
  const [[name, { model, predictions }]] = Object.entries(models);
  const { id } = documents[name];
  const device = deviceOn(memoryStorage(), server);
  const campaign = device.campaign(URL_OF_TESTS, id, { maxEpsilon: 5 });
  await refuses("no-model", campaign.classifier());
  await campaign.grant();
  server.models.set(id, model);
  assert.equal((await campaign.classifier()).predict(predictions[0].record), predictions[0].class);
  server.intercept = () => {
    throw new TypeError("offline");
  };
  assert.equal((await campaign.classifier()).predict(predictions[1].record), predictions[1].class);
});

test("a document that is not what the id says is refused", async () => {
  const server = aggregator();
  server.documents.set(ONE, documents["oue-sign"].document);
  await refuses("wrong-hash", deviceOn(memoryStorage(), server).campaign(URL_OF_TESTS, ONE, { maxEpsilon: 1 }).grant());
});

const HOUR = 36e5;

test("a day of final words from a wrong clock costs no report, one day more ends it, and a deletion does at once", async () => {
  const closed = () => problem(409, "campaign-closed");
  const gone = () => problem(410, "campaign-deleted");
  for (const [first, then, fate, dropped] of [
    [closed, undefined, "arrived", {}],
    [closed, closed, "refused", { "campaign-closed": 1 }],
    [gone, undefined, "refused", { "campaign-deleted": 1 }],
  ]) {
    let [now, answer] = [Date.parse("2026-11-21"), first];
    const server = aggregator();
    const device = deviceOn(memoryStorage(), server, { now: () => now, policy: { reportAge: HOUR } });
    const campaign = device.campaign(URL_OF_TESTS, ONE, { maxEpsilon: 1 });
    await campaign.grant();
    await campaign.contribute(RECORD, "yes");
    server.intercept = (method) => (method === "POST" ? answer?.() : undefined);
    for (const until = now + 24 * HOUR; now < until; now += HOUR) {
      await device.runOnce(0);
      assert.equal((await campaign.status()).queued, first === gone ? 0 : 1);
    }
    answer = then;
    await device.runOnce(0);
    const status = await campaign.status();
    assert.deepEqual([status.fate, status.queued, status.dropped], [fate, 0, dropped]);
  }
});

test("a report in the middle of two final words is given up when the second does not come", async () => {
  let now = Date.parse("2026-11-21");
  const server = aggregator();
  const device = deviceOn(memoryStorage(), server, { now: () => now, policy: { reportAge: HOUR } });
  const campaign = device.campaign(URL_OF_TESTS, ONE, { maxEpsilon: 1 });
  await campaign.grant();
  await campaign.contribute(RECORD, "yes");
  let answer = () => problem(409, "campaign-closed");
  server.intercept = (method) => (method === "POST" ? answer() : undefined);
  await device.runOnce(0);
  answer = () => Promise.reject(new TypeError("no network"));
  for (let hours = 0; hours < 170; hours++, now += HOUR) {
    await device.runOnce(0);
    assert.equal((await campaign.status()).fate, hours <= 168 ? "on-its-way" : "expired", `after ${hours} hours`);
  }
});

test("a first try that a clock set back has left far ahead is brought near", async () => {
  let now = 1e12;
  const device = deviceOn(memoryStorage(), aggregator(), { now: () => now });
  const part = device.campaign(URL_OF_TESTS, ONE, { maxEpsilon: 1 });
  await part.grant();
  await part.contribute(RECORD, "yes");
  await device.runOnce(0, 600_000);
  now -= 864e5;
  await device.runOnce(0, 600_000);
  assert.ok((await part.status()).nextTry <= now + 600_000);
});

test("the log says when a report left for the first time", async () => {
  const server = aggregator();
  let now = 1e12;
  const device = deviceOn(memoryStorage(), server, { now: () => now });
  const part = device.campaign(URL_OF_TESTS, ONE, { maxEpsilon: 1 });
  await part.grant();
  await part.contribute(RECORD, "yes");
  server.loseAnswers = 1;
  await device.runOnce(0);
  now += 864e5;
  assert.equal(await device.runOnce(5000), true);
  assert.deepEqual(
    (await device.sent()).map(({ at, reply }) => [at, reply]),
    [[1e12, "arrived"]],
  );
});

test("a second yes to the same changes nothing of what was agreed to, and when", async () => {
  let now = 1e12;
  const device = deviceOn(memoryStorage(), aggregator(), { now: () => now });
  const part = device.campaign(URL_OF_TESTS, ONE, { maxEpsilon: 1 });
  await part.grant();
  now += 5000;
  await part.grant();
  assert.equal((await device.export()).campaigns[ONE].consent.grantedAt, 1e12);
  await part.withdraw();
  await part.grant();
  assert.equal((await device.export()).campaigns[ONE].consent.grantedAt, 1e12 + 5000);
});

test("nothing that is kept of an account tells its secret", async () => {
  const identity = Uint8Array.from({ length: 32 }, (_, place) => 200 + place);
  const texts = new Map();
  const part = deviceOn(memoryStorage(texts), aggregator(), { identity }).campaign(URL_OF_TESTS, ONE, {
    maxEpsilon: 1,
  });
  await part.grant();
  await part.contribute(RECORD, "yes");
  const kept = JSON.stringify([...texts]);
  for (let place = 0; place + 4 <= identity.length; place++)
    assert.ok(!kept.includes(Buffer.from(identity.slice(place, place + 4)).toString("hex")));
  assert.ok(texts.size > 1);
});

test("who is told to come later asks again, and who is told no does not", async () => {
  for (const [status, asked, had] of [
    [429, 2, true],
    [503, 2, true],
    [404, 1, false],
    [403, 1, false],
  ]) {
    const server = aggregator();
    let tries = 0;
    server.intercept = (_, path) => {
      if (path === `/v1/campaigns/${ONE}` && !tries++) return problem(status, "some-code");
    };
    const device = deviceOn(memoryStorage(), server, { policy: { backoffBase: 1 } });
    const found = device.campaign(URL_OF_TESTS, ONE, { maxEpsilon: 1 }).fetch();
    assert.equal(await found.then(() => true, () => false), had, String(status)); // prettier-ignore
    assert.equal(tries, asked, String(status));
  }
});

test("of two campaigns the next look is at the time of the one that is due first, in whichever order they stand", async () => {
  const orders = new Set();
  for (let number = 0; number < 12; number++) {
    const device = deviceOn(memoryStorage(), aggregator(), { now: () => 1e12, maxTotalEpsilon: 99 });
    const parts = [ONE, OTHER].map((id) => device.campaign(URL_OF_TESTS, id, { maxEpsilon: 9 }));
    for (const part of parts) {
      await part.grant();
      await part.contribute(RECORD, "yes");
    }
    const wait = await step(device.install, 600_000);
    const [first, second] = await Promise.all(parts.map(async (part) => (await part.status()).nextTry));
    assert.equal(wait, Math.min(first, second) - 1e12);
    orders.add(first < second);
  }
  assert.equal(orders.size, 2); // but once in 2000
});

test("what is no value is no problem where the author lists what is missing as one", () => {
  const campaign = parseCampaign(documents["de-onebit"].document);
  for (const nothing of [undefined, null, NaN])
    assert.deepEqual(problems(campaign, { ...RECORD, colour: nothing }), [], String(nothing));
  assert.deepEqual(
    problems(campaign, {}).map(({ feature, wrong }) => [feature, wrong]),
    ["größe", "hours"].map((feature) => [feature, "it holds no value"]),
  );
});

test("erasing a key-value store leaves what others keep in it", async () => {
  const map = new Map([
    ["theirs", "1"],
    ["ldp-bayes", "2"],
    ["other/device", "3"],
  ]);
  const storage = keyValueStorage(keyValueStore(map));
  await storage.change("device", () => "x");
  await storage.change("state", () => "y");
  assert.equal(map.size, 5);
  await storage.clear();
  assert.deepEqual([...map.keys()], ["theirs", "ldp-bayes", "other/device"]);
});

test("probabilities of a record that is far from every class add up to one", () => {
  const model = {
    version: 1,
    kind: "naive-bayes",
    label: "class",
    classes: ["yes", "no"],
    prior: [0.5, 0.5],
    features: [{ name: "x", kind: "gaussian", low: 0, high: 1000, mean: [0, 1], variance: [1e-3, 1e-3] }],
  };
  const { yes, no } = new Classifier(model).predictProba({ x: 1000 });
  assert.deepEqual([yes, no], [0, 1]);
  const even = new Classifier(model).predictProba({ x: 0.5 });
  assert.ok(Math.abs(even.yes - 0.5) < 1e-9 && Math.abs(even.yes + even.no - 1) < 1e-12);
});

test("before somebody agrees a model is used and nothing is written, and of one that is stored the newest is kept", async () => {
  const [server, texts] = [aggregator(), new Map()];
  const { model } = models["de-onebit"];
  server.models.set(ONE, model);
  const part = deviceOn(memoryStorage(texts), server).campaign(URL_OF_TESTS, ONE, { maxEpsilon: 1 });
  await part.classifier();
  assert.deepEqual([...texts], []);
  await part.grant();
  await part.classifier();
  await part.models.renewing;
  assert.ok([...texts.values()].includes(model));
});
