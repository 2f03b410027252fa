// A thousand devices: over a day of a wrong clock none of their answers is lost, and after an end none of them is asked.
import assert from "node:assert/strict";
import { test } from "node:test";
import { memoryStorage, problem } from "../dist/testing/index.js";
import { aggregator, deviceOn, documents, RECORD, URL_OF_TESTS } from "./support/campaigns.mjs";

const DEVICES = 1000;
const ONE = documents["de-onebit"].id;
const HOUR = 36e5;
const DAY = 24 * HOUR;
const START = Date.parse("2027-01-15T08:00:00Z");
const REJECTED = { headers: { "Content-Type": "application/json" } };

/** What a server says while its clock is 200 days off: of an upload, with the id of its one report. */
const WRONG = {
  "campaign-closed": () => problem(409, "campaign-closed"),
  "campaign-full": (id) => new Response(JSON.stringify({ rejected: [[id, "campaign-full"]] }), REJECTED),
  "window-over": (id) => new Response(JSON.stringify({ rejected: [[id, "window-over"]] }), REJECTED),
  "campaign-closing": () => problem(409, "campaign-closing", { "Retry-After": "60" }),
  "clock-unsettled": () => problem(503, "clock-unsettled"),
  silence: () => Promise.reject(new TypeError("no network")),
};

/** Devices of which every one in three has a clock that is right, 200 days ahead, or 200 days behind for a day. */
function devices(server, clock) {
  return Array.from({ length: DEVICES }, (_, number) => {
    const off = [0, 200, -200][number % 3] * DAY;
    const now = () => clock.now + (clock.now < START + DAY ? off : 0);
    return deviceOn(memoryStorage(), server, { now });
  });
}

for (const [word, says] of Object.entries(WRONG)) {
  test(`over a day of ${word} from a wrong clock no answer is lost`, { timeout: 120_000 }, async () => {
    const [server, clock] = [aggregator(), { now: START }];
    const all = devices(server, clock).slice(0, Math.ceil(DEVICES / Object.keys(WRONG).length));
    const campaigns = all.map((device) => device.campaign(URL_OF_TESTS, ONE, { maxEpsilon: 1 }));
    let id;
    server.intercept = (method) => (method === "POST" && clock.now < START + DAY ? says(id) : undefined);
    for (const campaign of campaigns) {
      await campaign.load(documents["de-onebit"].document);
      await campaign.grant();
      await campaign.contribute(RECORD, "yes");
    }
    for (const hour of [0, 1, 7, 14, 21, 23.99, 24, 31]) {
      clock.now = START + hour * HOUR;
      for (const [number, device] of all.entries()) {
        ({ id } = (await device.export()).campaigns[ONE].reports[0]);
        await device.runOnce(0);
        const { queued, sent, dropped } = await campaigns[number].status();
        assert.deepEqual([queued + sent, dropped], [1, {}], `device ${number} after ${hour} hours`);
        assert.ok(hour >= 24 || !sent);
      }
    }
    for (const campaign of campaigns) assert.equal((await campaign.status()).fate, "arrived");
    assert.equal(server.uploads.length, all.length);
  });
}

test("of a thousand new devices nobody is asked, and nothing spent, after a closing, a filling and a deletion", async () => {
  const [server, clock] = [aggregator(), { now: START }];
  const ends = ["closed", "full", "deleted"];
  for (const [number, device] of devices(server, clock).entries()) {
    server.states.set(ONE, ends[number % 3]);
    const campaign = device.campaign(URL_OF_TESTS, ONE, { maxEpsilon: 1 });
    assert.equal((await campaign.nextStep()).step, "nothing");
    assert.equal((await campaign.refusal()).code, `campaign-${ends[number % 3]}`);
    assert.equal((await device.ledger()).totalEpsilon, 0);
  }
  assert.equal(server.uploads.length, 0);
});
