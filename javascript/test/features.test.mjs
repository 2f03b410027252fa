// A kind of features that nobody else has heard of is a row of each table, and a device answers and classifies with it.
import assert from "node:assert/strict";
import test from "node:test";
import { KINDS, ROWS, RULES, WORDS } from "../dist/features.js";
import { Classifier, Coins, LdpError, parseCampaign, perturb } from "../dist/core.js";
import { preview } from "../dist/preview.js";
import { changed, documents } from "./support/campaigns.mjs";

const numbers = (value) => (typeof value === "number" && Number.isFinite(value) ? value : NaN);
const cyclic = {
  size: ({ parts }) => parts,
  // The part of a circle, such as the hours of a day, that a number lies in.
  index: ({ period, parts }, value) => Math.floor((((numbers(value) % period) + period) % period) / (period / parts)),
};

function withKind() {
  KINDS.cyclic = cyclic;
  ROWS.cyclic = cyclic.size;
  RULES.cyclic = () => ({ period: (period) => period > 0, parts: (parts) => Number.isInteger(parts) && parts > 1 });
  WORDS.cyclic = {
    wanted: ({ period }) => `a number, to which ${period} may be added`,
    named: ({ period, parts }, index) => `part ${index + 1} of ${parts}, of ${period}`,
    wrong: (_, value) => Number.isNaN(numbers(value)) && "is no number on a circle",
  };
}

/** A campaign whose first list of values stands no longer for texts, but for so many parts of a day. */
function campaignOf() {
  const { features } = JSON.parse(documents["missing-de"].document);
  const place = features.findIndex(({ kind }) => kind === "categorical");
  const { name, values, weight, missing } = features[place];
  features[place] = { name, kind: "cyclic", period: 24, parts: values.length, weight, missing };
  return { ...changed({ features }, "missing-de"), name, parts: values.length };
}

test("a kind from outside is refused before it has its rows, and read, answered and told of after", () => {
  const { document, id, name, parts } = campaignOf();
  assert.throws(() => parseCampaign(document, id), LdpError);
  withKind();
  const campaign = parseCampaign(document, id);
  assert.throws(() => parseCampaign(document.replace('"period":24', '"period":0')), LdpError);
  const [k, asked] = [campaign.label.classes.length, campaign.questions.find(({ feature }) => feature === name)];
  const only = { ...campaign, questions: [asked], groups: [[asked]] };
  const coins = () => new Coins(() => 0n);
  const items = [0, 23.9, -0.1, 25, "noon"].map(
    (hour) => perturb(only, { [name]: hour }, campaign.label.classes[1], new Uint8Array(32), coins())[0].item,
  );
  assert.deepEqual(
    items,
    [0, parts - 1, parts - 1, 0, parts].map((part) => part * k + 1),
  );
  const said = preview(campaign, { [name]: 1 }, campaign.label.classes[1]).questions[asked.index];
  assert.equal(said.truth, `part 1 of ${parts}, of 24, ${campaign.label.classes[1]}`);
  const told = preview(campaign, { [name]: "noon" }).problems.find(({ feature }) => feature === name);
  assert.deepEqual(told, {
    feature: name,
    wrong: '"noon" is no number on a circle',
    right: "a number, to which 24 may be added",
  });
});

test("a model that has a table of it classifies", () => {
  withKind();
  const hour = { name: "hour", kind: "cyclic", period: 24, parts: 2 };
  const model = { version: 1, kind: "naive-bayes", label: "y", classes: ["a", "b"], prior: [0.5, 0.5] };
  const classifier = (likelihood) =>
    Classifier.fromJson(JSON.stringify({ ...model, features: [{ ...hour, likelihood }], projection: null }));
  const read = classifier([
    [0.9, 0.2],
    [0.1, 0.8],
  ]);
  assert.deepEqual(
    [3, 15, 27, -1].map((at) => read.predict({ hour: at })),
    ["a", "b", "a", "b"],
  );
  assert.throws(() => classifier([[1, 1]]), LdpError);
});

test("names of objects' own members are no kinds", () => {
  for (const kind of ["toString", "constructor", "__proto__", "__defineGetter__", ["categorical"], null, 1]) {
    const { features } = JSON.parse(documents["missing-de"].document);
    features[0] = { ...features[0], kind };
    assert.throws(() => parseCampaign(changed({ features }).document), LdpError, String(kind));
  }
});
