// A device in a campaign with a crowd: it checks the promise itself, under caps of its own, or asks nobody.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { cpSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { deltaBound } from "../dist/later/crowd.js";
import { FakeAggregator, memoryStorage } from "../dist/testing/index.js";
import { deviceOn, refuses } from "./support/campaigns.mjs";

const { accepted, refused, caps } = JSON.parse(
  readFileSync(new URL("../../protocols/vectors/crowd.json", import.meta.url), "utf8"),
);
const named = (name) => accepted.find((one) => one.name === name);
const URL_OF_CROWDS = "https://collect.example.org";
const RELAY = "https://relay.example/ohttp";
const CAPS = { maxEpsilon: 1, maxCrowdEpsilon: 1, maxIfBothCollude: 4 };
const idOf = (document) => createHash("sha256").update(document).digest("base64url");

/** A device whose relay has this document, and what it asked. */
function lifeOf(document, { device: options, caps = CAPS, made = deviceOn, texts = new Map() } = {}) {
  const [server, asked, id] = [new FakeAggregator(), [], idOf(document)];
  server.documents.set(id, document);
  server.intercept = (method, path) => {
    asked.push(path.replace(id, "ID"));
    return path === "/ohttp" ? new Response("", { status: 202 }) : undefined;
  };
  const device = made(memoryStorage(texts), server, { relay: RELAY, ...options });
  return { device, campaign: device.campaign(URL_OF_CROWDS, id, caps), asked, texts };
}

test("a person is told both numbers, answers once, and the ledger adds both up", async () => {
  const { document } = named("without an issuer");
  const texts = new Map();
  const { device, campaign } = lifeOf(document, { texts });
  assert.deepEqual(await campaign.nextStep(), { step: "ask", reason: null });
  const said = String(await campaign.explained());
  assert.match(said, /20,000 come at once: at most 1 \(odds 2\.7 to 1\).* at most 4 about that one answer/);
  assert.deepEqual(await campaign.decide(true), { step: "contribute", reason: null });
  const receipt = await campaign.contribute({ colour: "red", age: 41 }, "yes");
  assert.deepEqual([receipt.epsilon, receipt.crowdEpsilon, receipt.crowdDelta], [4, 1, 1e-9]);
  const ledger = await device.ledger();
  assert.deepEqual([ledger.totalEpsilon, ledger.crowdEpsilon, ledger.crowdDelta], [4, 1, 1e-9]);
  assert.match(String(ledger), /epsilon 4 of at most 10\. Where relays and aggregators keep apart: epsilon 1, but/);
  assert.equal(await device.runOnce(5000), true);
  assert.equal((await campaign.status()).fate, "arrived");
  // Another visit finds it all in the storage.
  const later = lifeOf(document, { texts });
  assert.deepEqual(await later.campaign.contribute({}, "no"), { ...receipt, fate: "arrived" });
  const [sent] = await later.device.sent();
  assert.match(sent.said, / with probability 0\.\d\d\)$/);
  assert.equal(String(await later.campaign.explained()), said);
  assert.deepEqual(later.asked, []);
});

test("the caps of the vectors: what a device refuses, with a sentence, and what it asks", async () => {
  for (const { document, epsilon, total_epsilon, crowd_epsilon, if_both_collude, code } of caps) {
    const set = { maxEpsilon: epsilon };
    if (crowd_epsilon !== null) set.maxCrowdEpsilon = crowd_epsilon;
    if (if_both_collude !== null) set.maxIfBothCollude = if_both_collude;
    const { campaign, texts } = lifeOf(named(document).document, {
      caps: set,
      device: { maxTotalEpsilon: total_epsilon },
    });
    const found = await campaign.refusal();
    assert.equal(found?.code ?? null, code);
    if (code && code !== "total-above-cap") assert.match(found.message, /^the campaign.* max|^the campaign.*maxIf/);
    assert.deepEqual(await campaign.nextStep(), { step: code ? "nothing" : "ask", reason: code });
    if (code) await refuses(code, campaign.grant());
    assert.equal(texts.size, 0);
  }
});

test("a cap that is no finite number above 0 is none", () => {
  for (const name of ["maxEpsilon", "maxCrowdEpsilon", "maxIfBothCollude"])
    for (const cap of [0, -1, NaN, Infinity])
      assert.throws(() => lifeOf("{}", { caps: { ...CAPS, [name]: cap } }), { code: "bad-cap" }, `${name} ${cap}`);
  lifeOf("{}", { caps: { maxEpsilon: 1, maxCrowdEpsilon: undefined, maxIfBothCollude: undefined } });
});

const promise = { epsilon: 1, delta: 1e-9, devices: 20000, honest: 0.5 };
const MALFORMED = [
  ...[true, false, 0, 1, "", "1e-9", [], [promise], {}].map((crowd) => ["crowd", crowd]),
  ...["epsilon", "delta", "devices", "honest"].flatMap((name) => [
    ...[undefined, null, "1", -1, true, {}, [1], 1e308, 5e-324].map((value) => [name, { ...promise, [name]: value }]),
  ]),
  ...[0, 1.5, "90", 3651].map((expires) => ["expires", { ...promise, expires }]),
  ...[1, "", " ", "\n", {}, "why"].map((without_issuer) => ["without_issuer", { ...promise, without_issuer }]),
  ["devices", { ...promise, devices: 20000.5 }],
  ["__proto__", JSON.parse(`{"__proto__": ${JSON.stringify(promise)}}`)],
];

test("a crowd that is none, or promises more than holds, is no document: nobody is asked, and nothing is stored", async () => {
  const right = JSON.parse(named("20,000").document);
  const documents = [
    ...MALFORMED.map(([name, crowd]) => [
      `${name} ${JSON.stringify(crowd)}`,
      JSON.stringify({ ...right, privacy: { ...right.privacy, crowd } }),
    ]),
    ...refused.map(({ name, document }) => [name, document]),
  ];
  assert.ok(documents.length > 60);
  for (const [name, document] of documents) {
    const { campaign, asked, texts } = lifeOf(document, {
      caps: { maxEpsilon: 64, maxCrowdEpsilon: 64, maxIfBothCollude: 64 },
      device: { maxTotalEpsilon: 64 },
    });
    const { step, reason } = await campaign.nextStep();
    assert.equal(step, "nothing", name);
    assert.match(reason, /^(invalid-document|crowd-above-promise|loss-above-epsilon)$/, name);
    assert.deepEqual([asked, texts.size], [["/v1/campaigns/ID"], 0], name);
    await refuses(reason, campaign.grant());
  }
});

test("a key that is written with escapes is the same key", async () => {
  const document = named("20,000").document.replace('"crowd"', '"\\u0063rowd"');
  assert.ok(document.includes("u0063"));
  const { campaign } = lifeOf(document, { caps: { maxEpsilon: 64 } });
  assert.equal((await campaign.refusal()).code, "crowd-cap-missing");
  assert.equal((await lifeOf(document).campaign.nextStep()).step, "ask");
});

test("no entry of the package reads a campaign with a crowd without its check", async () => {
  for (const entry of ["index", "core", "ldp-bayes-client.min"]) {
    const { parseCampaign } = await import(`../dist/${entry}.js`);
    for (const { document, name } of [...accepted, ...refused])
      assert.throws(
        () => parseCampaign(document),
        /crowd-unsupported|invalid|release_every|gateway|issuer|privacy/,
        name,
      );
    for (const { document, id } of accepted)
      assert.throws(() => parseCampaign(document, id), { code: "crowd-unsupported" });
  }
});

test("where what checks a crowd cannot be loaded, nobody is asked, what was agreed to waits, and other campaigns go on", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "offline-"));
  t.after(() => rmSync(folder, { recursive: true }));
  for (const part of ["", "answering.", "words.", "sealing."])
    cpSync(
      new URL(`../dist/ldp-bayes-client.${part}min.js`, import.meta.url),
      join(folder, `ldp-bayes-client.${part}min.js`),
    );
  const client = await import(join(folder, "ldp-bayes-client.min.js"));
  const made = (storage, server, options) =>
    new client.Device(storage, {
      maxTotalEpsilon: 10,
      identity: "per installation",
      fetch: server.fetch,
      ...options,
    });
  const { document } = named("without an issuer");
  const { campaign, asked, texts } = lifeOf(document, { made });
  assert.deepEqual(await campaign.nextStep(), { step: "nothing", reason: "unreachable" });
  await refuses("unreachable", campaign.grant());
  assert.deepEqual([new Set(asked), texts.size], [new Set(["/v1/campaigns/ID"]), 0]);

  const agreed = lifeOf(document, { texts });
  await agreed.campaign.decide(true);
  const before = new Map(texts);
  const again = lifeOf(document, { made, texts });
  assert.deepEqual(await again.campaign.nextStep(), { step: "nothing", reason: "unreachable" });
  await refuses("not-fetched", again.campaign.contribute({}, "yes"));
  assert.deepEqual(texts, before);

  const plain = JSON.parse(document);
  delete plain.privacy.crowd;
  delete plain.gateway;
  assert.equal(
    (await lifeOf(JSON.stringify(plain), { made, caps: { maxEpsilon: 4 } }).campaign.nextStep()).step,
    "ask",
  );
});

test("the bound falls with the crowd and with epsilon, is 0 where the local one is smaller, and is not below the exact loss of a pair", () => {
  const ONE = 1n << 64n;
  /** Direct encoding over `d` cells at a likelihood ratio of `ratio`. */
  const question = (ratio, d, weight = 1) => {
    const p = (ONE * BigInt(ratio)) / BigInt(ratio + d - 1);
    return { parameters: { p }, domain_size: d, weight, mechanism: "de" };
  };
  const asked = [question(50, 16), question(20, 4, 3)];
  let last = 1;
  for (let n = 1; n <= 2 ** 30; n *= 8) {
    const found = deltaBound(asked, n, 1, 1e-14);
    assert.ok(found >= 0 && found <= last * (1 + 1e-9) && found <= 1, `${n}: ${found}`);
    assert.ok(deltaBound(asked, n, 0.5, 1e-14) >= found);
    last = found;
  }
  assert.ok(last < 1e-12);
  assert.equal(deltaBound(asked, 1000, Math.log(50) + 1e-9, 1e-14), 0);
  // Two cells, a truth told in 3 of 4 reports: how many say the one, with all others on the other side.
  const [truth, other] = [0.75, 0.25];
  const several = (n, p) =>
    Array.from({ length: n }).reduce(
      (law) => [...law, 0].map((share, k) => share * (1 - p) + (law[k - 1] ?? 0) * p),
      [1],
    );
  for (let n = 1; n <= 5; n++)
    for (const epsilon of [0.05, 0.3, 0.7, 1]) {
      const others = several(n - 1, other);
      const law = (p) => [...others, 0].map((share, k) => share * (1 - p) + (others[k - 1] ?? 0) * p);
      const [one, two] = [law(truth), law(other)];
      const exact = (p, q) => p.reduce((sum, share, k) => sum + Math.max(0, share - Math.exp(epsilon) * q[k]), 0);
      const found = deltaBound([question(3, 2)], n, epsilon, 1e-14);
      assert.ok(found >= Math.max(exact(one, two), exact(two, one)) && found <= 1, `${n} at ${epsilon}`);
    }
  const many = Array.from({ length: 2000 }, (_, i) => question(10 + i, 2 + (i % 60), 1 + (i % 7)));
  const found = deltaBound(many, 2 ** 30, 0.05, 1e-15);
  assert.ok(found > 0 && found < 1);
});
