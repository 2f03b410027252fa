// The element for debug builds, on what little of a page it takes; test/browsers has it in Chromium.
import assert from "node:assert/strict";
import { test } from "node:test";
import { memoryStorage } from "../dist/testing/index.js";
import { aggregator, deviceOn, documents, RECORD, URL_OF_TESTS } from "./support/campaigns.mjs";

class Part {
  style = {};
  parts = [];
  append(...parts) {
    this.parts.push(...parts);
  }
  replaceChildren(...parts) {
    this.parts = parts;
  }
}
const defined = new Map();
Object.assign(globalThis, {
  HTMLElement: Part,
  customElements: { get: (name) => defined.get(name), define: (name, made) => defined.set(name, made) },
  document: { createElement: (tag) => Object.assign(new Part(), { tag }) },
});

test("it shows the next step with its reason, the queue, the last answer and the ledger, and reads them again", async () => {
  const { defineDebug } = await import("../dist/debug/index.js");
  defineDebug();
  const first = defined.get("ldp-bayes-debug");
  defineDebug();
  assert.equal(defined.get("ldp-bayes-debug"), first);
  const element = new first();
  const shown = async () => {
    await element.refresh();
    const texts = element.parts[0].parts.map(({ textContent }) => textContent);
    return Object.fromEntries(texts.flatMap((text, i) => (i % 2 ? [] : [[text, texts[i + 1]]])));
  };
  assert.deepEqual(
    await shown(),
    Object.fromEntries(["Next step", "Queue", "Last answer", "Ledger"].map((one) => [one, "none yet"])),
  );
  const texts = new Map();
  element.device = deviceOn(memoryStorage(texts), aggregator());
  element.campaign = element.device.campaign(URL_OF_TESTS, documents["de-onebit"].id, { maxEpsilon: 1 });
  assert.equal((await shown())["Next step"], "ask");
  await element.campaign.grant();
  await element.campaign.contribute(RECORD, "yes");
  let told = await shown();
  assert.equal(told["Next step"], "nothing, because answered");
  assert.match(told["Queue"], /^1 wait.*fate: waiting/);
  await element.device.runOnce(5000);
  told = await shown();
  assert.match(told["Queue"], /^0 wait, 1 arrived, 0 tries failed; fate: arrived$/);
  assert.match(
    told["Last answer"],
    /with probability 0\.\d\d\); sent at .* to http:\/\/127\.0\.0\.1:8080; reply: arrived$/,
  );
  assert.match(told["Ledger"], /contributed to 1 campaign.*count is lost and begins anew\.$/s);
  texts.set("device", "damaged");
  told = await shown();
  assert.equal(told["Next step"], "nothing, because storage-corrupt");
  assert.equal(told["Ledger"], "cannot be read: storage-corrupt");
});
