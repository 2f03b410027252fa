// Evaluation rounds, and the models that a device reads.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Classifier, parseCampaign, perturb, unhex } from "../dist/core.js";
import { readModel } from "../dist/document/evaluation.js";
import { memoryStorage } from "../dist/testing/index.js";
import {
  aggregator,
  deviceOn,
  documents,
  models,
  RECORD,
  refusedModels,
  refuses,
  URL_OF_TESTS,
} from "./support/campaigns.mjs";

const EVALUATION = documents.evaluation;
const parse = (change) => {
  const content = JSON.parse(EVALUATION.document);
  change(content);
  return parseCampaign(JSON.stringify(content));
};
const refused = (change) => assert.throws(() => parse(change), { code: "invalid-document" });

test("a device answers every campaign of the vectors", async () => {
  for (const [name, campaign] of Object.entries(documents)) {
    const server = aggregator();
    let now = Date.UTC(2026, 5, 1);
    const device = deviceOn(memoryStorage(), server, { maxTotalEpsilon: 1000, now: () => now });
    const part = device.campaign(URL_OF_TESTS, campaign.id, { maxEpsilon: 1000 });
    const { label, windows } = await part.fetch();
    if (windows) now = Date.parse(windows.from);
    await part.grant();
    while ((await part.nextStep()).step === "nothing") now += 6 * 3600e3;
    const { questions } = await part.contribute({}, label.classes[0]);
    assert.ok(await device.runOnce(1000), name);
    assert.equal(server.uploads.length, 1, name);
    assert.ok(questions.length >= 1);
  }
});

test("a device says whether the model is right, and where its score lies, once for all of its labels", () => {
  const campaign = parseCampaign(EVALUATION.document, EVALUATION.id);
  const { model, edges } = campaign.evaluation;
  const { classes } = campaign.label;
  const classifier = new Classifier(model);
  const asked = new Set();
  for (const record of [{}, RECORD, { colour: "0", hours: 3 }, { größe: 1.9, hours: 99 }]) {
    const [first, second] = classifier.scores(record);
    const place = edges.filter((edge) => second - first > edge).length;
    for (let device = 0; device < 20; device++) {
      const secret = unhex(device.toString(16).padStart(64, "0"));
      const answers = classes.map((label) => perturb(campaign, record, label, secret)[0]);
      const { kind } = campaign.questions[answers[0].question];
      asked.add(kind);
      assert.deepEqual(
        answers.map(({ item }) => item),
        classes.map((label, c) => (kind === "right" ? Number(classifier.predict(record) === label) : 2 * place + c)),
      );
    }
  }
  assert.deepEqual([...asked].sort(), ["right", "score"]);
});

test("of three classes the score is the class that the model says", () => {
  const campaign = parseCampaign(documents["evaluation-three"].document);
  const { classes } = campaign.label;
  const classifier = new Classifier(campaign.evaluation.model);
  for (const record of [{}, { colour: "0", hours: 45 }, { hours: 90 }]) {
    const said = classes.indexOf(classifier.predict(record));
    for (let device = 0; device < 20; device++) {
      const secret = unhex(device.toString(16).padStart(64, "0"));
      const [{ question, item }] = perturb(campaign, record, "unknown", secret);
      assert.equal(item, campaign.questions[question].kind === "right" ? Number(said === 2) : 3 * said + 2);
    }
  }
});

test("what an evaluation round is about is read as strictly as documents", () => {
  assert.equal(parse(() => {}).questions.length, 2);
  const model = ({ evaluation }) => evaluation.model;
  refused((content) => (model(content).extra = 1));
  refused((content) => (model(content).prior = model(content).prior.map(() => 0.9)));
  refused((content) => (model(content).features[0].extra = 1));
  refused((content) => (model(content).projection = []));
  refused((content) => (content.evaluation.extra = 1));
  refused((content) => (content.questions[0].kind = ["score"]));
  refused((content) => delete content.evaluation);
});

test("a device reads a model as strictly as a document, and only one about the campaign's label", async () => {
  const { model } = models.binary;
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
  const part = deviceOn(memoryStorage(), server).campaign(URL_OF_TESTS, documents.binary.id, { maxEpsilon: 10 });
  server.models.set(documents.binary.id, model);
  assert.ok((await part.classifier()).predict({}));
  server.models.set(documents.binary.id, JSON.stringify({ ...JSON.parse(model), extra: 1 }));
  const other = deviceOn(memoryStorage(), server).campaign(URL_OF_TESTS, documents.binary.id, { maxEpsilon: 10 });
  await refuses("invalid-model", other.classifier());
});
