// An app that pins its publisher's key: what is not signed, older or expired is not believed, whoever serves it.
import assert from "node:assert/strict";
import { createHash, createPrivateKey, createPublicKey, sign } from "node:crypto";
import { test } from "node:test";
import { readDirectory } from "../dist/core.js";
import { signedBy } from "../dist/publisher/index.js";
import { memoryStorage } from "../dist/testing/index.js";
import { aggregator, deviceOn, documents, models, refuses, renewed, URL_OF_TESTS } from "./support/campaigns.mjs";

const NAME = "de-onebit";
const { id } = documents[NAME];
const OTHER = "A".repeat(43);
const DAY = 864e5;
const digest = (text) => createHash("sha256").update(text).digest("hex");

/** A key pair of a seed (RFC 8410). */
function keyOf(seed) {
  const privateKey = createPrivateKey({
    key: Buffer.concat([Buffer.from("302e020100300506032b657004220420", "hex"), Buffer.alloc(32, seed)]),
    format: "der",
    type: "pkcs8",
  });
  return { privateKey, key: createPublicKey(privateKey).export({ format: "jwk" }).x };
}
const { key: KEY } = keyOf(1);

/** An aggregator that serves what is signed, and devices that pin the key; `world.now` is everybody's clock. */
function made() {
  const server = aggregator();
  const asked = [];
  server.intercept = (_, path) => void asked.push(path);
  const world = { server, asked, now: Date.UTC(2026, 5, 1) };
  world.serve = (version, { days = 30, campaigns = [{ id }], seed = 1, key = KEY } = {}) => {
    // Devices take it a day longer.
    const expires = new Date(world.now + (days - 1) * DAY).toJSON().replace(".000", "");
    const statement = JSON.stringify({ version, expires, campaigns });
    const signature = sign(null, Buffer.from(`ldp-bayes directory 1\n${statement}`), keyOf(seed).privateKey);
    server.directories.set(key, JSON.stringify({ statement, signature: signature.toString("base64url") }));
  };
  world.part = (storage = memoryStorage(), publisher = signedBy(KEY)) => {
    const device = deviceOn(storage, server, {
      now: () => world.now,
      maxTotalEpsilon: 1000,
      policy: { backoffBase: 1 },
    });
    return device.campaign(URL_OF_TESTS, id, { maxEpsilon: 1000, publisher });
  };
  return world;
}
const fetched = ({ asked }) => asked.filter((path) => path.startsWith("/v1/directories/"));
const contributed = (part) => part.contribute({}, "yes");

test("a signed campaign is answered, its directory is fetched once, and contributing uses no network", async () => {
  const world = made();
  world.serve(1);
  const part = world.part();
  assert.equal(await part.refusal(), null);
  await part.grant();
  const before = world.asked.length;
  await contributed(part);
  assert.equal(world.asked.length, before);
  assert.deepEqual(fetched(world), [`/v1/directories/${KEY}`]);
  assert.equal(await part.refusal(), null);
});

test("of a campaign that stands twice in a directory the last word holds", async () => {
  const world = made();
  const { model } = models[NAME];
  world.server.models.set(id, model);
  for (const [first, last, taken] of [
    ["00".repeat(32), digest(model), true],
    [digest(model), "00".repeat(32), false],
  ]) {
    world.serve(1, {
      campaigns: [
        { id, model: first },
        { id, model: last },
      ],
    });
    const found = world.part().classifier();
    if (taken) await found;
    else await refuses("invalid-model", found);
  }
});

test("a campaign that the publisher does not name is refused", async () => {
  const world = made();
  world.serve(1, { campaigns: [{ id: OTHER }] });
  const part = world.part();
  assert.equal((await part.refusal()).code, "not-in-directory");
  await refuses("not-in-directory", part.grant());
  assert.equal(await part.receipt(), null);
});

test("a directory that somebody else signed, or that there is none of, gives no campaign", async () => {
  const world = made();
  await refuses("no-directory", world.part().fetch());
  world.serve(1, { seed: 2 });
  await refuses("wrong-signature", world.part().fetch());
  await refuses("wrong-signature", world.part().grant());
});

test("an older directory is refused after a restart too, once the person has agreed", async () => {
  const world = made();
  const storage = memoryStorage();
  world.serve(5);
  await world.part(storage).grant();
  world.serve(6, { campaigns: [{ id: OTHER }] });
  world.now += 31 * DAY; // the first has expired
  await refuses("directory-expired", world.part(storage).fetch());
  for (const version of [4, 5, 6]) {
    world.serve(version);
    await refuses("older-directory", world.part(storage).fetch());
  }
  world.serve(7);
  assert.equal(await world.part(storage).refusal(), null);
});

test("a page that saw an older directory does not put it in the place of a newer one that another stores meanwhile", async () => {
  const world = made();
  const storage = memoryStorage();
  world.serve(6, { days: 90 });
  const newer = world.server.directories.get(KEY);
  world.serve(5, { days: 90 });
  const raced = {
    ...storage,
    async change(key, change) {
      if (key.includes(KEY)) await storage.change(key, () => newer);
      return storage.change(key, change);
    },
  };
  await world.part(raced).grant();
  world.now += 91 * DAY; // what is known has expired
  await refuses("older-directory", world.part(storage).fetch());
});

test("before the person agrees nothing is stored, and what was seen is remembered as long as the page lives", async () => {
  const world = made();
  const texts = new Map();
  const part = world.part(memoryStorage(texts));
  world.serve(5, { days: 1 });
  await part.fetch();
  assert.equal(texts.size, 0);
  world.now += 2 * DAY;
  world.serve(4);
  await refuses("older-directory", part.fetch());
  assert.equal(texts.size, 0);
});

test("an expired directory is fetched anew, and refused where that gives none", async () => {
  const world = made();
  const storage = memoryStorage();
  world.serve(1, { days: 1 });
  const part = world.part(storage);
  await part.grant();
  world.now += DAY;
  await refuses("directory-expired", contributed(part));
  await refuses("directory-expired", part.fetch());
  world.serve(2);
  await part.fetch();
  await contributed(part);
});

test("only the signed model classifies, and another does not replace it", async () => {
  const world = made();
  const { model } = models[NAME];
  const swapped = JSON.stringify({ ...JSON.parse(model), prior: JSON.parse(model).prior.reverse() });
  const part = world.part();
  world.server.models.set(id, model);
  world.serve(1);
  await part.grant();
  await refuses("invalid-model", part.classifier());
  world.serve(2, { campaigns: [{ id, model: digest(model) }] });
  assert.deepEqual((await part.classifier()).model, JSON.parse(model));
  world.server.models.set(id, swapped);
  await renewed(part);
  assert.deepEqual((await part.classifier()).model, JSON.parse(model), "the server may not choose another");
  world.serve(3, { campaigns: [{ id, model: digest(swapped) }] });
  await renewed(part);
  assert.deepEqual((await part.classifier()).model, JSON.parse(swapped));
  world.server.models.set(id, model);
  await renewed(part);
  assert.deepEqual((await part.classifier()).model, JSON.parse(swapped), "nor one that was signed before");
});

test("a model that is signed for another campaign is none of this one", async () => {
  const world = made();
  const { model } = models[NAME];
  const swapped = JSON.stringify({ ...JSON.parse(model), prior: JSON.parse(model).prior.reverse() });
  world.serve(1, {
    campaigns: [
      { id, model: digest(model) },
      { id: OTHER, model: digest(swapped) },
    ],
  });
  const part = world.part();
  await part.grant();
  world.server.models.set(id, swapped);
  await refuses("invalid-model", part.classifier());
  world.server.models.set(id, model);
  assert.deepEqual((await part.classifier()).model, JSON.parse(model));
  world.server.models.set(id, swapped);
  await renewed(part);
  assert.deepEqual((await part.classifier()).model, JSON.parse(model));
});

test("each of two publishers speaks for the campaigns that it names, and for its own model", async () => {
  const { key: NEXT } = keyOf(2);
  const world = made();
  const { model } = models[NAME];
  const swapped = JSON.stringify({ ...JSON.parse(model), prior: JSON.parse(model).prior.reverse() });
  world.serve(1, { campaigns: [{ id, model: digest(model) }] });
  world.serve(1, { campaigns: [{ id: OTHER, model: digest(swapped) }], seed: 2, key: NEXT });
  const part = world.part(memoryStorage(), signedBy(KEY, NEXT));
  await part.grant();
  world.server.models.set(id, swapped);
  await refuses("invalid-model", part.classifier());
  world.server.models.set(id, model);
  assert.deepEqual((await part.classifier()).model, JSON.parse(model));
  assert.equal((await world.part(memoryStorage(), signedBy(NEXT)).refusal()).code, "not-in-directory");
});

test("a model that was stored unsigned is not taken for a signed one", async () => {
  const world = made();
  const storage = memoryStorage();
  world.server.models.set(id, models[NAME].model);
  world.serve(1);
  const unpinned = world.part(storage, null);
  await unpinned.grant();
  assert.ok(await unpinned.classifier());
  assert.deepEqual(fetched(world), [], "without a key the server is believed, and asked for nothing more");
  await refuses("invalid-model", world.part(storage).classifier());
});

test("where the platform has no Ed25519, what asks for a signature is refused and the rest is as it was", async (t) => {
  const world = made();
  world.serve(1);
  const { crypto } = globalThis;
  t.after(() => Object.defineProperty(globalThis, "crypto", { value: crypto, configurable: true }));
  const unsupported = () => Promise.reject(new DOMException("Unrecognized algorithm", "NotSupportedError"));
  for (const subtle of [undefined, { importKey: unsupported }]) {
    const value = { subtle, getRandomValues: (bytes) => crypto.getRandomValues(bytes) };
    Object.defineProperty(globalThis, "crypto", { value, configurable: true });
    await refuses("no-signatures", world.part().fetch());
    await refuses("no-signatures", world.part().grant());
    const unpinned = world.part(memoryStorage(), null);
    await unpinned.grant();
    await contributed(unpinned);
  }
});

test("of two pinned keys the word of one suffices: an app is shipped with the next before the last is given up", async () => {
  const { key: NEXT } = keyOf(2);
  const orders = [signedBy(KEY, NEXT), signedBy(NEXT, KEY)];
  const storages = [memoryStorage(), memoryStorage()];
  const world = made();
  const model = { campaigns: [{ id, model: digest(models[NAME].model) }] };
  world.server.models.set(id, models[NAME].model);
  world.serve(1, { campaigns: [] });
  for (const [i, both] of orders.entries())
    assert.equal((await world.part(storages[i], both).refusal()).code, "not-in-directory");
  world.serve(1, { ...model, seed: 2, key: NEXT });
  for (const [i, both] of orders.entries()) {
    const part = world.part(storages[i], both);
    await part.grant();
    await contributed(part);
    assert.ok(await part.classifier());
    assert.equal(await world.part(storages[i], both).refusal(), null);
  }
  assert.equal((await world.part().refusal()).code, "not-in-directory");
  world.server.directories.clear();
  await refuses("no-directory", world.part(memoryStorage(), orders[0]).fetch());
  assert.throws(() => signedBy(), { code: "bad-publisher" });
});

test("what went wrong with the first of two keys is told, and both directories are kept once the person agrees", async () => {
  const { key: NEXT } = keyOf(2);
  const world = made();
  const both = signedBy(KEY, NEXT);
  world.serve(1, { seed: 2 }); // signed by another than KEY; of NEXT there is none
  await refuses("wrong-signature", world.part(memoryStorage(), both).fetch());
  await refuses("no-directory", world.part(memoryStorage(), signedBy(NEXT, KEY)).fetch());
  world.serve(1);
  world.serve(1, { seed: 2, key: NEXT });
  const texts = new Map();
  await world.part(memoryStorage(texts), both).grant();
  for (const key of [KEY, NEXT]) assert.ok(texts.get(`publisher ${key}`), key);
  for (const keys of [
    [KEY, "no key"],
    ["no key", KEY],
  ])
    assert.throws(() => signedBy(...keys), { code: "bad-publisher" });
});

test("a directory that holds and does not name the campaign is asked for anew, and a signed model needs none", async () => {
  const world = made();
  const part = world.part();
  world.serve(1, { campaigns: [{ id: OTHER }] });
  assert.equal((await part.refusal()).code, "not-in-directory");
  world.serve(2, { campaigns: [{ id, model: digest(models[NAME].model) }] });
  assert.equal(await part.refusal(), null);
  await part.grant();
  world.server.models.set(id, models[NAME].model);
  const before = fetched(world).length;
  await part.classifier();
  assert.equal(fetched(world).length, before);
});

test("a version is at least 1, campaigns are at most 256, and a signature has one encoding", async () => {
  const signed = (statement, change = (text) => text) => {
    const signature = sign(null, Buffer.from(`ldp-bayes directory 1\n${statement}`), keyOf(1).privateKey);
    return JSON.stringify({ statement, signature: change(signature.toString("base64url")) });
  };
  const told = (version, many) =>
    JSON.stringify({ version, expires: "2026-06-01T00:00:00Z", campaigns: Array(many).fill({ id: OTHER }) });
  assert.equal((await readDirectory(signed(told(1, 256)), KEY)).campaigns.length, 256);
  await refuses("malformed-directory", readDirectory(signed(told(0, 1)), KEY));
  await refuses("malformed-directory", readDirectory(signed(told(1, 257)), KEY));
  const last = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  const other = (text) => text.slice(0, -1) + last[last.indexOf(text.at(-1)) + 1]; // the same 64 bytes
  await refuses("wrong-signature", readDirectory(signed(told(1, 1), other), KEY));
});

test("what is no key is told at once, and a directory that is too long is not read", async () => {
  for (const key of ["", "A".repeat(42), `${"A".repeat(42)}B`, `${KEY}=`, "no key", undefined, null])
    assert.throws(() => signedBy(key), { code: "bad-publisher" });
  const long = JSON.stringify({ statement: " ".repeat(1 << 16), signature: "" });
  await refuses("malformed-directory", readDirectory(long, KEY));
});
