// Evaluation rounds, and what a weight of a model's feature means.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Classifier, LdpError, parseCampaign, perturb, unhex } from "../dist/index.js";
import { readModel } from "../dist/document/candidates.js";
import { memoryStorage } from "../dist/testing/index.js";
import { aggregator, deviceOn, documents, models, refusedModels, refuses, URL_OF_TESTS } from "./support/campaigns.mjs";

const SCORE = documents.score;
const parse = (change) => {
  const content = JSON.parse(SCORE.document);
  change(content);
  return parseCampaign(JSON.stringify(content));
};
const refused = (change) => assert.throws(() => parse(change), { code: "invalid-document" });

test("a device answers an evaluation round by one bit about a candidate, and a projection's campaign, each with what it loads", async () => {
  for (const [name, campaign] of Object.entries(documents)) {
    const server = aggregator();
    const device = deviceOn(memoryStorage(), server, { maxTotalEpsilon: 1000, now: () => Date.UTC(2026, 5, 1) });
    const part = device.campaign(URL_OF_TESTS, campaign.id, { maxEpsilon: 1000 });
    const { label } = await part.fetch();
    await part.grant();
    const { questions } = await part.contribute({}, label.classes[0]);
    assert.ok(await device.runOnce(1000), name);
    assert.equal(server.uploads.length, 1, name);
    assert.ok(questions.length >= 1);
  }
});

test("a device says of the candidate that was drawn whether it is right for the record", () => {
  const campaign = parseCampaign(SCORE.document, SCORE.id);
  const { classes } = campaign.label;
  let [right, wrong] = [0, 0];
  for (let device = 0; device < 40; device++) {
    const secret = unhex(device.toString(16).padStart(64, "0"));
    for (const label of classes) {
      const [{ question, item }] = perturb(campaign, {}, label, secret);
      const { model } = campaign.candidates[campaign.questions[question].group];
      assert.equal(item, Number(new Classifier(model).predict({}) === label));
      if (item) right++;
      else wrong++;
    }
  }
  assert.deepEqual([right, wrong], [40, 40 * (classes.length - 1)]);
});

test("candidates are read as strictly as documents", () => {
  assert.equal(parse(() => {}).questions.length, JSON.parse(SCORE.document).questions.length);
  const first = ({ candidates }) => candidates[0].model;
  refused((content) => (first(content).extra = 1));
  refused((content) => (first(content).prior = first(content).prior.map(() => 0.9)));
  refused((content) => (first(content).features[0].extra = 1));
  refused((content) => (first(content).features[0].weight = null));
  refused((content) => (first(content).projection = []));
  refused((content) => (content.candidates[0].extra = 1));
  refused((content) => (content.questions[0].kind = ["score"]));
  refused((content) => (content.questions[0].group = content.candidates.length));
  refused((content) => delete content.candidates);
});

test("a feature's log likelihood counts as many times as its weight says, and once where there is none", () => {
  const model = JSON.parse(models.xor.model);
  const feature = model.features[0];
  const [value] = feature.values;
  const read = (weight) => Classifier.fromJson(JSON.stringify({ ...model, features: [{ ...feature, weight }] }));
  const prior = model.prior.map(Math.log);
  for (const weight of [undefined, 1, 0.25]) {
    read(weight)
      .scores({ [feature.name]: value })
      .forEach((score, c) => {
        const told = Math.log(feature.likelihood[0][c]) * (weight ?? 1);
        assert.ok(Math.abs(score - prior[c] - told) < 1e-12);
      });
  }
  for (const weight of [0, -1, 1.001, "1", null, true, [], {}])
    assert.throws(
      () => read(weight),
      (error) => error instanceof LdpError && error.code === "invalid-model",
    );
});

test("a device reads a model as strictly as a document, and only one about the campaign's label", async () => {
  const { model } = models.xor;
  const { label, classes } = JSON.parse(model);
  assert.deepEqual(readModel(model, { name: label, classes }), JSON.parse(model));
  for (const { name, model: wrong } of refusedModels)
    assert.throws(() => readModel(wrong), { code: "invalid-model" }, name);
  for (const about of [
    { name: "another", classes },
    { name: label, classes: [...classes].reverse() },
  ])
    assert.throws(() => readModel(model, about), { code: "invalid-model" });
  for (const change of [{ extra: 1 }, { training: [1] }, { label: "" }, { classes: [classes[0], classes[0]] }])
    assert.throws(() => readModel(JSON.stringify({ ...JSON.parse(model), ...change })), { code: "invalid-model" });

  const server = aggregator();
  const part = deviceOn(memoryStorage(), server).campaign(URL_OF_TESTS, documents.xor.id, { maxEpsilon: 10 });
  server.models.set(documents.xor.id, model);
  assert.ok((await part.classifier()).predict({}));
  server.models.set(documents.xor.id, JSON.stringify({ ...JSON.parse(model), extra: 1 }));
  await refuses("invalid-model", part.classifier());
});
