import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import "fake-indexeddb/auto";
import { browserStorage } from "../dist/browser/index.js";
import { keyedSource, LdpError, parseCampaign, utf8 } from "../dist/index.js";
import { Device, fileStorage } from "../dist/node/index.js";
import { keyValueStorage } from "../dist/react-native/index.js";
import { memoryStorage, problem } from "../dist/testing/index.js";
import { aggregator, documents, models, RECORD, URL_OF_TESTS } from "./support/campaigns.mjs";

const ONE = documents["de-onebit"].id;
const OTHER = documents["oue-sign"].id;
const ALL = documents.all.id;
const refuses = (code, promise) => assert.rejects(promise, (error) => error.code === code || assert.fail(String(error.stack)));

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

function deviceOn(storage, server, options = {}) {
  return new Device(storage, { maxTotalEpsilon: 10, identity: "per installation", fetch: server.fetch, ...options });
}

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
    for (let start = 0; start < 3; start++) { // an app that starts again on the same storage
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
    assert.ok(server.uploads[0].endsWith(sent.payload) && server.uploads[0].includes(sent.id));
    assert.equal(await device.runOnce(5000), true);
    assert.equal(server.uploads.length, 3);
  });

  test(named("nothing is stored and nothing is sent before somebody decides"), async (t) => {
    const [reopen, server] = [open(t), aggregator()];
    const storage = reopen();
    const writes = [];
    const device = deviceOn({ ...storage, change: (...change) => (writes.push(change[0]), storage.change(...change)) }, server);
    const campaign = device.campaign(URL_OF_TESTS, ONE, { maxEpsilon: 1 });
    await campaign.fetch();
    assert.equal(await campaign.refusal(), null);
    await refuses("consent-missing", campaign.contribute(RECORD, "yes"));
    assert.equal(await device.runOnce(5000), true);
    assert.match(String(await device.ledger()), /answered: 0/);
    await device.export();
    assert.deepEqual(writes, []);
    if (kind === "IndexedDB") assert.ok(!(await indexedDB.databases()).some(({ name }) => name === `database ${made - 1}`));
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
    await Promise.all(devices.map(async (device, i) => {
      await device.campaign(URL_OF_TESTS, ONE, { maxEpsilon: 1 }).contribute(records[i % 3], "no");
      await device.runOnce(1000);
    }));
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

test("a campaign that costs more than a cap is refused, and the cap of all campaigns is exact", async () => {
  const server = aggregator();
  const device = deviceOn(memoryStorage(), server, { maxTotalEpsilon: 2 });
  const cheap = device.campaign(URL_OF_TESTS, ONE, { maxEpsilon: 0.99 });
  assert.equal((await cheap.refusal()).code, "loss-above-cap");
  for (const id of [ONE, OTHER, documents["sue-laplace"].id]) {
    const campaign = device.campaign(URL_OF_TESTS, id, { maxEpsilon: 1 });
    await campaign.grant();
    if (id === documents["sue-laplace"].id) await refuses("total-above-cap", campaign.contribute(RECORD, "yes"));
    else await campaign.contribute(RECORD, "yes");
  }
  const ledger = await device.ledger();
  assert.ok(ledger.totalEpsilon <= 2 && ledger.totalEpsilon > 1.99);
  assert.equal(ledger.receipts.length, 2);
});

test("campaigns that are not open, of an answered study, or of another recipient are refused", async () => {
  const server = aggregator();
  const [wide, moments] = [documents.wide.id, documents.moments.id];
  const at = (time) => deviceOn(memoryStorage(), server, { now: () => Date.parse(time), maxTotalEpsilon: 50 });
  const code = async (device, id) => (await device.campaign(URL_OF_TESTS, id, { maxEpsilon: 5 }).refusal())?.code;
  assert.equal(await code(at("2025-12-30T00:00:00Z"), wide), "campaign-not-open");
  assert.equal(await code(at("2025-12-31T12:00:00Z"), wide), undefined);
  assert.equal(await code(at("2027-01-02T00:00:01Z"), wide), "campaign-closed");
  const device = deviceOn(memoryStorage(), server, { maxTotalEpsilon: 50 });
  const first = device.campaign(URL_OF_TESTS, ALL, { maxEpsilon: 5 });
  await first.grant();
  await first.contribute(RECORD, "yes");
  assert.equal(await code(device, moments), "study-answered");
  const other = device.campaign(URL_OF_TESTS, ONE, { maxEpsilon: 5 });
  await other.grant();
  assert.equal((await device.campaign("https://elsewhere.example", ONE, { maxEpsilon: 5 }).load(documents["de-onebit"].document)).id, ONE);
  const elsewhere = device.campaign("https://elsewhere.example", ONE, { maxEpsilon: 5 });
  elsewhere.load(documents["de-onebit"].document);
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
  assert.deepEqual((await campaign.problems({ colour: "mauve", hours: "many", extra: 1 })).map(({ feature }) => feature), ["colour", "größe", "hours", "extra"]);
});

test("switched off, nothing is sent; switched on again, what waited is", async () => {
  const server = aggregator();
  const device = deviceOn(memoryStorage(), server);
  const campaign = device.campaign(URL_OF_TESTS, ONE, { maxEpsilon: 1 });
  await campaign.grant();
  await campaign.contribute(RECORD, "yes");
  await device.enable(false);
  assert.equal(await device.runOnce(5000), true);
  assert.deepEqual(server.uploads, []);
  await device.enable(true);
  assert.equal(await device.runOnce(5000), true);
  assert.equal(server.uploads.length, 1);
});

test("an account's answer to the same record is the same bytes from every installation, to another record others", async () => {
  const server = aggregator();
  const identity = crypto.getRandomValues(new Uint8Array(32));
  const answer = async (record, label, account) => {
    const device = deviceOn(memoryStorage(), server, { identity: account });
    const campaign = device.campaign(URL_OF_TESTS, documents.all.id, { maxEpsilon: 4 });
    await campaign.grant();
    await campaign.contribute(record, label);
    await device.runOnce(0);
    assert.match(String(await device.ledger()), /this account: .*\n.*\nYour other devices give the same answer/);
    return server.uploads.pop();
  };
  const first = await answer(RECORD, "yes", identity);
  assert.equal(await answer({ ...RECORD }, "yes", identity), first);
  assert.notEqual(await answer(RECORD, "no", identity), first);
  assert.notEqual(await answer(RECORD, "yes", crypto.getRandomValues(new Uint8Array(32))), first);
});

test("the ledger says whose loss it tells", async () => {
  const ledger = await deviceOn(memoryStorage(), aggregator()).ledger();
  assert.equal(ledger.per, "installation");
  assert.match(String(ledger), /storage of this installation is cleared, this count is lost/);
});

test("an account's coins have the law of the mechanism, and those of two items are independent", () => {
  // No chance is left in it: the 4,000 accounts are fixed. For a fair draw of accounts each bound would be exceeded with
  // probability below 1e-4 (four standard errors).
  const campaign = parseCampaign(documents["de-onebit"].document, ONE);
  const question = campaign.questions.find(({ mechanism }) => mechanism === "de");
  const [p, trials] = [Number(question.parameters.p) / 2 ** 64, 4000];
  const kept = [0, 1].map((item) => Array.from({ length: trials }, (_, account) => {
    const coins = keyedSource(utf8(`account ${account}`.padEnd(32)), campaign).mechanism(question, item);
    return Number(coins.bernoulli(question.parameters.p));
  }));
  const near = (found, wanted) => assert.ok(Math.abs(found - wanted) < 4 * Math.sqrt(wanted * (1 - wanted) / trials), `${found} is not ${wanted}`);
  for (const flags of kept) near(flags.reduce((a, b) => a + b) / trials, p);
  near(kept[0].filter((flag, i) => flag && kept[1][i]).length / trials, p * p);
});

test("who withdraws while an upload is under way is told that it may arrive, and what arrived", async () => {
  for (const lands of [false, true]) {
    const server = aggregator();
    const device = deviceOn(memoryStorage(), server, { policy: { closeTimeout: 300 } });
    const campaign = device.campaign(URL_OF_TESTS, ONE, { maxEpsilon: 1 });
    await campaign.grant();
    await campaign.contribute(RECORD, "yes");
    let land;
    const landing = new Promise((done) => (land = done));
    const begun = new Promise((begin) => {
      server.intercept = async (method) => void (method === "POST" && (begin(), await landing));
    });
    const delivery = device.runOnce(0);
    await begun;
    const withdrawal = campaign.withdraw();
    if (lands) land();
    assert.deepEqual(await withdrawal, { deleted: 1, onItsWay: lands ? 0 : 1, refunded: 0 });
    land();
    await delivery;
    assert.equal((await campaign.receipt()).fate, "arrived");
    await refuses("consent-missing", campaign.contribute(RECORD, "yes"));
    assert.ok((await device.ledger()).totalEpsilon > 0, "what began to leave stays spent");
    server.intercept = () => undefined;
    assert.equal(await device.runOnce(1000), true);
    assert.equal(server.uploads.length, 1);
  }
});

test("a storage that fails spends nothing, stops no delivery for good, and throws nothing from the background", async () => {
  const [texts, server] = [new Map(), aggregator()];
  const storage = memoryStorage(texts);
  let broken = false;
  const fragile = Object.fromEntries(Object.entries(storage).map(([name, method]) => [name, async (...given) => {
    if (broken && name !== "exclusive") throw new LdpError("storage-unavailable");
    return method(...given);
  }]));
  const device = deviceOn(fragile, server, { policy: { firstDelay: 0, idleCheck: 20 } });
  const campaign = device.campaign(URL_OF_TESTS, ONE, { maxEpsilon: 1 });
  await campaign.grant();
  const before = texts.get("device");
  broken = true;
  await refuses("storage-unavailable", campaign.contribute(RECORD, "yes"));
  assert.equal(await device.runOnce(1000), false);
  device.start();
  await new Promise((done) => setTimeout(done, 50));
  assert.equal(texts.get("device"), before);
  broken = false;
  await campaign.contribute(RECORD, "yes");
  for (let tries = 0; tries < 100 && !server.uploads.length; tries++) await new Promise((done) => setTimeout(done, 20));
  device.close();
  assert.equal(server.uploads.length, 1);
});

test("a damaged document is fetched again", async () => {
  const [texts, server] = [new Map(), aggregator()];
  const campaign = () => deviceOn(memoryStorage(texts), server).campaign(URL_OF_TESTS, ONE, { maxEpsilon: 1 });
  await campaign().grant();
  texts.set(`campaign ${ONE}`, "{}");
  await refuses("not-fetched", campaign().contribute(RECORD, "yes"));
  assert.equal((await campaign().fetch()).id, ONE);
});

test("processes on one folder answer once, and one that is killed at any instant goes on with the same bytes", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "device-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const child = new URL("support/child.mjs", import.meta.url).pathname;
  const said = [];
  const run = (killed) => new Promise((done) => {
    const process_ = spawn(process.execPath, [child, join(folder, "ledger")], { stdio: ["ignore", "pipe", "inherit"] });
    let text = "";
    process_.stdout.on("data", (chunk) => (text += chunk));
    process_.on("exit", () => done(said.push(...text.split("\n").filter((line) => /^sent \w+$/.test(line)))));
    if (killed) setTimeout(() => process_.kill("SIGKILL"), 30 + Math.random() * 150);
  });
  for (let round = 0; round < 5; round++) await Promise.all([run(true), run(true), run(true), run(true)]);
  await Promise.all([run(false), run(false), run(false)]);
  assert.ok(said.length >= 3);
  assert.equal(new Set(said).size, 1);
});

test("wrong set-ups are refused before anything happens", () => {
  const options = { maxTotalEpsilon: 1, identity: "per installation" };
  const code = (wrong) => (error) => error.code === wrong;
  assert.throws(() => new Device(memoryStorage(), { maxTotalEpsilon: 1 }), code("bad-identity"));
  assert.throws(() => new Device(memoryStorage(), { ...options, identity: new Uint8Array(31) }), code("bad-identity"));
  assert.throws(() => new Device(memoryStorage(), { ...options, identity: "x".repeat(40) }), code("bad-identity"));
  for (const cap of [0, -1, NaN, Infinity, undefined, "x"]) assert.throws(() => new Device(memoryStorage(), { ...options, maxTotalEpsilon: cap }), code("bad-cap"));
  const device = new Device(memoryStorage(), options);
  for (const url of ["http://example.org", "ftp://example.org", "https://", "https://a/?q", "https://u:p@a", "http://localhost.evil.example", "http://127.0.0.1.evil.example", "https://a b"]) {
    assert.throws(() => device.campaign(url, ONE, { maxEpsilon: 1 }), code("bad-url"), url);
  }
  for (const url of ["https://a.example/base/", "http://localhost:8080", "http://127.0.0.1", "http://[::1]:1"]) device.campaign(url, ONE, { maxEpsilon: 1 });
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

test("files of a storage do not pile up", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "device-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const storage = fileStorage(folder);
  for (let i = 0; i < 20; i++) await storage.change("device", (before) => String(Number(before ?? 0) + 1));
  assert.equal(await storage.read("device"), "20");
  assert.deepEqual(readdirSync(folder), ["device.20"]);
});

test("a campaign that has closed meanwhile takes the report off the queue, and says so", async () => {
  const server = aggregator();
  const device = deviceOn(memoryStorage(), server);
  const campaign = device.campaign(URL_OF_TESTS, ONE, { maxEpsilon: 1 });
  await campaign.grant();
  await campaign.contribute(RECORD, "yes");
  server.intercept = (method) => (method === "POST" ? problem(409, "campaign-closed") : undefined);
  assert.equal(await device.runOnce(5000), true);
  const { fate, queued, dropped } = await campaign.status();
  assert.deepEqual({ fate, queued, dropped }, { fate: "refused", queued: 0, dropped: { "campaign-closed": 1 } });
});
