// A server that wants to know its visitors again: over all of their lives, and whatever it hands out to tell them apart.
import assert from "node:assert/strict";
import { createHash, createPrivateKey, createPublicKey, sign } from "node:crypto";
import { test } from "node:test";
import { signedBy } from "../dist/publisher/index.js";
import { memoryStorage, problem } from "../dist/testing/index.js";
import { aggregator, deviceOn, documents, models, RECORD, URL_OF_TESTS } from "./support/campaigns.mjs";

const [INSTALLS, VISITS] = [20, 50];
const [MINUTE, DAY, LATE] = [60e3, 864e5, 600e3];
const [FIRST, SECOND, PINNED] = ["small-epsilon", "she-onebit", "sue-laplace"];
const idOf = (name) => documents[name].id;
const MODEL = JSON.parse(models["de-onebit"].model);

const privateKey = createPrivateKey({
  key: Buffer.concat([Buffer.from("302e020100300506032b657004220420", "hex"), Buffer.alloc(32, 7)]),
  format: "der",
  type: "pkcs8",
});
const KEY = createPublicKey(privateKey).export({ format: "jwk" }).x;

/** A directory of the publisher's: of a version, as good as the others. */
function directory(version) {
  const statement = JSON.stringify({ version, expires: "2099-01-01T00:00:00Z", campaigns: [{ id: idOf(PINNED) }] });
  const signature = sign(null, Buffer.from(`ldp-bayes directory 1\n${statement}`), privateKey);
  return JSON.stringify({ statement, signature: signature.toString("base64url") });
}

/** Numbers from [0, 1) that are the same in every run: when people come, and for how long. */
function chances(seed) {
  let state = seed;
  return () => (state = (state * 48271) % 2147483647) / 2147483647;
}

/** The server: it knows nothing but requests, and marks whatever it answers with a name of whoever asks. */
class Curious {
  now = 1.8e12;
  visitor = -1;
  visit = -1;
  heard = [];
  #plain = aggregator();
  #uploads = new Map();

  modelOf = (visitor) => JSON.stringify({ ...MODEL, training: { ...MODEL.training, visitor: `visitor-${visitor}` } });

  fetch = async (url, { signal, body, ...init }) => {
    const [method, path] = [init.method ?? "GET", url.slice(URL_OF_TESTS.length)];
    const { visitor, visit, now } = this;
    const entry = { visitor, visit, method, path, init: JSON.stringify(init), body: body && hex(body), at: now };
    this.heard.push(entry);
    const answer = await (body ? this.#upload(entry) : this.#fetched(url, path, init));
    entry.ended = this.now;
    for (const name of ["ETag", "Last-Modified", "Content-Location", "X-Visitor"])
      answer.headers.set(name, `"visitor-${visitor}"`);
    return answer;
  };

  #fetched(url, path, init) {
    const { visitor, visit } = this;
    if (visit === 0) return problem(503, `visitor-${visitor}`, { "Retry-After": `${1 + visitor}` });
    if (visit === 1) return Object.defineProperty(new Response("{}"), "url", { value: `${url}/visitor-${visitor}` });
    if (path.endsWith("/model")) return new Response(this.modelOf(visitor));
    if (path.includes("/directories/")) return new Response(directory(1 + (visitor % 5) + (visit > 20 ? 5 : 0)));
    return this.#plain.fetch(url, init);
  }

  #upload({ path, body, visitor }) {
    const times = (this.#uploads.get(visitor + path) ?? 0) + 1;
    this.#uploads.set(visitor + path, times);
    this.now += (5 + visitor) * 1000; // an answer that is held back, as long as nobody else's
    if (times === 1) return problem(503, `visitor-${visitor}`, { "Retry-After": `${100 + visitor}` });
    if (times === 2) throw new TypeError("the connection is lost");
    if (visitor % 3 === 0) return problem(410, `visitor-${visitor}`);
    const rejected = visitor % 3 === 1 ? [[body.match(UPLOAD)[2], `visitor-${visitor}`]] : [];
    return new Response(JSON.stringify({ rejected }));
  }
}

const hex = (bytes) => Buffer.from(bytes).toString("hex");
const UPLOAD = /^92029193[0-7].c410(.{32})c4/;

/** One visit: what an app does when it starts, and then nothing but to stay for a while. */
async function visit(server, texts, stays) {
  const device = deviceOn(memoryStorage(texts), server, {
    now: () => server.now,
    maxTotalEpsilon: 99,
    policy: { backoffBase: 1 },
  });
  const parts = [FIRST, SECOND, PINNED].map((name) =>
    device.campaign(URL_OF_TESTS, idOf(name), {
      maxEpsilon: 9,
      publisher: name === PINNED ? signedBy(KEY) : undefined,
    }),
  );
  for (const part of parts) {
    await part.fetch().catch(() => {});
    await part.refusal().catch(() => {});
  }
  for (const part of parts) await part.classifier().catch(() => {}); // of the pinned one none is signed
  if (server.visit === 3) for (const part of parts) await part.grant();
  if (server.visit === 5) for (const part of parts.slice(0, 2)) await part.contribute(RECORD, "yes");
  if (server.visit === 9) await parts[2].contribute(RECORD, "no");
  for (const until = server.now + stays; server.now < until;) {
    await device.runOnce(0, LATE);
    const times = await Promise.all(parts.map(async (part) => (await part.status()).nextTry ?? Infinity));
    server.now = Math.max(server.now, Math.min(until, ...times));
  }
}

/** Everything that the server hears in 50 visits of 20 installs, one after the other as far as anybody can tell. */
async function heardBy(server) {
  for (let visitor = 0; visitor < INSTALLS; visitor++) {
    const [texts, chance] = [new Map(), chances(visitor + 1)];
    for (let number = 0; number < VISITS; number++) {
      Object.assign(server, { visitor, visit: number, now: 1.8e12 + number * DAY + chance() * 600 * MINUTE });
      await visit(server, texts, chance() < 0.5 ? MINUTE : 30 * MINUTE);
    }
  }
  return server.heard;
}

const grouped = (entries, keyOf) =>
  entries.reduce((groups, one) => groups.set(keyOf(one), [...(groups.get(keyOf(one)) ?? []), one]), new Map());

test("nothing but the drawn question and the id tells a curious server one install from another", async () => {
  const server = new Curious();
  const heard = await heardBy(server);
  const [uploads, fetches] = [heard.filter(({ body }) => body), heard.filter(({ body }) => !body)];
  assert.ok(fetches.length > INSTALLS * VISITS && uploads.length > 6 * INSTALLS);

  for (const [what, same] of grouped(heard, ({ method, path }) => `${method} ${path}`))
    assert.equal(new Set(same.map(({ init }) => init)).size, 1, `headers and settings of ${what}`);

  const said = JSON.stringify(heard.map(({ path, init, body }) => [path, init, body]));
  assert.ok(!said.includes("visitor-"));
  for (let visitor = 0; visitor < INSTALLS; visitor++)
    for (const form of ["hex", "base64", "base64url"])
      assert.ok(!said.includes(createHash("sha256").update(server.modelOf(visitor)).digest(form).replace(/=+$/, "")));

  for (const [number, same] of grouped(fetches, ({ visit }) => visit)) {
    const orders = grouped(same, ({ visitor }) => visitor);
    assert.equal(orders.size, INSTALLS);
    const told = [...orders.values()].map((one) => one.map(({ path }) => path).join());
    assert.equal(new Set(told).size, 1, `what is asked for, and in which order, at visit ${number}`);
    for (const one of orders.values()) assert.equal(new Set(one.map(({ at }) => at)).size, 1, "no time between");
  }

  const owners = new Map();
  const lengths = new Map();
  for (const { visitor, path, body } of uploads) {
    const [, id] = UPLOAD.exec(body);
    assert.equal(
      owners.get(id) ?? `${visitor} ${path} ${body}`,
      `${visitor} ${path} ${body}`,
      "an id is of one answer",
    );
    owners.set(id, `${visitor} ${path} ${body}`);
    assert.equal(lengths.get(path) ?? body.length, body.length, "no length tells a question");
    lengths.set(path, body.length);
  }
  assert.equal(owners.size, 3 * INSTALLS);

  // Of two campaigns of an install no upload begins with, nor at the end of, another's: the clock has 0.1 us, and of the
  // hundred pairs that share a visit one is as close by chance in less than one run in a million.
  for (const same of grouped(uploads, ({ visitor }) => visitor).values()) {
    for (const one of same) {
      const others = same.filter(({ path }) => path !== one.path);
      assert.ok(!others.some(({ at, ended }) => one.at === at || one.at === ended));
    }
  }
});
