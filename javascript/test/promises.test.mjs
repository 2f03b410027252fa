import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { LdpError, parseCampaign, perturb, unhex } from "../dist/core.js";
import { unpack } from "../dist/device/state.js";
import { fileStorage } from "../dist/node/index.js";
import { memoryStorage } from "../dist/testing/index.js";
import { aggregator, deviceOn, documents, RECORD, refuses, URL_OF_TESTS } from "./support/campaigns.mjs";

const ONE = documents["de-onebit"].id;

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

test("an account's devices are asked one question under one id, and each answers it with noise of its own", async () => {
  const campaign = parseCampaign(documents["de-onebit"].document, ONE);
  const [identity, devices] = [new Uint8Array(32).fill(1), 400];
  const told = [];
  for (let device = 0; device < devices; device++) {
    const texts = new Map();
    const one = deviceOn(memoryStorage(texts), aggregator(), { identity });
    const part = one.campaign(URL_OF_TESTS, ONE, { maxEpsilon: 1 });
    await part.load(campaign.document);
    await part.grant();
    await part.contribute(RECORD, "yes");
    assert.match((await one.ledger()).note, /its loss comes on top and is not in this count/);
    const { secret, campaigns } = unpack([...texts].find(([key]) => key.startsWith("account"))[1]);
    told.push({ secret, ...campaigns[ONE].reports[0] });
  }
  for (const same of ["secret", "id", "question"]) assert.equal(new Set(told.map((one) => one[same])).size, 1);
  // Whoever knows the account's bytes knows all of this, and of an answer no more than its mechanism tells anybody.
  const [{ item, question }] = perturb(campaign, RECORD, "yes", unhex(told[0].secret));
  const { mechanism, parameters } = campaign.questions[question];
  const p = Number(parameters.p) / 2 ** 64;
  assert.deepEqual([question, mechanism], [told[0].question, "de"]);
  const truths = told.filter(({ payload }) => parseInt(payload, 16) === item).length;
  // Five and a half standard errors: wrong by chance less than once in ten million runs.
  assert.ok(Math.abs(truths - devices * p) < 5.5 * Math.sqrt(devices * p * (1 - p)), `${truths} of ${devices}`);
});

test("the ledger says whose loss it tells", async () => {
  const ledger = await deviceOn(memoryStorage(), aggregator()).ledger();
  assert.equal(ledger.per, "installation");
  assert.match(ledger.note, /storage of this installation is cleared, this count is lost/);
});

test("who withdraws while an upload is under way is told that it may arrive, and what arrived", async () => {
  for (const lands of [false, true]) {
    const server = aggregator();
    const device = deviceOn(memoryStorage(), server);
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
  const fragile = Object.fromEntries(
    Object.entries(storage).map(([name, method]) => [
      name,
      async (...given) => {
        if (broken && name !== "exclusive") throw new LdpError("storage-unavailable");
        return method(...given);
      },
    ]),
  );
  const device = deviceOn(fragile, server, { policy: { firstDelay: 0 } });
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
  const run = (killed) =>
    new Promise((done) => {
      const process_ = spawn(process.execPath, [child, join(folder, "ledger")], {
        stdio: ["ignore", "pipe", "inherit"],
      });
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

test("files of a storage do not pile up, nor what killed processes left", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "device-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const storage = fileStorage(folder);
  for (const [name, hours] of [
    ["draft-0123456789abcdef", 25],
    ["draft-fedcba9876543210", 23],
  ]) {
    writeFileSync(join(folder, name), "");
    utimesSync(join(folder, name), new Date(), new Date(Date.now() - hours * 36e5));
  }
  for (let i = 0; i < 20; i++) await storage.change("device", (before) => String(Number(before ?? 0) + 1));
  assert.equal(await storage.read("device"), "20");
  assert.deepEqual(readdirSync(folder), ["device.20", "device.here", "draft-fedcba9876543210"]);
});
