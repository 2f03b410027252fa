// Storages that earlier states of this package have written: each opens, tells what was spent, and delivers.
import assert from "node:assert/strict";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import "fake-indexeddb/auto";
import { browserStorage } from "../dist/browser/index.js";
import { Device, fileStorage } from "../dist/node/index.js";
import { keyValueStorage } from "../dist/react-native/index.js";
import { memoryStorage } from "../dist/testing/index.js";

const KEPT = new URL("../../tests/storages/", import.meta.url).pathname;
const ID = "ofzTygr7bZ0VgiAQmPyTDbYVgkPpbuGwpsngCRU5o7o";
const ANSWERED_AT = 18e11;
const HOUR = 36e5;
const names = readdirSync(KEPT);

const textsOf = (name) => JSON.parse(readFileSync(join(KEPT, name, "texts.json"), "utf8"));
let made = 0;

/** Each kind of storage with what was kept of a state. */
const kinds = {
  memory: async (name) => memoryStorage(new Map(Object.entries(textsOf(name)))),
  IndexedDB: async (name) => {
    const storage = browserStorage(`earlier-${made++}`);
    for (const [key, text] of Object.entries(textsOf(name))) await storage.change(key, () => text);
    return storage;
  },
  "React Native": async (name) => {
    const map = new Map(Object.entries(textsOf(name)).map(([key, text]) => [`ldp-bayes/${key}`, text]));
    return keyValueStorage({
      getItem: async (key) => map.get(key) ?? null,
      setItem: async (key, value) => void map.set(key, value),
      removeItem: async (key) => void map.delete(key),
      getAllKeys: async () => [...map.keys()],
    });
  },
  "a folder of Node's": async (name, t) => {
    const folder = mkdtempSync(join(tmpdir(), "earlier-"));
    t.after(() => rmSync(folder, { recursive: true }));
    cpSync(join(KEPT, name, "file"), folder, { recursive: true });
    return fileStorage(folder);
  },
};

test("two earlier states are kept", () => {
  for (const name of ["486d5257", "596852de"]) assert.ok(names.includes(name));
});

for (const name of names)
  for (const [kind, open] of Object.entries(kinds))
    test(`what ${name} wrote opens with its queued report, and it is delivered as it was (${kind})`, async (t) => {
      const uploads = [];
      const fetch = async (url, { body }) => {
        uploads.push([url, Buffer.from(body).toString("hex")]);
        return new Response('{"rejected": []}', { headers: { "Content-Type": "application/json" } });
      };
      const options = { maxTotalEpsilon: 4, identity: "per installation", now: () => ANSWERED_AT + HOUR, fetch };
      const device = new Device(await open(name, t), options);
      const campaign = device.campaign("https://collect.example.org", ID, { maxEpsilon: 2 });
      assert.equal(
        String(await device.ledger()),
        "This device has contributed to 1 campaign. Privacy loss so far: epsilon 1 of at most 4.\n" +
          '* "Vectors" on 2027-01-15: 1 answer, with noise added on this device; epsilon 1; on this device; nothing of it has left.',
      );
      const { consent, fate, queued } = await campaign.status();
      assert.deepEqual([consent, fate, queued], [true, "waiting", 1]);
      assert.deepEqual(await campaign.nextStep(), { step: "nothing", reason: "answered" });
      assert.deepEqual(await campaign.contribute({}, "no"), await campaign.receipt());
      const [{ id, payload }] = (await device.export()).campaigns[ID].reports;
      assert.equal(await device.runOnce(5000), true);
      assert.equal(uploads.length, 1);
      assert.equal(uploads[0][0], `https://collect.example.org/v1/campaigns/${ID}/reports`);
      assert.match(uploads[0][1], new RegExp(`${id}.*${payload}(00)*$`));
      const [sent] = await device.sent();
      assert.match(sent.said, / with probability 0\.\d\d\)$/);
      assert.match(sent.asked, /class$/);
      assert.equal((await campaign.status()).fate, "arrived");
    });
