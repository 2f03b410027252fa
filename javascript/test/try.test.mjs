// The page that explains by doing: its numbers are the aggregator's, its thousands answer as the client in Python does, and it is small.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { parseCampaign } from "../dist/document/campaign.js";
import { checkCrowd } from "../dist/later/crowd.js";
import { utf8 } from "../dist/bytes.js";
import { hmac } from "../dist/exact/sha256.js";
import {
  accuracy,
  afterAnswer,
  estimate,
  lawOf,
  learned,
  liarsMove,
  model,
  nearest,
  onAverage,
  sureness,
} from "../try/estimation.js";
import { answers, peopleOf } from "../try/population.js";
import { alwaysTheSame, DEVICES, EPSILONS, peopleIn, truthIn } from "../try/start.js";
import { page } from "../try/build.mjs";

const read = (path) => JSON.parse(readFileSync(new URL(path, import.meta.url), "utf8"));
const tables = read("../try/tables.json");
const vectors = read("../try/vectors.json");
const MOST_BYTES = 120_000;

const tableOf = (name) => tables.find((table) => table.name === name);
const campaignOf = ({ documents }, setting) => parseCampaign(documents[setting][1], documents[setting][0], checkCrowd);
const near = (found, wanted, what) => {
  if (wanted === null)
    assert.equal(found, Infinity, what); // no report, no variance
  else assert.ok(Math.abs(found - wanted) <= 1e-9, `${what}: ${found}, not ${wanted}`);
};

for (const { table, setting, n, counts, estimates, prior, tables: likelihoods, ...rest } of vectors) {
  const where = `${table}, ${setting}, ${n.reduce((a, b) => a + b)} reports`;
  const campaign = campaignOf(tableOf(table), setting);
  if (rest.seed !== undefined) {
    test(`what a seed's devices answer is what the client in Python answers: ${where}`, () => {
      const seed = hmac(utf8("seed"), utf8(rest.seed));
      const half = Math.floor(rest.devices / 2);
      const parts = [
        [0, half],
        [half, rest.devices],
      ].map(([from, to]) => answers(campaign, peopleOf(tableOf(table)), { from, to, liars: rest.liars, seed }));
      assert.deepEqual(
        n,
        parts[0].n.map((one, i) => one + parts[1].n[i]),
      );
      assert.deepEqual(
        counts,
        parts[0].counts.map((row, i) => row.map((one, cell) => one + parts[1].counts[i][cell])),
      );
      assert.equal(parts[0].bytes, 26 * half);
    });
    continue;
  }
  test(`estimates, intervals, model and accuracy are the aggregator's: ${where}`, () => {
    const found = estimate(campaign, n, counts);
    for (const [i, { cells }] of estimates.questions.entries()) {
      const processed = nearest(found.questions[i].cells.value);
      for (const [cell, wanted] of cells.entries()) {
        for (const [key, other] of Object.entries({
          value: "estimate",
          variance: "variance",
          low: "low",
          high: "high",
        }))
          near(found.questions[i].cells[key][cell], wanted[other], `question ${i}, ${key} of cell ${cell}`);
        near(found.questions[i].perLiar, wanted.per_liar, `question ${i}, a liar`);
        near(processed[cell], wanted.processed, `question ${i}, nearest share of cell ${cell}`);
      }
    }
    for (const [c, wanted] of estimates.class_prior.entries())
      for (const [key, other] of Object.entries({ value: "estimate", variance: "variance", low: "low", high: "high" }))
        near(found.prior[key][c], wanted[other], `class ${c}, ${key}`);
    const believed = model(campaign, found);
    prior.forEach((share, c) => near(believed.prior[c], share, `prior of class ${c}`));
    likelihoods.forEach((rows, i) =>
      rows.forEach((row, v) =>
        row.forEach((share, c) => near(believed.tables[i][v][c], share, `table ${i}, ${v}, ${c}`)),
      ),
    );
    const { people, held_out, features, label } = tableOf(table);
    near(accuracy(believed, peopleIn(held_out)), rest.accuracy, "accuracy");
    const open = learned(
      peopleIn(people),
      features.map(({ values }) => values.length),
      label.values.length,
    );
    near(accuracy(open, peopleIn(held_out)), rest.without_privacy, "accuracy without privacy");
  });
}

test("every setting of every dial has a campaign, which promises what the dial says", () => {
  for (const table of tables) {
    assert.equal(Object.keys(table.documents).length, EPSILONS.length * (1 + DEVICES.length));
    for (const epsilon of EPSILONS) {
      const local = campaignOf(table, `local ${epsilon}`);
      assert.equal(local.privacy.epsilon, epsilon);
      for (const devices of DEVICES) {
        const { crowd, epsilon: alone } = campaignOf(table, `${devices} ${epsilon}`).privacy;
        assert.deepEqual([crowd.epsilon, crowd.devices], [epsilon, devices]);
        assert.ok(alone >= epsilon);
      }
    }
  }
});

test("as many people answer as the page says, and others are held out", () => {
  for (const { people, held_out } of tables) {
    assert.equal(
      people.reduce((sum, [, number]) => sum + number, 0),
      DEVICES.at(-1),
    );
    assert.ok(held_out.reduce((sum, [, number]) => sum + number, 0) > 160);
  }
});

test("no answer moves the odds between two truths by more than exp(epsilon), and one comes near it", () => {
  for (const table of tables) {
    for (const epsilon of EPSILONS) {
      for (const question of campaignOf(table, `local ${epsilon}`).questions) {
        const before = Array(question.domain_size).fill(1 / question.domain_size);
        const after = afterAnswer(before, question, 0);
        const most = Math.max(...after.map((share, cell) => after[0] / share / (before[0] / before[cell])));
        assert.ok(most <= Math.exp(epsilon) * (1 + 1e-12) && most > 0.999 * Math.exp(epsilon));
        const [, high] = sureness(before[0], epsilon);
        assert.ok(after[0] <= high + 1e-12);
      }
    }
  }
});

test("a liar says the last class, whatever is true, and moves each number by no more than is said of one", () => {
  const table = tableOf("sleep");
  const campaign = campaignOf(table, "local 1");
  const seed = hmac(utf8("seed"), utf8("liars"));
  const options = { from: 0, to: 100, seed };
  const [honest, lied] = [0, 20].map((liars) => answers(campaign, peopleOf(table), { ...options, liars }));
  const last = (counts) => counts.flatMap((row) => row.filter((_, cell) => cell % 2)).reduce((a, b) => a + b);
  assert.ok(last(lied.counts) > last(honest.counts));
  assert.deepEqual(lied.n, honest.n);
  const [before, after] = [honest, lied].map(({ n, counts }) => estimate(campaign, n, counts));
  before.questions.forEach(({ cells, perLiar }, i) =>
    cells.value.forEach((value, cell) =>
      assert.ok(Math.abs(value - after.questions[i].cells.value[cell]) <= 20 * perLiar),
    ),
  );
});

test("liars move estimates as far as is said of them, where everybody's noise falls as expected", () => {
  for (const table of tables) {
    const campaign = campaignOf(table, "local 1");
    const classes = table.label.values.length;
    const truths = campaign.questions.map((question) => truthIn(table, question));
    const expected = (share) =>
      campaign.questions.map((question, i) => {
        const { p, q } = lawOf(question);
        const said = (cell) => (cell % classes === classes - 1 ? classes / question.domain_size : 0);
        return truths[i].map((one, cell) => 1e6 * ((1 - share) * (q + (p - q) * one) + share * said(cell)));
      });
    const n = campaign.questions.map(() => 1e6);
    const [honest, lied] = [0, 0.2].map((share) => estimate(campaign, n, expected(share)));
    campaign.questions.forEach((question, i) =>
      liarsMove(question, truths[i], classes, 0.2).forEach((move, cell) =>
        near(lied.questions[i].cells.value[cell] - honest.questions[i].cells.value[cell], move, "a move"),
      ),
    );
  }
});

test("with each more answer the truth's chance rises on average, and the first step is what Bayes' theorem gives", () => {
  const table = tableOf("sleep");
  for (const epsilon of EPSILONS) {
    for (const question of campaignOf(table, `local ${epsilon}`).questions) {
      const before = truthIn(table, question);
      const found = onAverage(before, question, 1, [0, 1, 5, 10, 20, 50], 4000);
      near(found[0], before[1], "before any answer");
      for (const [i, one] of found.slice(1).entries()) assert.ok(one >= found[i] - 1e-12, `${epsilon}: ${found}`);
      const { p, q } = lawOf(question);
      const exact = before
        .map((_, answer) => (answer === 1 ? p : q) * afterAnswer(before, question, answer)[1])
        .reduce((a, b) => a + b);
      assert.ok(Math.abs(found[1] - exact) < 0.02);
    }
  }
});

test("the coin's law adds up to one", () => {
  for (const question of campaignOf(tableOf("tumour"), "local 2").questions) {
    const { p, q } = lawOf(question);
    assert.ok(Math.abs(p + (question.domain_size - 1) * q - 1) < 1e-12);
  }
  assert.ok(accuracy(alwaysTheSame(tableOf("sleep")), peopleIn(tableOf("sleep").held_out)) > 0.5);
});

test("the page is the same at every build, says everything, fetches nothing, and takes 120 kB at most", async () => {
  const first = await page();
  for (const [name, text] of Object.entries(first))
    assert.equal(readFileSync(new URL(`../dist/try/${name}`, import.meta.url), "utf8"), text);
  assert.deepEqual(Object.keys(first), ["index.html", "try.css", "try.js"]);
  assert.doesNotMatch(first["index.html"], /<!--|undefined|\bNaN\b|style=|https?:/);
  assert.doesNotMatch(first["try.css"], /@import|url\(/);
  const bytes = Object.values(first).map((text) => gzipSync(text, { level: 9 }).length);
  assert.ok(bytes.reduce((a, b) => a + b) < MOST_BYTES, `${bytes}`);
});
