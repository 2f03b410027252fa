// What a server that is curious, or hostile, gets of a device, and what a person gets of a server.
import assert from "node:assert/strict";
import { fork } from "node:child_process";
import { once } from "node:events";
import fs, { cpSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { parseCampaign } from "../dist/core.js";
import { Device, fileStorage } from "../dist/node/index.js";
import { keyValueStorage } from "../dist/react-native/index.js";
import { memoryStorage, problem } from "../dist/testing/index.js";
import { aggregator, deviceOn, documents, RECORD, refuses, URL_OF_TESTS } from "./support/campaigns.mjs";
import { layOut, powerCuts } from "./support/power_cuts.mjs";

const ONE = documents["de-onebit"].id;
const OTHER = documents["oue-sign"].id;
const ALL = documents.all.id;
const LATE = 600_000;

const partOf = (device, id = ONE) => device.campaign(URL_OF_TESTS, id, { maxEpsilon: 9 });
async function agreed(device, id = ONE) {
  const part = partOf(device, id);
  await part.grant();
  return part;
}
async function answered(device, id = ONE) {
  const part = await agreed(device, id);
  await part.contribute(RECORD, "yes");
  return part;
}
const folderOf = (t) => {
  const folder = mkdtempSync(join(tmpdir(), "device-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return join(folder, "ledger");
};

test("every campaign leaves at a moment of its own", async () => {
  const moments = new Set();
  for (let number = 0; number < 20; number++) {
    const device = deviceOn(memoryStorage(), aggregator(), { now: () => 1e12 });
    const parts = [await answered(device), await answered(device, OTHER)];
    await device.runOnce(0, LATE);
    for (const part of parts) moments.add((await part.status()).nextTry);
  }
  // 32 bits of 10 minutes each: two of forty are alike with a chance of 2e-7.
  assert.equal(moments.size, 40);
});

test("no campaign leaves when the upload of another ends, also after a long time without the app", async () => {
  const [server, left, ended] = [aggregator(), [], []];
  let now = 1e12;
  const device = deviceOn(memoryStorage(), server, { now: () => now, maxTotalEpsilon: 99 });
  const parts = [];
  for (const id of [ONE, OTHER, documents["sue-laplace"].id]) parts.push(await answered(device, id));
  await device.runOnce(0, LATE);
  now += 864e5;
  server.intercept = (method) => {
    if (method !== "POST") return;
    left.push(now);
    ended.push((now += 25_000));
  };
  for (let looks = 0; looks < 20 && left.length < 3; looks++) {
    await device.runOnce(0, LATE);
    const due = (await Promise.all(parts.map((part) => part.status()))).map(({ nextTry }) => nextTry ?? Infinity);
    if (Math.min(...due) < Infinity) now = Math.max(now, ...due.filter((time) => time === Math.min(...due)));
  }
  assert.equal(left.length, 3);
  assert.deepEqual(
    left.filter((time) => ended.includes(time)),
    [],
  );
});

test("what left is in the log with what the server replied, also where it says that it refused", async () => {
  const rejected = (code) => (body) =>
    new Response(JSON.stringify({ rejected: [[body.match(/c410([0-9a-f]{32})/)[1], code]] }));
  for (const [answer, reply, fate] of [
    [() => problem(410, "gone"), "gone", "refused"],
    [() => problem(422, "malformed-upload"), "malformed-upload", "refused"],
    [rejected("conflicting-report"), "conflicting-report", "refused"],
    [() => problem(503, "x"), null, "on-its-way"],
    [() => new Response('{"rejected": []}'), "arrived", "arrived"],
  ]) {
    const server = aggregator();
    const device = deviceOn(memoryStorage(), {
      fetch: async (url, init) => {
        const arrived = await server.fetch(url, init);
        return init.method === "POST" ? answer(server.uploads.at(-1)) : arrived;
      },
    });
    const part = await answered(device);
    assert.deepEqual(await device.sent(), []);
    await device.runOnce(0);
    const [sent, ...more] = await device.sent();
    assert.deepEqual([more, sent.reply, (await part.status()).fate], [[], reply, fate]);
    assert.match(server.uploads[0], new RegExp(`${sent.payload}(00)*$`));
    assert.ok(sent.at !== null);
    assert.deepEqual(Object.keys((await part.status()).dropped), fate === "refused" ? [reply] : []);
    if (fate === "refused") assert.match(String(await device.ledger()), /the server says that it refused it/);
    await part.withdraw();
    assert.equal((await device.sent()).length, 1, "a withdrawal does not hide what has left");
  }
});

test("of what was withdrawn before anything left nothing is kept", async () => {
  const texts = new Map();
  const device = deviceOn(memoryStorage(texts), aggregator());
  const part = await answered(device);
  const [{ id }] = Object.values((await device.export()).campaigns)[0].reports;
  await part.withdraw();
  assert.ok(![...texts.values()].some((text) => text.includes(id)));
});

test("a server's words cannot fill a storage, and what a full one cannot keep is told by name", async () => {
  const map = new Map();
  let room = 6 << 20;
  const device = deviceOn(
    keyValueStorage({
      getItem: async (key) => map.get(key) ?? null,
      removeItem: async (key) => void map.delete(key),
      getAllKeys: async () => [...map.keys()],
      setItem: async (key, value) => {
        if (value.length > room) throw new Error("database or disk is full");
        map.set(key, value);
      },
    }),
    {
      fetch: async (url, init) =>
        init.method === "POST" ? problem(410, "\u202eEvil <b>\n".repeat(1 << 18)) : aggregator().fetch(url, init),
    },
  );
  const part = await answered(device);
  const before = map.get("ldp-bayes/device").length;
  assert.equal(await device.runOnce(1000), true);
  assert.ok(map.get("ldp-bayes/device").length < before + 100);
  assert.deepEqual((await part.status()).dropped, { "unreadable-code": 1 });
  room = 0;
  await refuses("storage-unavailable", part.withdraw());
  room = 6 << 20;
  await part.withdraw();
  assert.equal(await part.consented(), false);
});

test("an answer without an end is read up to a limit", async (t) => {
  let written = 0;
  const piece = Buffer.alloc(1 << 20, 32);
  const http = createServer((_, response) => {
    response.writeHead(200, { "Content-Type": "application/json" });
    const write = () => {
      while (written < 400) {
        written++;
        if (!response.write(piece)) return response.once("drain", write);
      }
      response.end();
    };
    write();
  });
  t.after(() => (http.closeAllConnections(), http.close()));
  await new Promise((done) => http.listen(0, "127.0.0.1", done));
  const device = new Device(memoryStorage(), { maxTotalEpsilon: 9, identity: "per installation" });
  const part = device.campaign(`http://127.0.0.1:${http.address().port}`, ONE, { maxEpsilon: 9 });
  const began = Date.now();
  await refuses("invalid-document", part.fetch());
  assert.ok(Date.now() - began < 5000, "the length is looked at before the hash");
  assert.ok(written < 100, `${written} MiB were written`);
});

test("what tells its length, or has no stream, is not taken either where it is too long", async () => {
  const read = [];
  for (const answer of [
    () => ({ status: 200, headers: new Headers({ "content-length": `${17 << 20}` }), text: async () => read.push("") }),
    () => new Response(" ".repeat((4 << 20) + 1)),
  ]) {
    const device = deviceOn(memoryStorage(), { fetch: async () => answer() }, { policy: { backoffBase: 1 } });
    await assert.rejects(partOf(device).fetch(), (error) => ["unreachable", "invalid-document"].includes(error.code));
  }
  assert.deepEqual(read, [], "what tells that it is too long is not read");
});

test("an answer from another address is none, whatever the platform's fetch follows", async () => {
  const elsewhere = [
    { redirected: true },
    { url: "https://elsewhere.example/v1" },
    { url: `${URL_OF_TESTS}/login` },
    { redirected: true, url: `${URL_OF_TESTS}/v1/campaigns/${ONE}` },
  ];
  for (const properties of elsewhere) {
    const server = aggregator();
    let followed = false;
    const fetch = async (url, init) => {
      const response = await server.fetch(url, init);
      for (const [name, value] of Object.entries(followed ? properties : { url }))
        Object.defineProperty(response, name, { value });
      return response;
    };
    const device = deviceOn(memoryStorage(), { fetch }, { policy: { backoffBase: 1 } });
    const part = await answered(device);
    followed = true;
    assert.equal(await device.runOnce(0), false);
    assert.equal((await part.status()).fate, "on-its-way");
    await refuses("unreachable", partOf(device, OTHER).fetch());
  }
});

test("an address is taken only as platforms write it in an answer", () => {
  const device = deviceOn(memoryStorage(), aggregator());
  const at = (url) => device.campaign(url, ONE, { maxEpsilon: 1 });
  for (const url of [
    "https://A.example",
    "https://a.example:443",
    "http://localhost:80",
    "https://ä.example/",
    "https://a.example/ä",
  ])
    assert.throws(() => at(url), { code: "bad-url" }, url);
  for (const url of [
    "https://a.example:4430/x",
    "https://[::1]:8443",
    "https://xn--4ca.example",
    "http://127.0.0.1:8080",
  ])
    at(url);
});

test("only the feature asked about is read, and nothing about the others is kept", async () => {
  const campaign = parseCampaign(documents["de-onebit"].document);
  const asked = new Set();
  for (let number = 0; number < 60; number++) {
    const read = new Set();
    const record = new Proxy(
      { colour: "?", größe: "?", hours: "?", other: 1 },
      {
        get: (target, name) => (typeof name === "string" && read.add(name), target[name]),
        has: (target, name) => (read.add(name), name in target),
        getOwnPropertyDescriptor: (target, name) => (read.add(name), Object.getOwnPropertyDescriptor(target, name)),
        ownKeys: (target) => (read.add("colour").add("größe").add("hours"), Reflect.ownKeys(target)),
      },
    );
    const device = deviceOn(memoryStorage(), aggregator());
    const { questions } = await (await agreed(device)).contribute(record, "yes");
    const feature = campaign.questions[questions[0]].feature;
    assert.deepEqual(
      [...read].filter((name) => name !== feature && name in RECORD),
      [],
    );
    asked.add(feature);
  }
  assert.ok(asked.size > 1);
});

test("two storages on one key-value store are one", async () => {
  const [map, server] = [new Map(), aggregator()];
  const slow = () => new Promise((done) => setTimeout(done, Math.random() * 3));
  const store = {
    getItem: async (key) => (await slow(), map.get(key) ?? null),
    setItem: async (key, value) => (await slow(), void map.set(key, value)),
    removeItem: async (key) => void map.delete(key),
    getAllKeys: async () => [...map.keys()],
  };
  assert.equal(keyValueStorage(store), keyValueStorage(store, "ldp-bayes/"));
  assert.notEqual(keyValueStorage(store), keyValueStorage(store, "other/"));
  await agreed(deviceOn(keyValueStorage(store), server));
  await Promise.all(
    ["red", "green", "0", "red"].map(async (colour) => {
      const device = deviceOn(keyValueStorage(store), server);
      await partOf(device).contribute({ ...RECORD, colour }, "no");
      await device.runOnce(1000);
    }),
  );
  assert.equal(new Set(server.uploads).size, 1);
});

test("a folder that was put back, copied, or copied without its mark, answers nothing that it has not answered", async (t) => {
  const [folder, server] = [folderOf(t), aggregator()];
  const on = (path) => deviceOn(fileStorage(path), server, { maxTotalEpsilon: 99 });
  await agreed(on(folder));
  await agreed(on(folder), OTHER);
  cpSync(folder, `${folder}.bak`, { recursive: true });
  await answered(on(folder));
  await on(folder).runOnce(1000);
  assert.equal(await partOf(on(folder), OTHER).refusal(), null);
  rmSync(folder, { recursive: true });
  cpSync(`${folder}.bak`, folder, { recursive: true });
  cpSync(folder, `${folder}.bare`, { recursive: true });
  rmSync(join(`${folder}.bare`, "device.here"));
  for (const path of [folder, `${folder}.bak`, `${folder}.bare`]) {
    const part = partOf(on(path));
    assert.equal((await part.refusal()).code, "copied-storage", path);
    await refuses("copied-storage", part.contribute(RECORD, "no"));
    await part.withdraw(); // what is no answer is taken as ever
    assert.equal(await part.consented(), false);
    assert.equal((await on(path).ledger()).receipts.length, 0);
  }
  assert.equal(server.uploads.length, 1);
});

test("an older state among newer ones is noticed, and a folder that was moved answers once the app vouches for it", async (t) => {
  const [folder, server] = [folderOf(t), aggregator()];
  const on = (path) => deviceOn(fileStorage(path), server, { maxTotalEpsilon: 99 });
  await agreed(on(folder));
  await agreed(on(folder), OTHER);
  const [older] = readdirSync(folder).filter((name) => /^device\.\d+$/.test(name));
  const text = readFileSync(join(folder, older));
  await answered(on(folder));
  const [newer] = readdirSync(folder).filter((name) => /^device\.\d+$/.test(name));
  assert.notEqual(newer, older);
  writeFileSync(join(folder, newer), text);
  await refuses("copied-storage", partOf(on(folder), OTHER).contribute(RECORD, "yes"));
  cpSync(folder, `${folder}.moved`, { recursive: true });
  renameSync(folder, `${folder}.gone`);
  await refuses("copied-storage", partOf(on(`${folder}.moved`), OTHER).contribute(RECORD, "yes"));
  await fileStorage(`${folder}.moved`).adopt();
  for (let start = 0; start < 3; start++)
    assert.ok(await partOf(on(`${folder}.moved`), OTHER).contribute(RECORD, "yes"));
});

test("a folder that was moved answers for every account in it once the app vouches for it", async (t) => {
  const [folder, server] = [folderOf(t), aggregator()];
  const on = (path, byte) => deviceOn(fileStorage(path), server, { identity: new Uint8Array(32).fill(byte) });
  for (const byte of [1, 2]) await agreed(on(folder, byte));
  const moved = `${folder}.moved`;
  cpSync(folder, moved, { recursive: true });
  for (const byte of [1, 2]) assert.equal((await partOf(on(moved, byte)).refusal()).code, "copied-storage");
  await fileStorage(moved).adopt();
  for (const byte of [1, 2]) assert.equal(await partOf(on(moved, byte)).refusal(), null);
});

test("a ledger is never there without its mark, wherever a process is killed", async (t) => {
  const folder = folderOf(t);
  const real = fs.renameSync;
  t.after(() => ((fs.renameSync = real), syncBuiltinESMExports()));
  fs.renameSync = () => {
    throw Object.assign(new Error("killed"), { syscall: "rename" });
  };
  syncBuiltinESMExports();
  const device = deviceOn(fileStorage(folder), aggregator());
  await refuses("storage-unavailable", agreed(device));
  assert.ok(!readdirSync(folder).some((name) => /^device\.\d+$/.test(name)));
  fs.renameSync = real;
  syncBuiltinESMExports();
  assert.ok(await answered(device));
});

test("a device answers with the same bytes after a power cut at every point", async (t) => {
  const root = mkdtempSync(join(tmpdir(), "disk-"));
  t.after(() => rmSync(root, { recursive: true, force: true }));
  const server = aggregator();
  const on = (folder) => deviceOn(fileStorage(join(folder, "far", "below")), server, { maxTotalEpsilon: 99 });
  const answerAndSend = async (folder, id) => {
    await answered(on(folder), id);
    await on(folder).runOnce(10_000);
  };
  const sent = () => server.uploads.length;
  const cuts = await powerCuts(root, sent, async () => {
    for (const id of [ONE, ALL]) await answerAndSend(root, id);
  });
  const bodies = server.uploads.splice(0);
  assert.equal(bodies.length, 2);
  assert.ok(cuts.length > 20);
  for (const { told, done, files } of cuts) {
    const folder = mkdtempSync(join(root, "state-"));
    layOut(files, folder);
    await fileStorage(join(folder, "far", "below")).adopt(); // its files are copies, and the app vouches for them
    server.uploads.length = 0;
    for (const id of [ONE, ALL].slice(0, done)) await answerAndSend(folder, id);
    for (const body of server.uploads) assert.ok(bodies.includes(body), told);
  }
});

test("an erasure leaves no name, no secret and no number to begin anew from", async (t) => {
  const [folder, server] = [folderOf(t), aggregator()];
  const storage = fileStorage(folder);
  await storage.clear();
  assert.throws(() => readdirSync(folder), { code: "ENOENT" });
  const device = deviceOn(storage, server);
  await answered(device);
  const numbers = () => readdirSync(folder).map((name) => Number(name.split(".").pop()) || 0);
  const highest = Math.max(...numbers());
  await device.erase();
  assert.deepEqual(readdirSync(folder), [`.${highest + 1}`]);
  assert.equal(await storage.read("device"), null);
  assert.deepEqual(await device.sent(), []);
  await answered(device);
  assert.ok(Math.max(...numbers()) > highest + 1);
  assert.equal(await partOf(device, OTHER).refusal(), null);
});

test("a delivery that an erasure overtakes makes no new device", async () => {
  const storage = memoryStorage();
  const [sending, erasing] = [deviceOn(storage, aggregator()), deviceOn(storage, aggregator())];
  await answered(sending);
  const read = storage.read.bind(storage);
  storage.read = async (key) => {
    const text = await read(key);
    storage.read = read;
    await erasing.erase();
    return text;
  };
  await sending.runOnce(0, LATE);
  assert.equal(await read("device"), null);
});

test("an erasure beside another process that writes always ends, and nothing of before comes back", async (t) => {
  const server = aggregator();
  const child = fork(new URL("support/writer.mjs", import.meta.url).pathname);
  t.after(() => child.kill());
  const said = async (word) => {
    for (let [heard] = []; heard !== word;) [heard] = await once(child, "message");
  };
  for (let round = 0; round < 25; round++) {
    const folder = folderOf(t);
    const storage = fileStorage(folder);
    await answered(deviceOn(storage, server));
    const { secret } = JSON.parse((await storage.read("device")).slice(43));
    const [begun, ended] = [said("begun"), said("ended")];
    child.send(folder);
    await begun;
    await deviceOn(storage, server).erase();
    await ended;
    const after = await storage.read("device");
    assert.ok(after === null || JSON.parse(after.slice(43)).secret !== secret);
    for (const name of readdirSync(folder)) {
      assert.ok(!name.includes(ONE));
      assert.ok(!readFileSync(join(folder, name), "utf8").includes(secret), name);
    }
  }
});
