// A device that seals: what leaves it, what it believes, and that nothing ever leaves in the clear.
import assert from "node:assert/strict";
import { createPrivateKey, createPublicKey, hkdfSync, randomBytes } from "node:crypto";
import { test } from "node:test";
import { Aes128Gcm, CipherSuite, DhkemX25519HkdfSha256, HkdfSha256 } from "@hpke/core";
import { hex, MEDIA_TYPE, parseCampaign, unhex, uploadLength } from "../dist/core.js";
import { decodeResponse, encodeRequest } from "../dist/later/binary.js";
import { signedBy } from "../dist/publisher/index.js";
import { encapsulate } from "../dist/later/sealing.js";
import { memoryStorage, problem } from "../dist/testing/index.js";
import { aggregator, changed, deviceOn, issuer, RECORD, refuses, sign } from "./support/campaigns.mjs";

const URL = "https://collect.example.org/base";
const RELAY = "https://relay.example/some/path/";
const DAY = 864e5;
const [AES, CHACHA] = [1, 3];
const text = (bytes) => String.fromCharCode(...bytes);
const latin = (content) => Uint8Array.from(content, (sign) => sign.charCodeAt(0));
const join = (...parts) => new Uint8Array(Buffer.concat(parts.map((part) => Uint8Array.from(part))));

const of = new CipherSuite({ kem: new DhkemX25519HkdfSha256(), kdf: new HkdfSha256(), aead: new Aes128Gcm() });

/** Both halves of a secret key's 32 bytes. */
function keyPair(secret) {
  const privateKey = createPrivateKey({
    key: Buffer.concat([Buffer.from("302e020100300506032b656e04220420", "hex"), secret]),
    format: "der",
    type: "pkcs8",
  });
  const { x } = createPublicKey(privateKey).export({ format: "jwk" });
  return { secret, public: Buffer.from(x, "base64url") };
}
const KEY = keyPair(Buffer.from(Array.from({ length: 32 }, (_, i) => i)));

const gatewayOf = (...aeads) => ({
  key: Buffer.concat([
    Buffer.from([9, 0, 32]),
    KEY.public,
    Buffer.from([0, 4 * aeads.length, ...aeads.flatMap((aead) => [0, 1, 0, aead])]),
  ]).toString("base64url"),
});
const SEALED = changed({ gateway: gatewayOf(AES, CHACHA) }, "de-onebit");

/** What a request in binary form says; for requests of one header section and known lengths. */
function readRequest(message) {
  let at = 0;
  const number = () => {
    const size = 2 ** (message[at] >> 6);
    const value = message.slice(at, at + size).reduce((sum, byte, i) => 256 * sum + (i ? byte : byte & 63), 0);
    at += size;
    return value;
  };
  const block = () => {
    const length = number();
    return message.slice(at, (at += length));
  };
  assert.equal(number(), 0);
  const control = [block(), block(), block(), block()].map(text);
  const [fields, body] = [block(), block()];
  assert.equal((message.length - body.length) % 1024, 0);
  assert.ok(message.slice(at).every((byte) => !byte));
  const headers = {};
  [message, at] = [fields, 0];
  while (at < fields.length) headers[text(block())] = text(block());
  return { control, headers, body };
}

/** A response in binary form. */
function responseOf(status, headers, body, padding = 64) {
  const block = (bytes) => {
    assert.ok(bytes.length < 16384);
    return join(bytes.length < 64 ? [bytes.length] : [64 | (bytes.length >> 8), bytes.length & 255], bytes);
  };
  const lines = join(...Object.entries(headers).flatMap((pair) => pair.map((one) => block(latin(one)))));
  return join([1, 64 | (status >> 8), status & 255], block(lines), block(latin(body)), new Uint8Array(padding));
}

const ARRIVED = responseOf(200, { "content-type": "application/json" }, '{"rejected": []}');
const OHTTP = { headers: { "Content-Type": "message/ohttp-res" } };

/** The network: a relay with a gateway behind it, where `answer` says nothing else. */
class Gate {
  requests = [];
  messages = [];
  inner = ARRIVED;
  answer = undefined;

  fetch = async (url, init) => {
    if (url.endsWith("/state")) return new Response('{"state": "open"}');
    this.requests.push({ url, ...init });
    return (await this.answer?.(init.body)) ?? new Response(await this.opened(init.body), OHTTP);
  };

  /** The sealed answer to a sealed request. */
  async opened(body) {
    const [header, enc] = [body.slice(0, 7), body.slice(7, 39)];
    const context = await of.createRecipientContext({
      recipientKey: await of.kem.deserializePrivateKey(KEY.secret),
      enc,
      info: join(latin("message/bhttp request\0"), header),
    });
    this.messages.push(readRequest(new Uint8Array(await context.open(body.slice(39)))));
    const length = Math.max(of.aead.keySize, of.aead.nonceSize);
    const nonce = randomBytes(length);
    const secret = await context.export(latin("message/bhttp response"), length);
    const derived = (name, size) => new Uint8Array(hkdfSync("sha256", secret, join(enc, nonce), name, size));
    const key = of.aead.createEncryptionContext(derived("key", of.aead.keySize));
    return join(
      nonce,
      new Uint8Array(await key.seal(derived("nonce", of.aead.nonceSize), this.inner, new Uint8Array())),
    );
  }
}

/** An app on one storage, and its network. */
class Life {
  texts = new Map();
  gate = new Gate();
  now = Date.UTC(2026, 5, 1);

  constructor(campaign = SEALED) {
    this.campaign = campaign;
  }

  async start(options = {}) {
    const given = { fetch: this.gate.fetch, relay: RELAY, now: () => this.now, ...options };
    this.device = deviceOn(memoryStorage(this.texts), {}, given);
    this.part = this.device.campaign(URL, this.campaign.id, { maxEpsilon: 10 });
    await this.part.load(this.campaign.document);
    return this.part;
  }

  async answered(options) {
    const part = await this.start(options);
    await part.grant();
    await part.contribute(RECORD, "yes");
    return part;
  }

  async delivered(tries = 1) {
    for (let i = 0; i < tries; i++, this.now += DAY) await this.device.runOnce(0);
    return (await this.part.status()).fate;
  }
}

for (const aeads of [[AES, CHACHA], [CHACHA, AES], [AES]]) {
  test(`an upload to a gateway with ciphers ${aeads} is sealed, with one header outside and all else inside`, async () => {
    const life = new Life(changed({ gateway: gatewayOf(...aeads) }, "de-onebit"));
    await life.answered();
    assert.equal(await life.delivered(), "arrived");
    const [{ url, method, headers, body, credentials, referrerPolicy, redirect }] = life.gate.requests;
    assert.deepEqual([url, method, headers], [RELAY, "POST", { "Content-Type": "message/ohttp-req" }]);
    assert.deepEqual([credentials, referrerPolicy, redirect], ["omit", "no-referrer", "error"]);
    assert.deepEqual([body[0], body[6]], [9, AES]);
    const [{ control, headers: inside, body: upload }] = life.gate.messages;
    assert.deepEqual(control, [
      "POST",
      "https",
      "collect.example.org",
      `/base/v1/campaigns/${life.campaign.id}/reports`,
    ]);
    assert.deepEqual(inside, { "content-type": MEDIA_TYPE });
    assert.equal(upload.length, uploadLength(parseCampaign(life.campaign.document)));
    assert.equal(body.length, 55 + upload.length + 1024);
    assert.equal(life.gate.requests.length, 1);
  });
}

test("a gateway to which nothing can be sealed, or that is written in a second way, is none", async () => {
  const { public: key } = KEY;
  const point = (number) => Buffer.from(number.toString(16).padStart(64, "0"), "hex").reverse();
  const raw = ({ id = 9, kem = [0, 32], point = key, pairs = [0, 1, 0, 1], length = pairs.length } = {}) =>
    Buffer.from([id, ...kem, ...point, length >> 8, length & 255, ...pairs]);
  const P = 2n ** 255n - 19n;
  const ORDER_8 = 325606250916557431795983626356110631294008115727848805560023387167927233504n;
  const ORDER_8_TOO = 39382357235489614581723060781553021112529911719440698176882885853963445705823n;
  const right = [
    raw(),
    raw({ id: 0 }),
    raw({ id: 255 }),
    raw({ pairs: [0, 1, 0, 3, 0, 1, 0, 1] }),
    raw({ point: point(9n) }),
  ];
  const points = [0n, 1n, P - 1n, P, P + 1n, 2n ** 255n, 2n ** 255n + 1n, ORDER_8, ORDER_8_TOO, ORDER_8 + 2n ** 255n];
  const wrong = [
    raw({ kem: [0, 16] }),
    raw({ pairs: [] }),
    raw({ pairs: [0, 1, 0, 2] }),
    raw({ pairs: [0, 3, 0, 1] }),
    raw({ pairs: [0, 1, 0, 1, 0, 1, 0, 1] }),
    raw({ pairs: [0, 1, 0, 1, 0, 1] }),
    raw({ length: 8 }),
    Buffer.concat([raw(), Buffer.from([0])]),
    raw().subarray(1),
  ].map((bytes) => bytes.toString("base64url"));
  const text = raw().toString("base64url");
  wrong.push(`${text}=`, `${text.slice(0, -1)}F`, ` ${text}`, `${text}\n`, "é", "");
  const read = (key) => parseCampaign(changed({ gateway: { key } }, "de-onebit").document);
  for (const one of right) assert.equal(read(one.toString("base64url")).gateway.key, one.toString("base64url"));
  for (const one of wrong) assert.throws(() => read(one), { code: "invalid-document" }, one);
  const other = raw({ id: 8 }).toString("base64url");
  for (const number of points) {
    // What seals refuses these, also where their time is still to come; it is asked before anybody is.
    const key = raw({ point: point(number) }).toString("base64url");
    for (const keys of [key, `${key} ${JUNE} ${other}`, `${other} 2999-01-01T00:00:00Z ${key}`]) {
      const life = new Life(changed({ gateway: { key: keys } }, "de-onebit"));
      const part = await life.start();
      assert.deepEqual(await part.nextStep(), { step: "nothing", reason: "invalid-document" });
      await refuses("invalid-document", part.grant());
      assert.deepEqual(life.texts, new Map());
    }
  }
});

const [JUNE, JULY] = ["2026-06-01T00:00:00Z", "2026-07-01T00:00:00Z"];
/** A gateway's key under another identifier. */
const named = (id) =>
  Buffer.from([id, ...Buffer.from(gatewayOf(AES).key, "base64url").subarray(1)]).toString("base64url");

test("of several keys each has its time, and another identifier", () => {
  const read = (key) => parseCampaign(changed({ gateway: { key } }, "de-onebit").document);
  for (const right of [`${named(1)} ${JUNE} ${named(2)}`, `${named(1)} ${JUNE} ${named(2)} ${JULY} ${named(3)}`])
    assert.equal(read(right).gateway.key, right);
  for (const wrong of [
    `${named(1)} ${JUNE}`,
    `${JUNE} ${named(1)}`,
    `${named(1)} ${named(2)}`,
    `${named(1)}  ${JUNE} ${named(2)}`,
    `${named(1)} ${JUNE} ${named(2)} `,
    `${named(1)} ${JUNE} ${named(1)}`,
    `${named(1)} ${JULY} ${named(2)} ${JUNE} ${named(3)}`,
    `${named(1)} ${JUNE} ${named(2)} ${JUNE} ${named(3)}`,
    `${named(1)} 2026-06-01 ${named(2)}`,
    `${named(1)} 2026-06-31T00:00:00Z ${named(2)}`,
    `${named(1)} ${JUNE} ${named(2).slice(1)}`,
    Array.from({ length: 16 }, (_, i) => `${named(i)} ${2000 + i}-06-01T00:00:00Z`).join(" ") + ` ${named(99)}`,
    [`${named(1)} ${JUNE} ${named(2)}`],
  ])
    assert.throws(() => read(wrong), { code: "invalid-document" }, `${wrong}`);
});

test("of several keys each try is sealed to that of its time", async (t) => {
  const start = "2026-06-15T00:00:00Z";
  const life = new Life(changed({ gateway: { key: `${named(1)} ${start} ${named(2)}` } }, "de-onebit"));
  const at = (text) => t.mock.timers.setTime((life.now = Date.parse(text)));
  t.mock.timers.enable({ apis: ["Date"], now: life.now });
  life.gate.answer = () => new Response("", { status: 503 });
  await life.answered();
  for (const moment of [
    "2026-06-02T00:00:00Z",
    "2026-06-14T20:00:00Z",
    "2026-06-15T04:00:00Z",
    "2026-06-17T00:00:00Z",
  ]) {
    at(moment);
    await life.device.runOnce(0);
  }
  assert.deepEqual(
    life.gate.requests.map(({ body }) => body[0]),
    [1, 1, 2, 2],
  );
});

test("a gateway that takes ChaCha20Poly1305 alone is refused before anything is spent", async () => {
  const life = new Life(changed({ gateway: gatewayOf(CHACHA) }, "de-onebit"));
  const part = await life.start();
  await refuses("not-installed", part.grant());
  assert.deepEqual(life.texts, new Map());
});

test("an answer token is inside the seal", async () => {
  const life = new Life(changed({ gateway: gatewayOf(AES), issuer }, "de-onebit"));
  const part = await life.start();
  await part.grant();
  await part.obtainToken(async (request) => sign(request));
  await part.contribute(RECORD, "yes");
  assert.equal(await life.delivered(), "arrived");
  const [{ headers }] = life.gate.messages;
  assert.match(headers.authorization, /^PrivateToken token="[\w-]{472}"$/);
  assert.deepEqual(Object.keys(life.gate.requests[0].headers), ["Content-Type"]);
});

test("the token for the relay is outside the seal, at every try the same, and has nothing of the one inside", async () => {
  const life = new Life(
    changed({ gateway: gatewayOf(AES), issuer: { ...issuer, relay_key: issuer.key } }, "de-onebit"),
  );
  const part = await life.start();
  await part.grant();
  await part.obtainToken(async (request) => sign(request));
  await part.contribute(RECORD, "yes");
  assert.equal(await life.delivered(), "arrived");
  const [{ headers }] = life.gate.messages;
  assert.deepEqual(Object.keys(headers).sort(), ["authorization", "content-type"]);
  const [{ headers: outside }] = life.gate.requests;
  assert.deepEqual(Object.keys(outside).sort(), ["Content-Type", "LDP-Relay-Token"]);
  const [inner, outer] = [headers.authorization, outside["LDP-Relay-Token"]].map(
    (shown) => Buffer.from(/^PrivateToken token="([\w-]{472})"$/.exec(shown)[1], "base64url"), // 354 bytes
  );
  const parts = (token) => [2, 34].map((from) => token.subarray(from, from + 32).toString("hex")); // nonce, challenge
  assert.equal(new Set([...parts(inner), ...parts(outer)]).size, 4);
});

test("what was sent says how it went", async () => {
  const life = new Life();
  await life.answered();
  assert.deepEqual(await life.device.sent(), []);
  await life.delivered();
  const [{ way, reply }] = await life.device.sent();
  assert.deepEqual([way, reply], ["sealed, by relay.example: it saw no answer, and the server no address", "arrived"]);
  const server = aggregator();
  const plain = deviceOn(memoryStorage(), server, { relay: RELAY });
  const part = plain.campaign("http://127.0.0.1:8080", changed({}, "de-onebit").id, { maxEpsilon: 10 });
  await part.load(changed({}, "de-onebit").document);
  server.documents.set(part.id, "");
  await part.grant();
  await part.contribute(RECORD, "yes");
  await plain.runOnce(0);
  assert.deepEqual(
    (await plain.sent()).map((one) => one.way),
    ["sent to the server"],
  );
});

test("every try is sealed anew, and two tries have nothing in common but the header and the length", async () => {
  const life = new Life();
  await life.answered();
  life.gate.answer = () => new Response("", { status: 503 });
  await life.delivered(5);
  const bodies = life.gate.requests.map(({ body }) => body);
  assert.ok(bodies.length > 2);
  assert.equal(new Set(bodies.map((body) => hex(body.slice(0, 7)))).size, 1);
  assert.equal(new Set(bodies.map((body) => body.length)).size, 1);
  const runs = bodies.flatMap((body) => Array.from(body.slice(7, -7), (_, at) => hex(body.slice(7 + at, 15 + at))));
  assert.equal(new Set(runs).size, runs.length);
  for (const body of bodies) await life.gate.opened(body);
  assert.equal(new Set(life.gate.messages.map(({ body }) => hex(body))).size, 1);
});

test("a relay that keeps it for later has it", async () => {
  const life = new Life();
  life.gate.answer = () => new Response(null, { status: 202 });
  await life.answered();
  assert.equal(await life.delivered(), "arrived");
});

const body = '{"rejected": []}';
for (const [name, answer, code] of [
  ["a success that nobody sealed", () => new Response(body), "not-the-gateway"],
  ["an answer that is not sealed", () => new Response(body, OHTTP), "not-the-gateway"],
  ["no answer", () => new Response("", OHTTP), "not-the-gateway"],
  ["garbage", () => new Response(randomBytes(500), OHTTP), "not-the-gateway"],
  ["202 with a page", () => new Response("<html>", { status: 202 }), "http-202"],
  ["204", () => new Response(null, { status: 204 }), "http-204"],
  ["404", () => new Response("", { status: 404 }), "http-404"],
  ["a campaign that the relay calls closed", () => problem(410, "campaign-closed"), "campaign-closed"],
  ["a campaign that it does not know", () => problem(404, "unknown-campaign"), "unknown-campaign"],
  ["a body that it calls malformed", () => problem(400, "malformed-upload"), "malformed-upload"],
  ["one that it calls too large", () => problem(413, "body-too-large"), "body-too-large"],
  ["an unknown key", () => problem(400, "unknown-gateway-key"), "unknown-gateway-key"],
  ["a relay that is busy", () => problem(503, "queue-full"), "queue-full"],
  ["a relay that asks who it is", () => problem(401, "missing-token"), "missing-token"],
  ["a broken connection", () => Promise.reject(new TypeError("gone")), "unreachable"],
  [
    "a body that breaks off",
    () => new Response(new ReadableStream({ pull: (to) => to.error(new TypeError()) }), OHTTP),
    "unreachable",
  ],
]) {
  test(`${name}: it is tried again, and nothing is lost`, async () => {
    const life = new Life();
    life.gate.answer = answer;
    const part = await life.answered();
    assert.equal(await life.delivered(), "on-its-way");
    const { queued, sent, problem: told, dropped } = await part.status();
    assert.deepEqual([queued, sent, told, dropped], [1, 0, code, {}]);
    life.gate.answer = undefined;
    assert.equal(await life.delivered(), "arrived");
  });
}

test("an answer to another request is none to this one", async () => {
  const first = new Life();
  await first.answered();
  let old;
  first.gate.answer = async (sealed) => new Response((old = await first.gate.opened(sealed)), OHTTP);
  assert.equal(await first.delivered(), "arrived");
  const second = new Life();
  second.gate.answer = () => new Response(old, OHTTP);
  const part = await second.answered();
  assert.equal(await second.delivered(3), "on-its-way");
  assert.equal((await part.status()).problem, "not-the-gateway");
  second.gate.answer = undefined;
  assert.equal(await second.delivered(), "arrived");
});

test("a refusal that was sealed is the gateway's own", async () => {
  const life = new Life();
  life.gate.inner = responseOf(410, { "content-type": "application/problem+json" }, '{"code": "campaign-deleted"}');
  const part = await life.answered();
  assert.equal(await life.delivered(), "refused");
  assert.deepEqual((await part.status()).dropped, { "campaign-deleted": 1 });
});

test("what is sealed and no message of HTTP is tried again", async () => {
  for (const inner of [[], [0], [1], [1, 0x40, 0xc7], responseOf(200, { Upper: "x" }, ""), join(ARRIVED, [1])]) {
    const life = new Life();
    life.gate.inner = Uint8Array.from(inner);
    const part = await life.answered();
    assert.equal(await life.delivered(), "on-its-way");
    assert.equal((await part.status()).problem, "not-the-gateway");
  }
});

test("a relay that asks for patience gets it", async () => {
  const life = new Life();
  await life.answered();
  life.gate.answer = () => problem(503, "queue-full", { "Retry-After": "1000" });
  await life.device.runOnce(0);
  life.now += 999e3;
  await life.device.runOnce(0);
  assert.equal(life.gate.requests.length, 1);
  life.now += DAY;
  await life.device.runOnce(0);
  assert.equal(life.gate.requests.length, 2);
});

test("without a relay nothing is agreed to, and nothing is spent", async () => {
  const life = new Life();
  const part = await life.start({ relay: undefined });
  assert.equal((await part.refusal()).code, "no-relay");
  assert.equal((await part.nextStep()).step, "nothing");
  await refuses("no-relay", part.grant());
  assert.deepEqual(life.texts, new Map());
});

test("a device that agreed and has no relay now answers nothing", async () => {
  const life = new Life();
  await (await life.start()).grant();
  const part = await life.start({ relay: undefined });
  await refuses("no-relay", part.contribute(RECORD, "yes"));
  assert.equal((await life.device.ledger()).totalEpsilon, 0);
});

test("an app that loses its relay sends nothing until it has one, and says so; then nothing had begun to leave", async () => {
  const life = new Life();
  await life.answered();
  const part = await life.start({ relay: undefined });
  assert.equal(await life.delivered(3), "waiting");
  const { problem: told, queued, retries } = await part.status();
  assert.deepEqual(
    [told, queued, retries > 1, life.gate.requests, await life.device.sent()],
    ["no-relay", 1, true, [], []],
  );
  await life.start();
  assert.equal(await life.delivered(), "arrived");
});

test("one campaign that cannot be sealed keeps no other one waiting", async () => {
  const [life, server] = [new Life(), aggregator()];
  await life.answered();
  await life.start({ relay: undefined, fetch: server.fetch });
  const plain = changed({}, "sue-laplace");
  server.documents.set(plain.id, plain.document);
  const part = life.device.campaign("http://127.0.0.1:8080", plain.id, { maxEpsilon: 10 });
  await part.grant();
  await part.contribute(RECORD, "yes");
  await life.delivered();
  assert.deepEqual([(await part.status()).fate, (await life.part.status()).fate], ["arrived", "waiting"]);
});

test("whatever is fetched is fetched from the relay, and the aggregator hears nobody", async () => {
  const asked = [];
  const fetch = async (url) => (asked.push(url), new Response("", { status: 404 }));
  for (const publisher of [undefined, signedBy("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo")]) {
    const device = deviceOn(memoryStorage(), { fetch }, { relay: RELAY });
    const part = device.campaign("https://collect.example.org/base", changed({}).id, { maxEpsilon: 4, publisher });
    for (const ask of ["nextStep", "fetch", "classifier", "grant"]) await part[ask]().catch(() => {});
  }
  assert.ok(asked.length > 4);
  for (const url of asked) assert.match(url, /^https:\/\/relay\.example\/some\/path\/v1\/(campaigns|directories)\//);
});

test("the aggregator is no relay", () => {
  for (const [url, relay] of [
    ["https://collect.example.org/base", "https://collect.example.org/ohttp"],
    ["https://collect.example.org/base", "https://collect.example.org:8443/v1/ohttp"],
  ])
    assert.throws(
      () => deviceOn(memoryStorage(), {}, { relay }).campaign(url, changed({}).id, { maxEpsilon: 1 }),
      ({ code }) => code === "bad-relay",
    );
  const device = deviceOn(memoryStorage(), {}, { relay: "http://127.0.0.1:8090/ohttp" });
  assert.ok(device.campaign("http://127.0.0.1:8080", changed({}).id, { maxEpsilon: 1 }));
});

test("an answer of before does not go by the aggregator either, and where nobody waits one leaves within six hours", async () => {
  const life = new Life();
  await life.answered();
  const by = (relay) => deviceOn(memoryStorage(life.texts), {}, { fetch: life.gate.fetch, relay, now: () => life.now });
  assert.equal(await by("https://collect.example.org/ohttp").runOnce(0), false);
  assert.deepEqual(life.gate.requests, []);
  assert.equal((await life.part.status()).problem, "bad-relay");
  assert.equal(by(RELAY).install.policy.firstDelay, 6 * 36e5);
  assert.equal(by(undefined).install.policy.firstDelay, 600e3);
});

test("a device with a relay sends in the clear where the campaign has no gateway", async () => {
  const life = new Life(changed({}, "de-onebit"));
  life.gate.answer = () => new Response(body);
  await life.answered();
  assert.equal(await life.delivered(), "arrived");
  const [{ url, headers }] = life.gate.requests;
  assert.deepEqual([url, headers], [`${URL}/v1/campaigns/${life.campaign.id}/reports`, { "Content-Type": MEDIA_TYPE }]);
});

test("the address of a relay is checked like others, and is asked for as platforms write it", async () => {
  for (const relay of [
    "",
    "relay.example",
    "http://relay.example/",
    "ftp://relay.example",
    "https://u:p@relay.example",
    "https://Relay.example/",
  ])
    assert.throws(
      () => deviceOn(memoryStorage(), {}, { relay }),
      ({ code }) => code === "bad-relay",
    );
  const life = new Life();
  await life.answered({ relay: "https://relay.example" });
  await life.delivered();
  assert.equal(life.gate.requests[0].url, "https://relay.example/");
});

test("two different answers share the header and no eight bytes more", async () => {
  const seen = [];
  for (const [record, label] of [
    [RECORD, "yes"],
    [{ colour: "red" }, "no"],
  ]) {
    const life = new Life();
    const part = await life.start();
    await part.grant();
    await part.contribute(record, label);
    await life.delivered();
    seen.push(life.gate.requests[0].body);
  }
  const runs = seen.map((bytes) => Array.from(bytes.slice(7, -7), (_, at) => hex(bytes.slice(7 + at, 15 + at))));
  assert.equal(hex(seen[0].slice(0, 7)), hex(seen[1].slice(0, 7)));
  assert.equal(seen[0].length, seen[1].length);
  assert.ok(!runs[0].some((run) => runs[1].includes(run)));
});

test("uploads of a campaign have one length, whatever is asked, sealed or not", async () => {
  const lengths = new Set();
  for (let device = 0; device < 40; device++) {
    const life = new Life();
    await life.answered();
    await life.delivered();
    lengths.add(`${life.gate.requests[0].body.length} ${life.gate.messages[0].body.length}`);
  }
  assert.equal(lengths.size, 1);
});

// Published vectors.

const packed = (content) => unhex(content.replace(/\s+/g, ""));
const GET = { method: "GET", scheme: "https", authority: "", path: "/hello.txt", headers: [], body: new Uint8Array() };

test("messages of RFC 9292, section 5", () => {
  // Figure 10, cut off where what follows is empty; figures 13 and 15.
  const request = packed(`
    00034745 54056874 74707300 0a2f6865 6c6c6f2e 74787440 6c0a7573 65722d61 67656e74 34637572 6c2f372e 31362e33
    206c6962 6375726c 2f372e31 362e3320 4f70656e 53534c2f 302e392e 376c207a 6c69622f 312e322e 3304686f 73740f77
    77772e65 78616d70 6c652e63 6f6d0f61 63636570 742d6c61 6e677561 67650665 6e2c206d 690000`);
  const headers = [
    ["user-agent", "curl/7.16.3 libcurl/7.16.3 OpenSSL/0.9.7l zlib/1.2.3"],
    ["host", "www.example.com"],
    ["accept-language", "en, mi"],
  ];
  assert.equal(hex(encodeRequest({ ...GET, headers })), hex(request.slice(0, -2)));
  const informed = packed(`
    03406607 72756e6e 696e670a 22736c65 65702031 35220040 67046c69 6e6b233c 2f737479 6c652e63 73733e3b 2072656c
    3d707265 6c6f6164 3b206173 3d737479 6c65046c 696e6b24 3c2f7363 72697074 2e6a733e 3b207265 6c3d7072 656c6f61
    643b2061 733d7363 72697074 0040c804 64617465 1d4d6f6e 2c203237 204a756c 20323030 39203132 3a32383a 35332047
    4d540673 65727665 72064170 61636865 0d6c6173 742d6d6f 64696669 65641d57 65642c20 3232204a 756c2032 30303920
    31393a31 353a3536 20474d54 04657461 67142233 34616133 38372d64 2d313536 38656230 30220d61 63636570 742d7261
    6e676573 05627974 65730e63 6f6e7465 6e742d6c 656e6774 68023531 04766172 790f4163 63657074 2d456e63 6f64696e
    670c636f 6e74656e 742d7479 70650a74 6578742f 706c6169 6e003348 656c6c6f 20576f72 6c642120 4d792063 6f6e7465
    6e742069 6e636c75 64657320 61207472 61696c69 6e672043 524c462e 0d0a0000`);
  const told = decodeResponse(informed);
  assert.deepEqual([told.status, text(told.body)], [200, "Hello World! My content includes a trailing CRLF.\r\n"]);
  assert.deepEqual(told.headers[0], ["date", "Mon, 27 Jul 2009 12:28:53 GMT"]);
  assert.deepEqual(told.headers.at(-1), ["content-type", "text/plain"]);
  const known = packed(`
    0140c800 1d546869 7320636f 6e74656e 7420636f 6e746169 6e732043 524c462e 0d0a0d07 74726169 6c657204 74657874`);
  const short = decodeResponse(known);
  assert.deepEqual([short.status, short.headers, text(short.body)], [200, [], "This content contains CRLF.\r\n"]);
});

test("a length is written in the fewest bytes, and a stranger sends 64 fields and no more", () => {
  for (const [size, head] of [
    [63, "3f"],
    [64, "4040"],
    [16_383, "7fff"],
    [16_384, "80004000"],
  ]) {
    const written = hex(encodeRequest({ ...GET, authority: "a", path: "/", body: new Uint8Array(size) }));
    assert.equal(written, `00034745540568747470730161012f00${head}${"00".repeat(size)}`);
  }
  const line = [1, 97, 1, 98];
  for (const [count, taken] of [
    [64, true],
    [65, false],
  ]) {
    const lines = Array.from({ length: count }, () => line).flat();
    const known = join([1, 0x40, 200], [64 | (lines.length >> 8), lines.length & 255], lines);
    const chunked = join([3, 0x40, 200], lines, [0]);
    for (const message of [known, chunked])
      if (taken) assert.equal(decodeResponse(message).headers.length, count);
      else assert.throws(() => decodeResponse(message), RangeError);
  }
});

test("an answer without an end is read up to a limit, and is nobody's", async () => {
  const life = new Life();
  let read = 0;
  life.gate.answer = () =>
    new Response(
      new ReadableStream({
        pull(controller) {
          read += 1 << 20;
          if (read > 64 << 20) controller.error(new Error("it would have gone on"));
          else controller.enqueue(new Uint8Array(1 << 20));
        },
      }),
      OHTTP,
    );
  const part = await life.answered();
  assert.equal(await life.delivered(), "on-its-way");
  assert.equal((await part.status()).problem, "not-the-gateway");
  assert.ok(read <= 20 << 20, String(read));
});

test("messages of every length, and where RFC 9292 lets them be cut", () => {
  for (const length of [0, 1, 63, 64, 16_383, 16_384, 70_000]) {
    const written = encodeRequest({ ...GET, headers: [["content-type", "x/y"]], body: new Uint8Array(length).fill(7) });
    assert.equal(written.length > length + 30, true);
    const response = join(
      [1, 0x40, 200, 0],
      [128, length >> 16, (length >> 8) & 255, length & 255],
      new Uint8Array(length).fill(7),
    );
    assert.equal(decodeResponse(response).body.length, length);
  }
  const whole = [1, 0x40, 200, 0, 0, 0, 0, 0];
  for (let end = 3; end <= whole.length; end++)
    assert.equal(decodeResponse(Uint8Array.from(whole.slice(0, end))).status, 200);
  for (const wrong of [
    "",
    "00",
    "04",
    "0140c7",
    "014258",
    "0100",
    "0140c801",
    "0140c80001",
    "0140c800000001",
    "0140c803014100",
    "0140c8040161 0120",
    "0140c8040161010a",
    "0140c80a073a6d6574686f640141",
    "0140c800c0000000000000ff",
  ])
    assert.throws(() => decodeResponse(packed(wrong)), RangeError, wrong);
});

test("the exchange of RFC 9458, appendix A", async () => {
  const configuration = packed(
    "01002031e1f05a740102115220e9af918f738674aec95f54db6e04eb705aae8e79815500080001000100010003",
  );
  const ephemeral = keyPair(packed("bc51d5e930bda26589890ac7032f70ad12e4ecb37abb1b65b1256c9c48999c73"));
  const message = encodeRequest({ ...GET, authority: "example.com", path: "/" });
  assert.equal(hex(message), "00034745540568747470730b6578616d706c652e636f6d012f");
  const { generateKeyPair } = DhkemX25519HkdfSha256.prototype;
  DhkemX25519HkdfSha256.prototype.generateKeyPair = async function () {
    return {
      privateKey: await this.deserializePrivateKey(ephemeral.secret),
      publicKey: await this.deserializePublicKey(ephemeral.public),
    };
  };
  try {
    const { body: sealed, open } = await encapsulate(Buffer.from(configuration).toString("base64url"), message);
    assert.equal(
      hex(sealed),
      "010020000100014b28f881333e7c164ffc499ad9796f877f4e1051ee6d31bad19dec96c208b4726374e469135906992e1268c594d2a10c" +
        "695d858c40a026e7965e7d86b83dd440b2c0185204b4d63525",
    );
    const answer = packed("c789e7151fcba46158ca84b04464910d86f9013e404feea014e7be4a441f234f857fbd");
    assert.equal(hex(await open(answer)), "0140c8");
    assert.equal(decodeResponse(await open(answer)).status, 200);
    for (let place = 0; place < answer.length; place++) {
      await assert.rejects(open(answer.slice(0, place)));
      await assert.rejects(open(answer.map((byte, at) => (at === place ? byte ^ 1 : byte))));
    }
    await assert.rejects(open(join(answer, [0])));
  } finally {
    DhkemX25519HkdfSha256.prototype.generateKeyPair = generateKeyPair;
  }
});
