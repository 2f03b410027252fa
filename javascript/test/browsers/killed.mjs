// Chromium is killed while pages answer; *.test.mjs say how often.
import assert from "node:assert/strict";
import { test } from "node:test";
import { CHROMIUM, installed, kill, launch, profile } from "./engines.mjs";
import { bodiesById, site } from "./site.mjs";

const MORE = 3; // devices in every round
const LONGEST = 400; // milliseconds after a page began

export function killed(kills) {
  test(
    `Chromium is killed at ${kills} random instants and 30 % of the answers are lost: each device is counted once`,
    { skip: !installed(CHROMIUM), timeout: 3_600_000 },
    async (t) => {
      const here = await site(t);
      here.lose = 0.3;
      const folder = profile(t);
      let [devices, interrupted] = [0, 0];
      for (let round = 0; round < kills; round++) {
        devices += MORE;
        const browser = launch(
          CHROMIUM,
          folder,
          `${here.url}/pages/killed.html?devices=${devices}&campaign=${here.campaign}`,
        );
        await here.hear("began", 300);
        await new Promise((done) => setTimeout(done, Math.random() * LONGEST));
        await kill(browser);
        interrupted += !here.told.has("ended");
        here.told.clear();
      }
      const browser = launch(
        CHROMIUM,
        folder,
        `${here.url}/pages/killed.html?devices=${devices}&campaign=${here.campaign}&last`,
      );
      t.after(() => kill(browser));
      assert.deepEqual(await here.hear("ended", 700), Array(devices).fill({ fate: "arrived", queued: 0, sent: 1 }));
      const bodies = bodiesById(here.uploads);
      t.diagnostic(
        `${interrupted} of ${kills} kills hit a page at work; ${here.uploads.length} uploads of ${devices} devices`,
      );
      assert.equal(bodies.size, devices, "one id for each device");
      assert.ok(
        [...bodies.values()].every((different) => different.size === 1),
        "one byte string for each device",
      );
      assert.equal(here.counted(), devices);
      assert.ok(interrupted > kills / 4, "a test whose kills come too late shows nothing");
      assert.ok(here.uploads.length > devices, "some upload was sent again");
    },
  );
}
