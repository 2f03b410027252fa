// README's snippet, as printed, with something wrong: it reaches its last line within six seconds, and nobody is asked in vain.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { createServer as createSocket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import "fake-indexeddb/auto";
import { browserStorage } from "../dist/browser/index.js";
import { Device, fileStorage } from "../dist/node/index.js";
import { signedBy } from "../dist/publisher/index.js";
import { keyValueStorage } from "../dist/react-native/index.js";
import { memoryStorage } from "../dist/testing/index.js";
import {
  aggregator,
  changed,
  deviceOn,
  documents,
  issuer,
  models,
  renewed,
  URL_OF_TESTS,
} from "./support/campaigns.mjs";

const SECONDS = 6;
const README = readFileSync(new URL("../README.md", import.meta.url), "utf8");
const [, PRINTED] = /^```js\nimport .*\n([^]*?)^```/m.exec(README);
const ADDRESS = '"https://collect.example.org"';
assert.ok(PRINTED.includes(ADDRESS));
const AsyncFunction = (async () => {}).constructor;
const RECORD_OF = { colour: "green" };
const ONE = documents["de-onebit"].id;

/** Runs the snippet; whether it asked, and the next step at its end. */
async function run({ storage = memoryStorage(), server = aggregator(), url = URL_OF_TESTS, id = ONE, publisher } = {}) {
  let asked = false;
  const agrees = async () => (asked = true);
  class Given extends Device {
    constructor(_, options) {
      super(storage, { ...options, fetch: server?.fetch });
    }
    campaign(address, of, options) {
      return super.campaign(address, of, { ...options, publisher });
    }
  }
  const text = PRINTED.replace(ADDRESS, JSON.stringify(url))
    .replace('{ age: "young", income: 41000 }, "no"', `${JSON.stringify(RECORD_OF)}, "no"`)
    .concat("return { device, campaign };");
  const begun = performance.now();
  const snippet = new AsyncFunction("browserStorage", "Device", "id", "agrees", text);
  const { device, campaign } = await snippet(() => storage, Given, id, agrees);
  const seconds = (performance.now() - begun) / 1e3;
  device.close();
  assert.ok(seconds < SECONDS, `${seconds} s`);
  const { step, reason } = await campaign.nextStep({ timeout: 2000 });
  return [asked, step, reason];
}

const agreed = async (storage) => {
  const { step } = await deviceOn(storage, aggregator()).campaign(URL_OF_TESTS, ONE, { maxEpsilon: 2 }).decide(true);
  assert.equal(step, "contribute");
};

const placed = (t) => {
  const folder = mkdtempSync(join(tmpdir(), "faults-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
};

const packed = (state) => {
  const text = JSON.stringify(state);
  return createHash("sha256").update(text).digest("base64url") + text;
};

test("where nothing is wrong the person is asked, and answers once", async () => {
  const storage = memoryStorage();
  assert.deepEqual(await run({ storage }), [true, "nothing", "answered"]);
  assert.deepEqual(await run({ storage }), [false, "nothing", "answered"]);
});

test("a no is remembered", async () => {
  const part = deviceOn(memoryStorage(), aggregator()).campaign(URL_OF_TESTS, ONE, { maxEpsilon: 2 });
  assert.deepEqual(await part.decide(false), { step: "nothing", reason: "declined" });
});

test("who agreed to another address is asked about this one", async () => {
  const storage = memoryStorage();
  await agreed(storage);
  const part = deviceOn(storage, aggregator()).campaign("https://elsewhere.example", ONE, { maxEpsilon: 2 });
  assert.deepEqual(await part.nextStep(), { step: "ask", reason: "other-recipient" });
});

for (const [name, text, code] of [
  ["damaged", "x", "storage-corrupt"],
  ["empty", "", "storage-corrupt"],
  ["of a later version", packed({ secret: "", enabled: true, campaigns: {}, version: 2 }), "storage-newer"],
])
  test(`the storage is ${name}, and can be erased`, async () => {
    const texts = new Map();
    await agreed(memoryStorage(texts));
    texts.set("device", text);
    assert.deepEqual(await run({ storage: memoryStorage(texts) }), [false, "nothing", code]);
    await deviceOn(memoryStorage(texts), aggregator()).erase();
    assert.deepEqual(await run({ storage: memoryStorage(texts) }), [true, "nothing", "answered"]);
  });

test("a storage from before it had a version is read", async () => {
  const texts = new Map();
  await agreed(memoryStorage(texts));
  const { version, ...older } = JSON.parse(texts.get("device").slice(43));
  assert.equal(version, 1);
  texts.set("device", packed(older));
  assert.deepEqual(await run({ storage: memoryStorage(texts) }), [false, "nothing", "answered"]);
});

test("there is no place for the storage", async (t) => {
  const folder = placed(t);
  writeFileSync(join(folder, "device"), "");
  const storage = fileStorage(join(folder, "device", "ldp"));
  assert.deepEqual(await run({ storage }), [false, "nothing", "storage-unavailable"]);
});

/** The snippet's steps in Node, as a process that begins so; whether it asked, and why not. */
const inProcess = (before, folder) => {
  const at = (path) => JSON.stringify(new URL(path, import.meta.url).href);
  const program = `
    const { fileStorage } = await import(${at("../dist/node/index.js")});
    const { aggregator, deviceOn } = await import(${at("./support/campaigns.mjs")});
    const part = deviceOn(fileStorage(process.argv[1]), aggregator()).campaign("${URL_OF_TESTS}", "${ONE}", { maxEpsilon: 2 });
    console.log(JSON.stringify(await part.nextStep()), JSON.stringify(await part.decide(true)));`;
  const command = [process.execPath, "--input-type=module", "--eval", program, folder];
  return execFileSync("sh", ["-c", `${before}; exec "$@"`, "sh", ...command], { encoding: "utf8" }).trim();
};

test("the disk is full", (t) => {
  const full = JSON.stringify({ step: "nothing", reason: "storage-full" });
  const folder = placed(t);
  for (const place of [folder, join(folder, "new", "one")])
    assert.equal(inProcess("ulimit -f 0", place), `${full} ${full}`);
});

test("the disk is read-only", (t) => {
  const folder = placed(t);
  const mount = `mount --bind "${folder}" "${folder}" && mount -o remount,ro,bind "${folder}"`;
  try {
    execFileSync("unshare", ["-m", "sh", "-c", mount], { stdio: "pipe" });
  } catch {
    return t.skip("this user mounts nothing");
  }
  const command = `unshare -m sh -c '${mount} && exec "$@"' sh "$@"; exit`;
  const readOnly = JSON.stringify({ step: "nothing", reason: "storage-read-only" });
  assert.equal(inProcess(command, folder), `${readOnly} ${readOnly}`);
});

test("site data is blocked, or the quota is used up", async (t) => {
  const { open } = indexedDB;
  t.after(() => (indexedDB.open = open));
  indexedDB.open = () => {
    throw new DOMException("denied", "SecurityError");
  };
  const storage = browserStorage("blocked");
  assert.deepEqual(await run({ storage }), [false, "nothing", "storage-unavailable"]);
  indexedDB.open = open;
  const { navigator } = globalThis;
  t.after(() => Object.defineProperty(globalThis, "navigator", { value: navigator, configurable: true }));
  const estimate = async () => ({ quota: 1e6, usage: 1e6 });
  Object.defineProperty(globalThis, "navigator", { value: { storage: { estimate } }, configurable: true });
  assert.deepEqual(await run({ storage: browserStorage("used up") }), [false, "nothing", "storage-full"]);
});

test("a key-value store that keeps nothing", async () => {
  const store = {
    getItem: async () => null,
    setItem: () => Promise.reject(new Error("full")),
    removeItem: async () => {},
  };
  assert.deepEqual(await run({ storage: keyValueStorage(store) }), [false, "nothing", "storage-unavailable"]);
});

const listening = async (t, server) => {
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  t.after(() => (server.closeAllConnections?.(), server.close()));
  return `http://127.0.0.1:${server.address().port}`;
};

for (const [name, answer, code] of [
  ["silent", () => {}, "timeout"],
  ["in trouble", (_, response) => response.writeHead(500).end(), "http-500"],
  ["something else", (_, response) => response.end("<html>"), "wrong-hash"],
  ["cut off", (_, response) => response.destroy(), "unreachable"],
])
  test(`the server is ${name}`, async (t) => {
    const url = await listening(t, createServer(answer));
    const [asked, step, reason] = await run({ server: null, url });
    assert.deepEqual([asked, step], [false, "nothing"]);
    assert.ok([code, "timeout"].includes(reason), reason); // at the end it is asked again, for two seconds
  });

test("the server speaks no HTTP", async (t) => {
  const server = createSocket((socket) => socket.on("error", () => {}).end("\0garbage\r\n\r\n"));
  assert.deepEqual((await run({ server: null, url: await listening(t, server) })).slice(0, 2), [false, "nothing"]);
});

test("nobody listens, and a fetch that throws whatever it likes", async (t) => {
  const server = createSocket();
  const url = await listening(t, server);
  server.close();
  assert.deepEqual((await run({ server: null, url })).slice(0, 2), [false, "nothing"]);
  const odd = () => {
    throw null;
  };
  assert.deepEqual((await run({ server: { fetch: odd } })).slice(0, 2), [false, "nothing"]);
});

test("a storage that throws what is none of this package's", async () => {
  const storage = { ...memoryStorage(), read: () => Promise.reject(new TypeError("odd")) };
  assert.deepEqual(await run({ storage }), [false, "nothing", "unexpected"]);
});

test("the document is newer", async () => {
  const server = aggregator();
  const { document, id } = changed({ version: 99 });
  server.documents.set(id, document);
  const [asked, step, reason] = await run({ server, id });
  assert.deepEqual([asked, step], [false, "nothing"]);
  assert.match(reason, /version|document/);
});

const withoutWebCrypto = (t) => {
  const { crypto } = globalThis;
  t.after(() => Object.defineProperty(globalThis, "crypto", { value: crypto, configurable: true }));
  const value = { getRandomValues: (bytes) => crypto.getRandomValues(bytes) };
  Object.defineProperty(globalThis, "crypto", { value, configurable: true });
};

test("the campaign has an issuer, on a platform that can check a signature and on one that cannot", async (t) => {
  const server = aggregator();
  const { document, id } = changed({ issuer }, "de-onebit");
  server.documents.set(id, document);
  assert.deepEqual(await run({ server, id }), [true, "token", null]);
  withoutWebCrypto(t);
  assert.deepEqual(await run({ server, id }), [false, "nothing", "no-signatures"]);
});

test("the publisher has signed nothing, or its signature cannot be checked", async (t) => {
  const publisher = signedBy("A".repeat(43));
  assert.deepEqual(await run({ publisher }), [false, "nothing", "no-directory"]);
  withoutWebCrypto(t);
  const server = aggregator();
  server.directories.set("A".repeat(43), '{"statement": "{}", "signature": ""}');
  const [asked, step] = await run({ server, publisher });
  assert.deepEqual([asked, step], [false, "nothing"]);
});

test("every call that waits ends in time", async () => {
  const silent = { fetch: () => new Promise(() => {}) };
  const part = deviceOn(memoryStorage(), silent).campaign(URL_OF_TESTS, ONE, { maxEpsilon: 2 });
  for (const name of ["fetch", "refusal", "grant", "classifier"])
    await assert.rejects(part[name]({ timeout: 20 }), { code: "timeout" });
  for (const told of [await part.nextStep({ timeout: 20 }), await part.decide(true, { timeout: 20 })])
    assert.deepEqual(told, { step: "nothing", reason: "timeout" });
});

test("a yes that came too late is kept nowhere", async () => {
  const [texts, server] = [new Map(), aggregator()];
  const late = async (...given) => {
    await new Promise((done) => setTimeout(done, 60));
    return server.fetch(...given);
  };
  const part = deviceOn(memoryStorage(texts), { fetch: late }).campaign(URL_OF_TESTS, ONE, { maxEpsilon: 2 });
  assert.deepEqual(await part.decide(true, { timeout: 20 }), { step: "nothing", reason: "timeout" });
  await new Promise((done) => setTimeout(done, 200));
  assert.equal(texts.size, 0);
});

test("a stored model classifies at once, and the newest at the next call, stored or not", async () => {
  const [[name, { model, predictions }]] = Object.entries(models);
  const { id } = documents[name];
  const [server, texts] = [aggregator(), new Map()];
  const start = (storage, fetch = server.fetch) =>
    deviceOn(storage, { fetch }).campaign(URL_OF_TESTS, id, { maxEpsilon: 5 });
  const first = start(memoryStorage(texts));
  await first.grant();
  server.models.set(id, model);
  await first.classifier();
  const newer = JSON.stringify({ ...JSON.parse(model), prior: JSON.parse(model).prior.reverse() });
  server.models.set(id, newer);
  const silent = start(memoryStorage(texts), () => new Promise(() => {}));
  assert.equal((await silent.classifier({ timeout: 20 })).predict(predictions[0].record), predictions[0].class);
  const full = { ...memoryStorage(texts), change: () => Promise.reject(new Error("full")) };
  const part = start(full);
  await renewed(part);
  assert.deepEqual((await part.classifier()).model, JSON.parse(newer));
  assert.deepEqual(
    (await start({ ...full, read: () => Promise.reject(new Error("gone")) }).classifier()).model,
    JSON.parse(newer),
  );
});

test("of two accounts on one storage one is erased and the other is not", async () => {
  const [texts, server] = [new Map(), aggregator()];
  const accounts = [1, 2].map((byte) =>
    deviceOn(memoryStorage(texts), server, { identity: new Uint8Array(32).fill(byte) }),
  );
  const parts = accounts.map((device) => device.campaign(URL_OF_TESTS, ONE, { maxEpsilon: 2 }));
  for (const part of parts) {
    await part.decide(true);
    await part.contribute(RECORD_OF, "no");
  }
  await accounts[0].erase();
  assert.deepEqual(await parts[0].nextStep(), { step: "ask", reason: null });
  assert.deepEqual(await parts[1].nextStep(), { step: "nothing", reason: "answered" });
});

test("a change that meets an erasure by another process is made anew, of nothing", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "erased-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const [mine, theirs] = [fileStorage(folder), fileStorage(folder)];
  await mine.change("note", () => "before");
  const seen = [];
  await mine.change("note", (before) => {
    seen.push(before);
    if (seen.length === 1) void theirs.clear(); // it does its work before it returns
    return "after";
  });
  assert.deepEqual(seen, ["before", null]);
  assert.equal(await theirs.read("note"), "after");
});
