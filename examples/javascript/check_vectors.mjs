// Runs every test vector:   node examples/javascript/check_vectors.mjs protocols/vectors
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { parseModel, predict, scores } from "./classifier.mjs";
import { Coins } from "./coins.mjs";
import { parseDocument } from "./document.mjs";
import { drawQuestions, encodeUpload, perturb } from "./encoder.mjs";
import { numberOf, position, textOf, valueIndex } from "./record.mjs";
import { count, decodeUpload } from "./server.mjs";

const folder = process.argv[2] ?? "protocols/vectors";
const read = (name) => JSON.parse(readFileSync(`${folder}/${name}.json`, "utf8"));
const hex = (text) => Buffer.from(text, "hex");
const scripted = (words, taken = { count: 0 }) => new Coins(() => {
  assert(taken.count < words.length, "more words were asked for than scripted");
  return BigInt(`0x${words[taken.count++]}`);
});
const checked = {};
function check(kind, name, test) {
  try {
    test();
  } catch (error) {
    error.message = `${kind} (${name}): ${error.message}`;
    throw error;
  }
  checked[kind] = (checked[kind] ?? 0) + 1;
}
const refuses = (code, action) => assert.throws(action, (error) => error.code === code || assert.fail(`${code}, not ${error.code ?? error}`));

const values = read("values");
const double = (text) => Number(text.replace("inf", "Infinity"));
const types = { integer: BigInt, double }; // of those that JSON has not
values.cases.forEach(({ value: written, text, number }, i) => {
  const [type, ...more] = Object.keys(Object(written));
  const named = typeof written === "object" && more.length === 0 && ["integer", "double", "decimal", "fraction"].includes(type);
  if (named && !types[type]) return; // JavaScript has no decimals and no fractions
  const value = named ? types[type](written[type]) : written;
  check("values", `${i}: ${JSON.stringify(written)}`, () => {
    assert.equal(textOf(value), text);
    assert.equal(numberOf(value), typeof number === "string" ? double(number) : number ?? NaN);
    for (const feature of values.features) assert.equal(valueIndex(feature, value), feature.indices[i]);
    const found = position(value, values.label.classes);
    assert.equal(found < 0 ? null : found, values.label.indices[i]);
  });
});

const documents = read("documents");
const campaigns = {};
for (const { name, document, id } of documents.accepted) {
  check("documents", name, () => {
    campaigns[name] = parseDocument(Buffer.from(document), id);
    assert.equal(campaigns[name].id, id);
  });
}
for (const { name, document, like } of documents.alike) {
  check("documents alike", name, () => {
    assert.deepEqual(parseDocument(Buffer.from(document)).questions, campaigns[like].questions);
  });
}
for (const { name, document, id, code } of documents.refused) {
  check("documents refused", name, () => refuses(code, () => parseDocument(Buffer.from(document), id)));
}

const reports = read("reports");
for (const { document, secret, questions } of reports.draws) {
  check("draws", document, () => {
    assert.deepEqual(drawQuestions(campaigns[document], hex(secret)).map(({ index }) => index), questions);
  });
}
for (const { document, secret, record, label, words, reports: wanted, upload } of reports.accepted) {
  check("reports", document, () => {
    const taken = { count: 0 };
    const made = perturb(campaigns[document], record, label, hex(secret), scripted(words, taken));
    const shown = ({ question, item, id, payload }) => ({
      question,
      item: typeof item === "number" ? item : { cell: item.cell, value: String(item.value) },
      id: id.toString("hex"),
      payload: payload.toString("hex"),
    });
    assert.deepEqual(made.map(shown), wanted);
    assert.equal(encodeUpload(made).toString("hex"), upload);
    assert.equal(taken.count, words.length);
  });
}
for (const { document, record, label, code } of reports.refused) {
  const asked = () => perturb(campaigns[document], record, label, Buffer.alloc(32), scripted([]));
  check("records refused", JSON.stringify([record, label]), () => refuses(code, asked));
}

const uploads = read("uploads");
for (const { name, upload, code } of uploads.malformed) {
  check("uploads refused", name, () => refuses(code, () => decodeUpload(hex(upload), campaigns[uploads.document])));
}
for (const { document, upload, code } of uploads.impossible) {
  check("reports refused", upload, () => {
    const [report] = decodeUpload(hex(upload), campaigns[document]);
    refuses(code, () => count(campaigns[document].questions[report.question], report.payload, []));
  });
}

const training = read("training");
for (const { document, upload, n, counts, model, predictions } of training.accepted) {
  check("tallies", document, () => {
    const tally = counts.map((cells) => cells.map(() => 0));
    const answered = n.map(() => 0);
    for (const { question, payload } of decodeUpload(hex(upload), campaigns[document])) {
      count(campaigns[document].questions[question], payload, tally[question]);
      answered[question]++;
    }
    assert.deepEqual([answered, tally], [n, counts]);
  });
  const parsed = parseModel(Buffer.from(model));
  for (const { record, scores: wanted, class: name } of predictions) {
    check("predictions", document, () => {
      scores(parsed, record).forEach((score, c) => assert(Math.abs(score - wanted[c]) <= 1e-9 * Math.abs(wanted[c]), "score"));
      assert.equal(predict(parsed, record), name);
    });
  }
}
const weighted = parseModel(Buffer.from(training.weighted.model));
for (const { record, scores: wanted, class: name } of training.weighted.predictions) {
  check("predictions by weight", JSON.stringify(record), () => {
    scores(weighted, record).forEach((score, c) => assert(Math.abs(score - wanted[c]) <= 1e-9 * Math.abs(wanted[c]), "score"));
    assert.equal(predict(weighted, record), name);
  });
}
const strict = parseModel(Buffer.from(training.impossible.model));
for (const { record, class: name } of training.impossible.predictions) {
  check("predictions of the impossible", JSON.stringify(record), () => assert.equal(predict(strict, record), name));
}
for (const { name, model, code } of training.refused) {
  check("models refused", name, () => refuses(code, () => parseModel(Buffer.from(model))));
}
console.log(JSON.stringify(checked));
