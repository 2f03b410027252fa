// A browser's storage: one transaction for each change, strictly durable, and every failure under its own code.
import assert from "node:assert/strict";
import { test } from "node:test";
import "fake-indexeddb/auto";
import { browserStorage } from "../dist/browser/index.js";

let made = 0;
const fresh = () => `database ${made++}`;
const refusal = (code) => (error) => error.code === code;
const exists = async (name) => (await indexedDB.databases()).some((one) => one.name === name);

/** Replaces a member of the platform until the test ends. */
function swapped(t, owner, name, value) {
  const before = Object.getOwnPropertyDescriptor(owner, name);
  Object.defineProperty(owner, name, { value, configurable: true, writable: true });
  t.after(() => (before ? Object.defineProperty(owner, name, before) : delete owner[name]));
}

const open = new Set();
const { transaction, close } = IDBDatabase.prototype;
IDBDatabase.prototype.transaction = function (...given) {
  if (given[1] !== "versionchange") open.add(this); // the platform's own, which ends with the upgrade
  return transaction.apply(this, given);
};
IDBDatabase.prototype.close = function () {
  open.delete(this);
  close.call(this);
};

/** Deletes it: the platform would wait without end for a connection that somebody has left open. */
function cleared(storage) {
  assert.equal(open.size, 0, "a connection is still open");
  return storage.clear();
}

test("a text is read as it was changed last, and what becomes null is gone", async () => {
  const name = fresh();
  const storage = browserStorage(name);
  assert.equal(await storage.read("a"), null);
  assert.equal(await exists(name), false, "reading makes no database");
  const seen = [];
  for (const next of ["one", "two", null, "three"])
    await storage.change("a", (before) => {
      seen.push(before);
      return next;
    });
  assert.deepEqual(seen, [null, "one", "two", null]);
  await storage.change("b", () => "other");
  assert.deepEqual([await browserStorage(name).read("a"), await browserStorage(name).read("b")], ["three", "other"]);
  await storage.change("a", () => null);
  assert.deepEqual([await storage.read("a"), await storage.read("b")], [null, "other"]);
  await cleared(storage);
  assert.equal(await exists(name), false);
});

test("changes at once follow one another", async () => {
  const name = fresh();
  const change = () => browserStorage(name).change("n", (before) => String(Number(before) + 1));
  await Promise.all(Array.from({ length: 20 }, change));
  assert.equal(await browserStorage(name).read("n"), "20");
});

test("what a change throws is thrown, and leaves what was there", async () => {
  const storage = browserStorage(fresh());
  await storage.change("a", () => "before");
  const mine = new Error("no");
  await assert.rejects(
    storage.change("a", () => {
      throw mine;
    }),
    (error) => error === mine,
  );
  assert.equal(await storage.read("a"), "before");
});

test("a change is strictly durable, has ended when it is told, and leaves no connection open", async (t) => {
  const storage = browserStorage(fresh());
  await storage.change("a", () => "before");
  const asked = [];
  const closed = [];
  const { transaction, close } = IDBDatabase.prototype;
  swapped(t, IDBDatabase.prototype, "transaction", function (...given) {
    const one = transaction.apply(this, given);
    asked.push(given.slice(1));
    one.addEventListener("complete", () => asked.push("complete"));
    return one;
  });
  swapped(t, IDBDatabase.prototype, "close", function () {
    closed.push(asked.at(-1));
    close.call(this);
  });
  await storage.change("a", () => "text");
  assert.deepEqual(asked, [["readwrite", { durability: "strict" }], "complete"]);
  assert.deepEqual(closed, ["complete"]);
  await storage.read("a");
  assert.equal(closed.length, 2);
  await assert.rejects(storage.change("a", () => Symbol("no text")));
  assert.equal(closed.length, 3);
});

test("a text that stays as it is is not written", async (t) => {
  const storage = browserStorage(fresh());
  await storage.change("a", () => "text");
  const { put } = IDBObjectStore.prototype;
  let written = 0;
  swapped(t, IDBObjectStore.prototype, "put", function (...given) {
    written++;
    return put.apply(this, given);
  });
  await storage.change("a", (before) => before);
  assert.equal(written, 0);
  assert.equal(await storage.read("a"), "text");
  await storage.change("a", () => "another");
  assert.equal(written, 1);
});

test("a full disk, a blocked one and a transaction that failed have their codes, and their cause", async (t) => {
  const storage = browserStorage(fresh());
  await storage.change("a", () => "text");
  for (const [name, code] of [
    ["QuotaExceededError", "storage-full"],
    ["SecurityError", "storage-unavailable"],
  ]) {
    const failure = new DOMException("no", name);
    const { put } = IDBObjectStore.prototype;
    for (const [owner, method] of [
      [indexedDB, "open"],
      [indexedDB, "deleteDatabase"],
      [IDBDatabase.prototype, "transaction"],
    ])
      await t.test(`${name} of ${method}`, async (part) => {
        swapped(part, owner, method, () => {
          throw failure;
        });
        const call = method === "deleteDatabase" ? cleared(storage) : storage.read("a");
        await assert.rejects(call, (error) => error.code === code && error.cause === failure);
      });
    await t.test(`${name} of a commit`, async (part) => {
      swapped(part, IDBObjectStore.prototype, "put", function (...given) {
        Object.defineProperty(this.transaction, "error", { value: failure });
        this.transaction.abort();
        return { given };
      });
      await assert.rejects(
        storage.change("a", () => "new"),
        refusal(code),
      );
    });
    assert.equal(IDBObjectStore.prototype.put, put);
  }
  assert.equal(await storage.read("a"), "text");
});

test("room is asked for where the platform tells it, and believed to be there where it does not", async (t) => {
  const storage = browserStorage(fresh());
  const estimates = (estimate) => swapped(t, globalThis, "navigator", { storage: { estimate } });
  swapped(t, globalThis, "navigator", undefined);
  await storage.check();
  for (const there of [{ quota: 65_536, usage: 0 }, { quota: 165_536, usage: 100_000 }, {}, { usage: 9e15 }]) {
    estimates(async () => there);
    await storage.check();
  }
  estimates(async () => {
    throw new Error("not told");
  });
  await storage.check();
  for (const full of [{ quota: 65_535, usage: 0 }, { quota: 165_535, usage: 100_000 }, { quota: 0 }]) {
    estimates(async () => full);
    await assert.rejects(storage.check(), refusal("storage-full"));
  }
});

test("uploads take turns: among all pages by the platform's lock of this storage's name, else in this page", async (t) => {
  const asked = [];
  swapped(t, globalThis, "navigator", { locks: { request: async (name, work) => (asked.push(name), work()) } });
  const storage = browserStorage("mine");
  assert.equal(await storage.exclusive(async () => "done"), "done");
  assert.deepEqual(asked, ["mine"]);
  swapped(t, globalThis, "navigator", {});
  const steps = [];
  const work = (name) => async () => {
    steps.push(`${name} begins`);
    await new Promise((done) => setTimeout(done, 5));
    steps.push(`${name} ends`);
  };
  await Promise.all([storage.exclusive(work("one")), storage.exclusive(work("two"))]);
  assert.deepEqual(steps, ["one begins", "one ends", "two begins", "two ends"]);
});
