// A device in a campaign with an issuer: it obtains one token, shows it with its answer, and answers no other way.
import assert from "node:assert/strict";
import { createHash, webcrypto } from "node:crypto";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { publicVerif, Token, TOKEN_TYPES } from "@cloudflare/privacypass-ts";
import { hex, parseCampaign, unhex } from "../dist/core.js";
import { pack, unpack } from "../dist/device/state.js";
import { inverse, number, padded, raised, tokenInput, tokenRequest } from "../dist/later/tokens.js";
import { memoryStorage, problem } from "../dist/testing/index.js";
import {
  aggregator,
  changed,
  deviceOn,
  documents,
  issuer,
  PUBLISHED,
  RECORD,
  refuses,
  sign,
  URL_OF_TESTS,
} from "./support/campaigns.mjs";
import { UNTOUCHABLE } from "./support/untouchable.mjs";

const { Client, Issuer, TokenRequest, TokenResponse, BlindRSAMode, getPublicKeyBytes } = publicVerif;
const ALL = changed({ issuer });
const ONE = changed({ issuer }, "de-onebit");
const DAY = 864e5;
const secretOf = (number) => createHash("sha256").update(String(number)).digest();
const bytes = (text) => new Uint8Array(Buffer.from(text, "base64url"));

/** An app on one storage, started again as often as one likes, and what its server was shown. */
class Life {
  texts = new Map();
  server = aggregator();
  shown = [];
  now = Date.UTC(2026, 5, 1);

  constructor(campaign = ONE) {
    this.campaign = campaign;
    this.server.documents.set(campaign.id, campaign.document);
  }

  start(options = {}) {
    const fetch = (url, init) => {
      if (init.method === "POST") this.shown.push(init.headers.Authorization);
      return this.server.fetch(url, init);
    };
    this.device = deviceOn(memoryStorage(this.texts), { fetch }, { now: () => this.now, ...options });
    return (this.part = this.device.campaign(URL_OF_TESTS, this.campaign.id, { maxEpsilon: 10 }));
  }

  async granted(options) {
    await this.start(options).grant();
    return this.part;
  }

  async delivered(tries = 3) {
    for (let i = 0; i < tries; i++, this.now += DAY) await this.device.runOnce(0);
  }

  /** The token that an upload of these reports may show. */
  get token() {
    return bytes(/^PrivateToken token="([\w-]+)"$/.exec(this.shown[0])[1]);
  }
}

/** Whether a token is signed, by the platform's own RSA-PSS. */
async function isSigned(token, campaign, ids) {
  const [signed, signature] = [token.slice(0, -256), token.slice(-256)];
  assert.deepEqual([...signed], [...tokenInput(campaign, ids)]);
  const n = Buffer.from(PUBLISHED.n, "hex").toString("base64url");
  const key = await webcrypto.subtle.importKey(
    "jwk",
    { kty: "RSA", n, e: "AQAB", alg: "PS384", ext: true },
    { name: "RSA-PSS", hash: "SHA-384" },
    true,
    ["verify"],
  );
  return webcrypto.subtle.verify({ name: "RSA-PSS", saltLength: 48 }, key, signature, signed);
}

test("the published vector of RFC 9578 holds, and with it the encoding of RFC 8017", async () => {
  const vector = Object.fromEntries(Object.entries(PUBLISHED).map(([name, text]) => [name, unhex(text)]));
  const modulus = number(vector.n);
  const signed = vector.token.slice(0, -256);
  const encoded = await padded(signed, vector.salt);
  const blind = number(vector.blind);
  assert.equal((encoded * raised(blind, modulus)) % modulus, number(vector.token_request.slice(3)));
  const signature = (number(vector.token_response) * inverse(blind, modulus)) % modulus;
  assert.equal(signature, number(vector.token.slice(-256)));
  assert.equal(raised(signature, modulus), encoded);
  assert.deepEqual([...sign(vector.token_request)], [...vector.token_response]);
});

test("the published vector of RFC 9474, appendix A.3, holds", async () => {
  const path = new URL("../../tests/support/rfc9474.json", import.meta.url);
  const { n, msg, salt, inv, blinded_msg, blind_sig, sig } = JSON.parse(readFileSync(path, "utf8"));
  const modulus = number(unhex(n));
  const encoded = await padded(unhex(msg), unhex(salt), 4096);
  const blind = inverse(number(unhex(inv)), modulus);
  assert.equal((encoded * raised(blind, modulus)) % modulus, number(unhex(blinded_msg)));
  assert.equal((number(unhex(blind_sig)) * inverse(blind, modulus)) % modulus, number(unhex(sig)));
  assert.equal(raised(number(unhex(sig)), modulus), encoded);
});

test("an issuer whose name, key or number of tokens is none is refused", () => {
  const read = (changes) => parseCampaign(changed({ issuer: { ...issuer, ...changes } }).document);
  const key = (change) => {
    const bytes = Buffer.from(issuer.key, "base64url");
    change(bytes);
    return { key: bytes.toString("base64url") };
  };
  const first = 81; // of the modulus
  const right = [
    {},
    { tokens: 1 },
    { tokens: 1024 },
    { key: `${issuer.key}==` },
    { relay_key: issuer.key },
    { name: "a" },
    { name: "a-b.c9.d" },
  ];
  const wrong = [
    ...["", "A.b", "a..b", "-a.b", "a-.b", "a.b-", ".a", "a.", "a\n", `https://a`, "a".repeat(254)].map((name) => ({
      name,
    })),
    ...[0, 1025, 1.5, "1", true].map((tokens) => ({ tokens })),
    key((bytes) => (bytes[first] &= 0x7f)), // 2,047 bits
    key((bytes) => (bytes[first] = 1)),
    key((bytes) => (bytes[first + 255] ^= 1)), // even
    key((bytes) => (bytes[bytes.length - 1] = 3)), // another exponent
    key((bytes) => (bytes[20] ^= 1)),
    { key: `${issuer.key}===` },
    { key: ` ${issuer.key}` },
    { key: issuer.key.slice(0, -4) },
    { relay_key: issuer.key.slice(0, -4) },
    { relay_key: 1 },
    { epoch: "P7D" },
  ];
  for (const one of right) assert.ok(read(one).issuer, JSON.stringify(one));
  for (const one of wrong) assert.throws(() => read(one), { code: "invalid-document" }, JSON.stringify(one));
});

test("an app is told to obtain a token and then to contribute", async () => {
  const life = new Life();
  const requests = [];
  const issue = async (request) => (requests.push(hex(request)), sign(request));
  let part = life.start();
  assert.equal((await part.nextStep()).step, "ask");
  await part.fetch();
  await refuses("consent-missing", part.obtainToken(issue));
  await part.grant();
  assert.equal((await part.nextStep()).step, "token");
  await refuses("token-missing", part.contribute(UNTOUCHABLE, "yes"));
  assert.equal((await life.device.ledger()).totalEpsilon, 0);
  await part.obtainToken(issue);
  await part.obtainToken(issue);
  assert.equal(requests.length, 1, "there is one");
  part = life.start();
  assert.equal((await part.nextStep()).step, "contribute");
  await part.contribute(RECORD, "yes");
  await life.delivered();
  assert.deepEqual([(await part.nextStep()).step, (await part.status()).fate], ["nothing", "arrived"]);
  const [{ id }] = await life.device.sent();
  const campaign = parseCampaign(ONE.document, ONE.id);
  assert.ok(await isSigned(life.token, campaign, [unhex(id)]));
  assert.equal((await life.device.export()).campaigns[ONE.id].token, Buffer.from(life.token).toString("base64url"));
});

test("what the issuer sees is none of what the server sees", async () => {
  const life = new Life();
  const seen = [];
  const part = await life.granted();
  await part.obtainToken(async (request) => {
    seen.push(hex(request.slice(3)), hex(sign(request)));
    return unhex(seen[1]);
  });
  await part.contribute(RECORD, "yes");
  await life.delivered();
  for (const text of seen)
    for (let at = 0; at < text.length; at += 16)
      assert.ok(
        !hex(life.token).includes(text.slice(at, at + 16)) && !life.server.uploads[0].includes(text.slice(at, at + 16)),
      );
});

test("a request is the same bytes each time, and another for another device and for another campaign", async () => {
  const campaigns = [ONE, ALL].map(({ document }) => parseCampaign(document));
  const made = async () => {
    const all = [];
    for (const campaign of campaigns)
      for (let n = 0; n < 5; n++) all.push(hex((await tokenRequest(campaign, secretOf(n))).request));
    return all;
  };
  const all = await made();
  assert.deepEqual(await made(), all);
  assert.equal(new Set(all).size, all.length);
  assert.ok(all.every((text) => text.length === 2 * 259 && text.startsWith(PUBLISHED.token_request.slice(0, 6))));
});

test("what is signed is of the ids in any order", () => {
  const campaign = parseCampaign(ALL.document);
  const ids = [3, 1, 2].map((byte) => new Uint8Array(16).fill(byte));
  const signed = hex(tokenInput(campaign, ids));
  assert.equal(hex(tokenInput(campaign, [...ids].reverse())), signed);
  const nonce = createHash("sha256").update("ldp-bayes answer 1\n");
  for (const byte of [1, 2, 3]) nonce.update(Buffer.alloc(16, byte));
  assert.equal(signed.slice(4, 68), nonce.digest("hex"));
});

test("a signature that the modulus was added to is none", async () => {
  const [campaign, n] = [parseCampaign(ONE.document), BigInt(`0x${PUBLISHED.n}`)];
  let tried = 0;
  for (let secret = 0; secret < 40; secret++) {
    const { request, finish } = await tokenRequest(campaign, secretOf(secret));
    const more = (BigInt(`0x${hex(sign(request))}`) + n).toString(16);
    assert.ok(finish(sign(request)));
    if (more.length > 512) continue;
    assert.equal(finish(unhex(more.padStart(512, "0"))), undefined);
    if (++tried === 3) return;
  }
  assert.fail("none was small enough");
});

test("an answer that is no signature is refused, and nothing is stored", async () => {
  const life = new Life();
  const part = await life.granted();
  const changedBy = (change) => (request) => {
    const signed = sign(request);
    return change(signed) ?? signed;
  };
  const n = BigInt(`0x${PUBLISHED.n}`);
  for (const wrong of [
    () => new Uint8Array(),
    () => undefined,
    () => "<html>",
    () => new Uint8Array(256),
    changedBy((signed) => signed.slice(1)),
    changedBy((signed) => Uint8Array.of(...signed, 0)),
    changedBy((signed) => Uint8Array.of(0, ...signed)),
    changedBy((signed) => void (signed[255] ^= 1)),
    changedBy((signed) => unhex((number(signed) + n).toString(16).padStart(514, "0"))),
    changedBy((signed) => unhex((n - number(signed)).toString(16).padStart(512, "0"))),
    () => unhex(PUBLISHED.n),
    () => new Uint8Array(256).fill(255),
    () => new Uint8Array(5e7).fill(255),
    (request) => request,
  ]) {
    const before = life.texts.get("device");
    await refuses(
      "wrong-token",
      part.obtainToken(async (request) => wrong(request)),
    );
    assert.equal(life.texts.get("device"), before);
  }
  assert.equal((await part.nextStep()).step, "token");
  await part.obtainToken(async (request) => sign(request).buffer);
  assert.equal((await part.nextStep()).step, "contribute");
});

test("a key with small factors hides nothing: where one shows, the issuer is not asked", async () => {
  const small = 3n * 5n * 7n * 11n * 13n;
  const modulus = (((1n << 2047n) / small) | 1n) * small;
  const key = Buffer.from(PUBLISHED.pkS, "hex");
  Buffer.from(modulus.toString(16), "hex").copy(key, 81);
  const weak = changed({ issuer: { ...issuer, key: key.toString("base64url") } }, "de-onebit");
  const codes = new Set();
  for (let n = 0; n < 9; n++) {
    let asked = false;
    const life = new Life(weak);
    life.texts.set("device", pack({ secret: hex(secretOf(n)), enabled: true, campaigns: {} }));
    const part = await life.granted();
    const obtained = part.obtainToken(async (request) => ((asked = true), sign(request)));
    await refuses("wrong-token", obtained);
    codes.add(asked);
  }
  assert.ok(codes.has(false)); // of nine devices, of which each meets a factor with probability 0.85; the same ones in every run
});

test("in the clear nothing is asked of the issuer's key for relays, which admit by the answer's token", async () => {
  const life = new Life(changed({ issuer: { ...issuer, relay_key: issuer.key } }, "de-onebit"));
  const part = await life.granted();
  const asked = [];
  await part.obtainToken(async (request) => (asked.push(request), sign(request)));
  assert.equal(asked.length, 1);
  assert.equal(unpack(life.texts.get("device")).campaigns[part.id].token.length, 472);
});

test("what the app's own call throws comes out, and it can be tried again", async () => {
  const part = await new Life().granted();
  const offline = new TypeError("offline");
  await assert.rejects(
    part.obtainToken(() => Promise.reject(offline)),
    (error) => error === offline,
  );
  assert.equal((await part.nextStep()).step, "token");
});

test("somebody who withdraws or erases while the issuer answers has no token", async () => {
  for (const leave of ["withdraw", "erase"]) {
    const life = new Life();
    const part = await life.granted();
    const left = part.obtainToken(async (request) => {
      await (leave === "erase" ? life.device.erase() : part.withdraw());
      return sign(request);
    });
    await refuses("consent-missing", left);
    assert.equal(life.texts.get("device")?.includes('"token"') ?? false, false);
  }
  const life = new Life();
  const part = await life.granted();
  const another = part.obtainToken(async (request) => {
    await life.device.erase();
    await part.grant();
    return sign(request);
  });
  await refuses("consent-missing", another); // the token is of a secret that is gone
  assert.equal((await part.nextStep()).step, "token");
});

test("two tabs at once have one token", async () => {
  const life = new Life();
  await life.granted();
  const requests = [];
  const issue = async (request) => (requests.push(hex(request)), sign(request));
  await Promise.all([life.start(), life.start()].map((part) => part.fetch().then(() => part.obtainToken(issue))));
  assert.equal(new Set(requests).size, 1);
  await Promise.all([life.start().contribute(RECORD, "yes"), life.start().contribute(RECORD, "no")]);
  await life.delivered();
  assert.deepEqual([new Set(life.shown).size, life.server.uploads.length], [1, 1]);
});

test("an account whose bytes a backend may know is refused before anybody is asked", async () => {
  const life = new Life();
  const part = life.start({ identity: new Uint8Array(32).fill(9) });
  assert.deepEqual(await part.nextStep(), { step: "nothing", reason: "bad-identity" });
  await refuses("bad-identity", part.grant());
  assert.deepEqual([life.texts.size, life.shown], [0, []]);
  const other = new Life(parseCampaign(documents["de-onebit"].document));
  assert.equal((await other.start({ identity: new Uint8Array(32).fill(9) }).nextStep()).step, "ask");
});

test("a storage that was put back to before the token obtains the same one", async () => {
  const life = new Life();
  await life.granted();
  const before = new Map(life.texts);
  await life.part.obtainToken(async (request) => sign(request));
  const token = unpack(life.texts.get("device")).campaigns[ONE.id].token;
  life.texts = before;
  const part = life.start();
  assert.equal((await part.nextStep()).step, "token");
  await part.obtainToken(async (request) => sign(request));
  assert.equal(unpack(life.texts.get("device")).campaigns[ONE.id].token, token);
});

test("a retry shows the same token with the same bytes, also where the server says that it is wrong", async () => {
  const life = new Life();
  const answers = ["missing-answer-token", "wrong-answer-token"].map((code) => problem(401, code));
  life.server.intercept = (method) => (method === "POST" ? answers.pop() : undefined);
  life.server.loseAnswers = 1;
  const part = await life.granted();
  await part.obtainToken(async (request) => sign(request));
  await part.contribute(RECORD, "yes");
  await life.delivered(5);
  assert.equal((await part.status()).fate, "arrived");
  assert.deepEqual([life.shown.length, new Set(life.shown).size, new Set(life.server.uploads).size], [4, 1, 1]);
});

test("all answers of a device leave together with their one token, also where that is said to be too much", async () => {
  for (const [status, code] of [
    [413, "body-too-large"],
    [413, "too-many-reports"],
    [400, "malformed-upload"],
  ]) {
    const life = new Life(ALL);
    life.server.intercept = (method) => (method === "POST" ? problem(status, code) : undefined);
    const part = await life.granted();
    await part.obtainToken(async (request) => sign(request));
    const { questions } = await part.contribute(RECORD, "yes");
    await life.delivered();
    const sent = await life.device.sent();
    assert.equal(life.shown.length, 1);
    assert.ok(
      await isSigned(
        life.token,
        parseCampaign(ALL.document),
        sent.map(({ id }) => unhex(id)),
      ),
    );
    assert.deepEqual((await part.status()).dropped, { [code]: questions.length });
  }
});

test("a token lives through a withdrawal that gave the loss back", async () => {
  const life = new Life();
  const part = await life.granted();
  await part.obtainToken(async (request) => sign(request));
  await part.contribute(RECORD, "yes");
  await part.withdraw();
  await part.grant();
  assert.equal((await part.nextStep()).step, "contribute");
});

test("a campaign without an issuer needs no token, and its uploads show none", async () => {
  const life = new Life(changed({}, "de-onebit"));
  const part = await life.granted();
  assert.equal((await part.nextStep()).step, "contribute");
  await refuses("no-issuer", part.obtainToken(sign));
  await part.contribute(RECORD, "yes");
  await life.delivered();
  assert.deepEqual(life.shown, [undefined]);
});

test("where the platform has no WebCrypto, such a campaign is refused before anybody agrees", async () => {
  const { crypto } = globalThis;
  Object.defineProperty(globalThis, "crypto", {
    value: { getRandomValues: (array) => crypto.getRandomValues(array) },
    configurable: true,
    writable: true,
  });
  try {
    const part = new Life().start();
    assert.equal((await part.refusal()).code, "no-signatures");
    assert.equal((await part.nextStep()).step, "nothing");
    await refuses("no-signatures", part.grant());
  } finally {
    globalThis.crypto = crypto;
  }
});

// Interoperability with @cloudflare/privacypass-ts, which is @cloudflare/blindrsa-ts over RFC 9578.

async function keyPair() {
  const keys = await Issuer.generateKey(BlindRSAMode.PSS, {
    modulusLength: 2048,
    publicExponent: Uint8Array.from([1, 0, 1]),
  });
  return { ...keys, key: Buffer.from(await getPublicKeyBytes(keys.publicKey)).toString("base64url") };
}

test("an issuer of @cloudflare/privacypass-ts signs for our device, and verifies the token", async () => {
  const { privateKey, publicKey, key } = await keyPair();
  const theirs = new Issuer(BlindRSAMode.PSS, "issuer.example", privateKey, publicKey);
  const life = new Life(changed({ issuer: { name: "issuer.example", key } }, "de-onebit"));
  const part = await life.granted();
  await part.obtainToken(async (request) =>
    (await theirs.issue(TokenRequest.deserialize(TOKEN_TYPES.BLIND_RSA, request))).serialize(),
  );
  await part.contribute(RECORD, "yes");
  await life.delivered();
  const token = Token.deserialize(TOKEN_TYPES.BLIND_RSA, life.token);
  assert.ok(await theirs.verify(token));
  assert.deepEqual(Buffer.from(token.authInput.tokenKeyId), Buffer.from(await theirs.tokenKeyID()));
});

test("a client of @cloudflare/privacypass-ts takes what the issuer of our tests signs", async () => {
  const { TokenChallenge } = await import("@cloudflare/privacypass-ts");
  const client = new Client(BlindRSAMode.PSS);
  const challenge = new TokenChallenge(TOKEN_TYPES.BLIND_RSA.value, "issuer.example", new Uint8Array(32), []);
  const request = await client.createTokenRequest(challenge, unhex(PUBLISHED.pkS));
  const token = await client.finalize(TokenResponse.deserialize(sign(request.serialize())));
  assert.equal(token.serialize().length, 354);
});
