// A log tells each step and each failure with its cause, and nothing of a person.
import assert from "node:assert/strict";
import { createServer } from "node:net";
import { test } from "node:test";
import { LdpError, logTo, toConsole } from "../dist/browser/index.js";
import { memoryStorage, problem } from "../dist/testing/index.js";
import { aggregator, deviceOn, documents, RECORD, URL_OF_TESTS } from "./support/campaigns.mjs";

const ONE = documents["de-onebit"].id;

function life(options = {}, texts = new Map()) {
  const [steps, server] = [[], aggregator()];
  const device = deviceOn(memoryStorage(texts), server, { log: logTo((step) => steps.push(step)), ...options });
  const campaign = device.campaign(options.url ?? URL_OF_TESTS, ONE, { maxEpsilon: 1 });
  return { steps, server, device, campaign, texts, named: () => steps.map(({ name, code }) => [name, code]) };
}

test("every step of a contribution is told with its time and campaign", async () => {
  const { steps, campaign, device, named } = life({ now: () => 5 });
  assert.equal((await campaign.nextStep()).step, "ask");
  await campaign.decide(true);
  await campaign.contribute(RECORD, "yes");
  await device.runOnce(0);
  assert.deepEqual(named(), [
    ["document", null],
    ["state", null],
    ["next-step", "ask"],
    ["decide", "contribute"],
    ["contribute", null],
    ["upload", null],
  ]);
  assert.deepEqual(new Set(steps.map(({ campaignId, time, cause }) => `${campaignId} ${time} ${cause}`)).size, 1);
});

const failing = (error) => ({
  fetch: async () => {
    throw error;
  },
});
const behind = (code, name = "Error") =>
  new TypeError("fetch failed", { cause: Object.assign(new Error(), { code, name }) });

for (const [error, cause] of [
  [behind("ENOTFOUND"), "dns: ENOTFOUND"],
  [behind("EAI_AGAIN"), "dns: EAI_AGAIN"],
  [behind("DEPTH_ZERO_SELF_SIGNED_CERT"), "tls: DEPTH_ZERO_SELF_SIGNED_CERT"],
  [behind("ERR_TLS_CERT_ALTNAME_INVALID"), "tls: ERR_TLS_CERT_ALTNAME_INVALID"],
  [behind("UND_ERR_CONNECT_TIMEOUT"), "timeout: UND_ERR_CONNECT_TIMEOUT"],
  [behind("ECONNREFUSED"), "refused: ECONNREFUSED"],
  [behind("ECONNRESET"), "reset: ECONNRESET"],
  [new TypeError("Failed to fetch"), "network: TypeError"],
  [Object.assign(new Error("41.5"), { code: "green 41.5" }), "Error"],
]) {
  test(`why a server is not reached is told by kind: ${cause}`, async () => {
    const { steps, campaign } = life({ ...failing(error), policy: { backoffBase: 1 } });
    assert.equal((await campaign.nextStep()).reason, "unreachable");
    assert.deepEqual([steps[0].name, steps[0].code, steps[0].cause], ["document", "unreachable", cause]);
  });
}

test("Node tells a name that nobody knows, a port that is closed and a server that is silent apart", async (t) => {
  const silent = createServer().listen(0, "127.0.0.1");
  t.after(() => silent.close());
  await new Promise((done) => silent.once("listening", done));
  for (const [url, cause] of [
    ["http://127.0.0.1:1", /^(refused: ECONNREFUSED|network: TypeError|Error)$/],
    [`http://127.0.0.1:${silent.address().port}`, /^timeout$/],
  ]) {
    const policy = { backoffBase: 1, requestTimeout: 100 };
    const { steps, campaign } = life({ url, policy, fetch: (...request) => fetch(...request) });
    await campaign.nextStep({ timeout: 1000 });
    assert.match(steps[0].cause, cause, url);
  }
});

test("a refusal of the server, a document that is none and a storage that fails are told", async () => {
  const { campaign, server, named, steps } = life({ policy: { backoffBase: 1 } });
  server.intercept = () => problem(403, "no");
  await campaign.nextStep();
  assert.deepEqual(named().slice(0, 2), [
    ["document", "http-403"],
    ["next-step", "no"],
  ]);
  server.intercept = () => new Response("{");
  await campaign.nextStep();
  assert.equal(steps.at(-1).code, "wrong-hash");
  const cause = Object.assign(new Error("value 41.5"), { name: "QuotaExceededError" });
  const storage = {
    ...memoryStorage(),
    read: async () => {
      throw new LdpError("storage-full", "", { cause });
    },
  };
  const told = [];
  const device = deviceOn(storage, server, { log: logTo((step) => told.push(step)) });
  await device.campaign(URL_OF_TESTS, ONE, { maxEpsilon: 1 }).nextStep();
  assert.equal(await device.runOnce(0), false);
  assert.deepEqual(
    told.map(({ name, code, cause }) => [name, code, cause]),
    [
      ["next-step", "storage-full", "QuotaExceededError"],
      ["delivery", "storage-full", "QuotaExceededError"],
    ],
  );
});

test("no step ever holds a value, an id, a secret or a payload", async () => {
  const { campaign, device, server, steps, texts } = life({ policy: { backoffBase: 1, firstDelay: 0 } });
  await campaign.grant();
  const record = { ...RECORD, hours: 3.14159 };
  await assert.rejects(campaign.contribute(record, "unheard"));
  await campaign.contribute(record, "yes");
  for (const answer of [problem(503, "overloaded"), problem(429, "green"), new Response("3.14159")]) {
    server.intercept = () => answer;
    await device.runOnce(50);
  }
  server.intercept = () => {
    throw new TypeError(`${JSON.stringify(record)} ${[...texts.values()]}`);
  };
  await device.runOnce(50);
  server.intercept = () => undefined;
  await device.runOnce(5000);
  const { secret, campaigns } = JSON.parse(texts.get("device").slice(43));
  const [{ id, payload }] = campaigns[ONE].reports;
  const told = JSON.stringify(steps);
  assert.ok(steps.length > 6, told);
  for (const planted of ["3.14159", "unheard", "green", secret, id, `"${payload}"`, ...server.uploads])
    assert.ok(!told.includes(planted), planted);
});

test("a log that throws troubles nobody, and the console takes it", async (t) => {
  const { campaign } = life({
    log: logTo(() => {
      throw new Error();
    }),
  });
  assert.equal((await campaign.nextStep()).step, "ask");
  const said = { info: [], warn: [] };
  for (const level of ["info", "warn"]) t.mock.method(console, level, (...told) => said[level].push(told));
  const steps = ["ask", "unreachable"].map((code, i) => {
    return { time: 0, campaignId: "c", name: "next-step", code, cause: i ? "dns: ENOTFOUND" : null };
  });
  for (const step of steps) toConsole(step);
  assert.deepEqual(said, { info: [["ldp-bayes", steps[0]]], warn: [["ldp-bayes", steps[1]]] });
});

test("a withdrawal that could not be stored holds in this process until a later consent", async () => {
  let [full, now] = [false, 1];
  const storage = memoryStorage();
  const failing = {
    ...storage,
    change: async (...change) => {
      if (full) throw new LdpError("storage-full");
      return storage.change(...change);
    },
  };
  const server = aggregator();
  const device = deviceOn(failing, server, { now: () => now++ });
  const campaign = device.campaign(URL_OF_TESTS, ONE, { maxEpsilon: 1 });
  await campaign.grant();
  await campaign.contribute(RECORD, "yes");
  full = true;
  await assert.rejects(campaign.withdraw(), (error) => error.code === "storage-full");
  assert.equal(await campaign.consented(), false);
  full = false;
  await device.runOnce(0);
  assert.deepEqual(server.uploads, []);
  await campaign.grant();
  assert.equal(await campaign.consented(), true);
  await device.runOnce(0);
  assert.equal(server.uploads.length, 1);
});

test("a consent ends what could not be stored of a withdrawal, whatever the clock says", async () => {
  for (const later of [0, -1]) {
    let [full, now] = [false, 5];
    const storage = memoryStorage();
    const change = async (...given) => {
      if (full) throw new LdpError("storage-full");
      return storage.change(...given);
    };
    const device = deviceOn({ ...storage, change }, aggregator(), { now: () => now });
    const [campaign, other] = [ONE, documents["oue-sign"].id].map((one) =>
      device.campaign(URL_OF_TESTS, one, { maxEpsilon: 1 }),
    );
    await campaign.grant();
    await other.grant();
    full = true;
    for (const one of [campaign, other]) await assert.rejects(one.withdraw(), (error) => error.code === "storage-full");
    full = false;
    now += later;
    await campaign.grant();
    assert.deepEqual([await campaign.consented(), await other.consented()], [true, false]);
  }
});

test("a no that could not be stored is remembered as long as the process", async () => {
  const storage = {
    ...memoryStorage(),
    change: async () => {
      throw new LdpError("storage-full");
    },
  };
  const campaign = deviceOn(storage, aggregator()).campaign(URL_OF_TESTS, ONE, { maxEpsilon: 1 });
  assert.deepEqual(await campaign.decide(false), { step: "nothing", reason: "storage-full" });
  assert.deepEqual(await campaign.nextStep(), { step: "nothing", reason: "declined" });
});

test("of a damaged storage the status tells, and ledger and what was sent throw", async () => {
  const device = deviceOn(memoryStorage(new Map([["device", "damaged"]])), aggregator());
  const status = await device.campaign(URL_OF_TESTS, ONE, { maxEpsilon: 1 }).status();
  assert.deepEqual([status.consent, status.queued, status.problem], [null, 0, "storage-corrupt"]);
  for (const call of [device.ledger(), device.sent()])
    await assert.rejects(call, (error) => error.code === "storage-corrupt");
});
