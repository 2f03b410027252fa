// A device in a series: one window for life, drawn from its secret, and one answer in it or none.
import assert from "node:assert/strict";
import { test } from "node:test";
import { drawQuestions, drawWindow, parseCampaign, perturb, unhex } from "../dist/core.js";
import { CLOCK_TOLERANCE } from "../dist/device/policy.js";
import { unpack } from "../dist/device/state.js";
import { memoryStorage, problem } from "../dist/testing/index.js";
import { aggregator, deviceOn, documents, RECORD, refuses, URL_OF_TESTS } from "./support/campaigns.mjs";
import { UNTOUCHABLE } from "./support/untouchable.mjs";

const WEEK = 7 * 864e5;
const HOUR = 36e5;
const COUNT = 5;
const FIRST = Date.parse("2027-01-04T00:00:00Z");

/** A series like one of the vectors, with other members. */
function series(changes = {}, of = "series") {
  const content = JSON.parse(documents[of].document);
  return parseCampaign(JSON.stringify({ ...content, ...changes, windows: { ...content.windows, ...changes.windows } }));
}
const SERIES = series({ windows: { count: COUNT } });

/** An install with a clock of its own; `start` is the app, started again on the same storage. */
class Life {
  texts = new Map();
  server = aggregator();
  now = FIRST;

  constructor(campaign = SERIES) {
    this.campaign = campaign;
    this.server.documents.set(campaign.id, campaign.document);
  }

  start(options = {}) {
    this.device = deviceOn(memoryStorage(this.texts), this.server, { now: () => this.now, ...options });
    return (this.part = this.device.campaign(URL_OF_TESTS, this.campaign.id, { maxEpsilon: 10 }));
  }

  /** The window of its secret, once it has one. */
  get own() {
    return drawWindow(this.campaign, unhex(unpack(this.texts.get("device")).secret));
  }

  /** Agrees, and lives until the middle of its window. */
  async agreed(options) {
    await this.start(options).grant();
    this.now = FIRST + (this.own + 0.5) * WEEK;
    return this.start(options);
  }
}

test("a device answers in its window and in no other, whenever the app starts", async () => {
  const life = new Life();
  await life.start().grant();
  const { own } = life;
  const [day, last] = [1, 2].map((week) => new Date(FIRST + (own + week - 1) * WEEK).toJSON().slice(0, 10));
  const told = `window ${own + 1} of ${COUNT}, from ${day} 00:00 to ${last} 00:00 UTC`;
  const answered = [];
  let receipt;
  for (let half = -1; half < 2 * COUNT + 2; half++) {
    life.now = FIRST + (half / 2) * WEEK + 1;
    const [part, week] = [life.start(), Math.floor(half / 2)];
    const [step, refused] = [(await part.nextStep()).step, await part.refusal()];
    if (receipt) {
      assert.equal(step, "nothing");
      assert.deepEqual((await part.contribute(UNTOUCHABLE, "no")).questions, receipt.questions);
    } else if (week === own) {
      assert.deepEqual([step, refused], ["contribute", null]);
      receipt = await part.contribute(RECORD, "yes");
      assert.match(
        String(await life.device.ledger()),
        new RegExp(`, in window ${own + 1} of ${COUNT}: 1 answer, with noise`),
      );
      answered.push(week);
    } else {
      assert.equal(step, "nothing");
      const code = week < 0 ? "campaign-not-open" : "window-not-open";
      assert.equal(refused.code, code);
      if (week >= 0) assert.equal(refused.message, `this device answers in ${told}; come again then`);
      await refuses(code, part.contribute(UNTOUCHABLE, "yes"));
    }
    assert.equal((await part.receipt()) !== null, week >= own);
    assert.equal(await life.device.runOnce(5000), true);
  }
  assert.deepEqual(answered, [own]);
  assert.equal(life.server.uploads.length, 1);
  const [sent, ...more] = await life.device.sent();
  assert.deepEqual(more, []);
  assert.deepEqual(receipt.questions, [sent.question]);
  const { length } = SERIES.questions;
  assert.equal(Math.floor(sent.question / length), own);
  const [{ index, feature }] = drawQuestions(SERIES, unhex(unpack(life.texts.get("device")).secret));
  assert.equal(sent.question % length, index);
  assert.ok(!feature || sent.asked.startsWith(feature));
});

test("what left in a later window than the first is said in words", async () => {
  let life;
  do {
    life = new Life();
    await life.start().grant();
  } while (!life.own);
  const part = await life.agreed();
  await part.contribute(RECORD, "yes");
  await life.device.runOnce(5000);
  const [{ asked, said, payload }] = await life.device.sent();
  assert.ok(asked && said !== payload);
});

test("a window is open from its first millisecond to the first of the next", async () => {
  const life = new Life();
  await life.start().grant();
  const opens = FIRST + life.own * WEEK;
  for (const [moment, code] of [
    [opens - 1, "window-not-open"],
    [opens, undefined],
    [opens + WEEK - 1, undefined],
    [opens + WEEK, "window-over"],
  ]) {
    life.now = moment;
    assert.equal((await life.start().refusal())?.code, code);
  }
});

test("a device that was off in its window answers in none", async () => {
  const life = new Life();
  await life.start().grant();
  life.now = FIRST + (life.own + 1) * WEEK;
  const part = life.start();
  assert.equal((await part.nextStep()).step, "nothing");
  const { code, message } = await part.refusal();
  assert.equal(code, "window-over");
  assert.match(message, /^this device was to answer in window \d of 5, from .* UTC; it answers in no other$/);
  await refuses("window-over", part.contribute(UNTOUCHABLE, "yes"));
  assert.equal((await life.device.ledger()).totalEpsilon, 0);
  assert.equal(await life.device.runOnce(5000), true);
  assert.deepEqual(life.server.uploads, []);
});

test("a clock that runs back makes no second answer", async () => {
  const life = new Life();
  const part = await life.agreed();
  const receipt = await part.contribute(RECORD, "yes");
  for (const moment of [FIRST - CLOCK_TOLERANCE, FIRST, FIRST + life.own * WEEK, FIRST + COUNT * WEEK]) {
    life.now = moment;
    assert.deepEqual(await life.start().contribute({}, "no"), receipt);
    assert.equal((await life.part.nextStep()).step, "nothing");
  }
  assert.equal(await life.device.runOnce(5000), true);
  assert.equal(life.server.uploads.length, 1);
});

test("a clock that runs ahead keeps the answer until the server takes it: the same bytes, with backoff", async () => {
  const life = new Life();
  const { server } = life;
  await (await life.agreed()).contribute(RECORD, "yes");
  const id = unpack(life.texts.get("device")).campaigns[SERIES.id].reports[0].id;
  const bodies = [];
  const { fetch } = server;
  let early = true;
  server.fetch = async (url, init) => {
    const answer = await fetch(url, init);
    if (init.method === "POST") bodies.push(server.uploads.at(-1));
    return early && init.method === "POST" ? Response.json({ rejected: [[id, "window-not-open"]] }) : answer;
  };
  for (let tries = 1; tries <= 3; tries++) {
    life.start();
    assert.equal(await life.device.runOnce(0), false);
    const { fate, queued, problem: code, retries, nextTry } = await life.part.status();
    assert.deepEqual([fate, queued, code, retries], ["on-its-way", 1, "window-not-open", tries]);
    assert.ok(nextTry >= life.now && nextTry <= life.now + 1000 * 2 ** (tries - 1));
    life.now += HOUR;
  }
  early = false;
  life.start();
  assert.equal(await life.device.runOnce(5000), true);
  assert.equal((await life.part.status()).fate, "arrived");
  assert.deepEqual([bodies.length, new Set(bodies).size], [4, 1]);
});

test("an answer is given up when its window has been over for a week, not when the series has", async () => {
  const life = new Life(series({ windows: { count: 52 } }));
  await (await life.agreed({ policy: { reportAge: 1e12 } })).contribute(RECORD, "yes");
  const over = FIRST + (life.own + 1) * WEEK;
  life.server.intercept = (method) => (method === "POST" ? problem(503, "store-unavailable") : undefined);
  while (life.now < over + WEEK + 2 * HOUR && (await life.part.status()).fate !== "expired") {
    life.now += HOUR;
    life.start({ policy: { reportAge: 1e12 } });
    await life.device.runOnce(0);
  }
  assert.equal((await life.part.status()).fate, "expired");
  assert.ok(life.now > over + WEEK && life.now <= over + WEEK + 2 * HOUR);
});

test("a person may agree before the window opens, and a no is remembered in it", async () => {
  const life = new Life();
  assert.equal((await life.start().nextStep()).step, "ask");
  await life.part.grant();
  life.now = FIRST + life.own * WEEK;
  assert.equal((await life.start().nextStep()).step, "contribute");
  await life.part.withdraw();
  for (let week = -1; week <= COUNT; week++) {
    life.now = FIRST + week * WEEK;
    assert.equal((await life.start().nextStep()).step, "nothing");
    await refuses("consent-missing", life.part.contribute(UNTOUCHABLE, "yes"));
  }
});

test("whose window of a second series is to come is asked about it, and whose is over is not", async () => {
  const seen = new Set();
  for (let tries = 0; seen.size < 2; tries++) {
    assert.ok(tries < 99);
    const life = new Life();
    life.start(); // an app that has another campaign, and so a secret
    await life.device.campaign(URL_OF_TESTS, documents["de-onebit"].id, { maxEpsilon: 10 }).grant();
    life.now = FIRST + WEEK;
    const code = (await life.part.refusal())?.code;
    assert.equal(code, ["window-over", undefined, ...Array(3).fill("window-not-open")][life.own]);
    assert.equal((await life.part.nextStep()).step, code === "window-over" ? "nothing" : "ask");
    if (code === "window-over") await refuses(code, life.part.grant());
    else await life.part.grant();
    if (code) seen.add(code);
  }
});

test("an account answers in one window and under one id, from whichever installation", async () => {
  const identity = crypto.getRandomValues(new Uint8Array(32));
  const answers = new Set();
  for (let install = 0; install < 2; install++) {
    const life = new Life();
    await life.start({ identity }).grant();
    while ((await life.part.nextStep()).step !== "contribute") life.now += WEEK;
    await life.part.contribute(RECORD, "yes");
    assert.equal(await life.device.runOnce(5000), true);
    const [{ id, question }] = (await life.device.export()).campaigns[life.campaign.id].reports;
    answers.add(`${question} ${id}`);
  }
  assert.equal(answers.size, 1);
});

test("windows are drawn evenly and apart from the question, and whatever the record", () => {
  const drawn = {};
  const trials = 4000; // fixed secrets: no chance is left in it
  const weights = SERIES.questions.map(({ weight }) => weight);
  const total = weights.reduce((sum, weight) => sum + weight);
  for (let number = 0; number < trials; number++) {
    const secret = new Uint8Array(32);
    new DataView(secret.buffer).setUint32(0, number);
    const [window, [{ index }]] = [drawWindow(SERIES, secret), drawQuestions(SERIES, secret)];
    drawn[[window, index]] = (drawn[[window, index]] ?? 0) + 1;
    if (number < 50)
      for (const [record, label] of [
        [RECORD, "yes"],
        [{}, "no"],
      ])
        assert.equal(perturb(SERIES, record, label, secret)[0].question, window * weights.length + index);
  }
  for (let window = 0; window < COUNT; window++)
    weights.forEach((weight, index) => {
      const expected = ((trials / COUNT) * weight) / total;
      assert.ok(Math.abs((drawn[[window, index]] ?? 0) - expected) < 6 * expected ** 0.5 + 6);
    });
  assert.throws(() => drawWindow(SERIES, new Uint8Array(31)), { code: "invalid-secret" });
});

test("all questions of a device are answered in its one window", () => {
  const campaign = series({ windows: { count: 3 } }, "series-all");
  for (let number = 0; number < 50; number++) {
    const secret = new Uint8Array(32).fill(number);
    const windows = perturb(campaign, RECORD, "yes", secret).map(({ question }) =>
      Math.floor(question / campaign.questions.length),
    );
    assert.deepEqual([windows.length, ...new Set(windows)], [campaign.groups.length, drawWindow(campaign, secret)]);
  }
});

test("a series opens with its first window and closes a week after its last; no length but one number of one unit", () => {
  const ends = { P1W: WEEK, P30D: 30 * 864e5, PT6H: 6 * HOUR, PT1M: 6e4, PT9999H: 9999 * HOUR };
  for (const [length, each] of Object.entries(ends)) {
    const { opens, closes } = series({ windows: { length, count: 3 } });
    assert.deepEqual([opens, Date.parse(closes)], ["2027-01-04T00:00:00Z", FIRST + 3 * each + WEEK]);
  }
  for (const length of ["P7H", "PT7D", "PT1W", "P1M", "P07D", "P10000D", "P7", "7D", "P7D\n", "p7d", ["P7D"], null, 7])
    assert.throws(() => series({ windows: { length } }), { code: "invalid-document", message: "length" });
  const many = JSON.parse(documents.wide.document); // of 302 cells
  for (const [count, message] of Object.entries({ 868: undefined, 869: "features" })) {
    const windows = { ...JSON.parse(documents.series.document).windows, count: Number(count) };
    const read = () => parseCampaign(JSON.stringify({ ...many, opens: null, closes: null, windows }));
    if (message) assert.throws(read, { code: "invalid-document", message });
    else assert.equal(read().windows.count, 868);
  }
  for (const windows of [0, false, "", [], {}]) {
    const text = JSON.stringify({ ...JSON.parse(documents.series.document), windows });
    assert.throws(() => parseCampaign(text), { code: "invalid-document" });
  }
});
