// Uploads: one length in a campaign, whatever is asked.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { encodeUpload, hex, parseCampaign, perturb, unhex, uploadLength } from "../dist/core.js";
import { pack, unpack } from "../dist/device/state.js";
import { memoryStorage } from "../dist/testing/index.js";
import { aggregator, changed, deviceOn, documents, RECORD, URL_OF_TESTS } from "./support/campaigns.mjs";
import { longest } from "./support/server.mjs";

const secretOf = (number) => createHash("sha256").update(String(number)).digest();

test("every upload of a device of a campaign has its length, and none is longer", () => {
  for (const [name, { document }] of Object.entries(documents)) {
    const campaign = parseCampaign(document);
    const length = uploadLength(campaign);
    assert.equal(length, longest(campaign), name);
    let most = 0;
    const label = campaign.label.classes[0];
    for (let device = 0; device < 60; device++) {
      const reports = perturb(campaign, RECORD, label, secretOf(device));
      most = Math.max(most, encodeUpload(reports, 0).length);
      const upload = hex(encodeUpload(reports, length));
      assert.equal(upload.length, 2 * length, name);
      assert.match(upload.slice(2 * encodeUpload(reports, 0).length), /^(00)*$/);
    }
    assert.ok(most <= length, name);
  }
});

test("a secret is 32 bytes", () => {
  const campaign = parseCampaign(documents["de-onebit"].document);
  assert.equal(perturb(campaign, RECORD, "yes", new Uint8Array(32)).length, 1);
  for (const length of [0, 16, 31, 33, 64])
    assert.throws(() => perturb(campaign, RECORD, "yes", new Uint8Array(length)), { code: "invalid-secret" });
});

test("numbers, lengths and counts of every size are counted as they are written", () => {
  for (const answers of ["one", "all"])
    for (const count of [1, 2, 15, 16, 127, 128, 129, 255, 257, 300])
      for (const windows of [null, { count: 2 }, { count: 300 }])
        for (const width of [1, 255, 256, 65535, 65536, 600_000]) {
          const questions = Array.from({ length: count }, (_, i) => ({ index: i, width: i === count - 1 ? width : 1 }));
          const campaign = { privacy: { answers }, questions, groups: questions.map((one) => [one]), windows };
          const last = ((windows?.count ?? 1) - 1) * count;
          const asked = answers === "all" ? questions : questions.slice(-1);
          const reports = asked.map((one) => ({
            question: last + one.index,
            id: new Uint8Array(16),
            payload: new Uint8Array(one.width),
          }));
          assert.equal(Math.min(encodeUpload(reports, 0).length, 2 ** 19), uploadLength(campaign));
        }
});

test("numbers and lengths are written in the fewest bytes, on both sides of every boundary", () => {
  const blockOf = (question, width) =>
    hex(encodeUpload([{ question, id: new Uint8Array(16), payload: new Uint8Array(width) }], 0));
  const id = `c410${"00".repeat(16)}`;
  for (const [question, written] of [
    [0, "00"],
    [127, "7f"],
    [128, "cc80"],
    [255, "ccff"],
    [256, "cd0100"],
    [65535, "cdffff"],
    [65536, "ce00010000"],
  ])
    assert.equal(blockOf(question, 1), `92029193${written}${id}c40100`);
  for (const [width, written] of [
    [0, "c400"],
    [255, "c4ff"],
    [256, "c50100"],
    [65535, "c5ffff"],
    [65536, "c600010000"],
  ])
    assert.equal(blockOf(0, width), `9202919300${id}${written}${"00".repeat(width)}`);
  for (const [blocks, written] of [
    [15, "9f"],
    [16, "dc0010"],
  ]) {
    const reports = Array.from({ length: blocks }, (_, question) => ({
      question,
      id: new Uint8Array(16),
      payload: new Uint8Array(1),
    }));
    assert.equal(hex(encodeUpload(reports.reverse(), 0)).slice(0, 4 + written.length + 4), `9202${written}9300`);
  }
});

test("what is longer than the length has nothing after it", () => {
  const campaign = parseCampaign(documents.all.document);
  const reports = perturb(campaign, RECORD, "yes", secretOf(1));
  assert.equal(hex(encodeUpload(reports, 10)), hex(encodeUpload(reports, 0)));
});

test("what an earlier version of the client has answered and not sent leaves as it is", async () => {
  const { document, id } = changed({}, "all");
  const [texts, server] = [new Map(), aggregator()];
  server.documents.set(id, document);
  const device = deviceOn(memoryStorage(texts), server);
  const part = device.campaign(URL_OF_TESTS, id, { maxEpsilon: 10 });
  await part.grant();
  await part.contribute(RECORD, "yes");
  const state = unpack(texts.get("device"));
  delete state.campaigns[id].length;
  texts.set("device", pack(state));
  await device.runOnce(0);
  const sent = await device.sent();
  const reports = sent.map(({ question, id: own, payload }) => ({ question, id: unhex(own), payload: unhex(payload) }));
  assert.deepEqual(server.uploads, [hex(encodeUpload(reports, 0))]);
});
