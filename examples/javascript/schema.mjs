// The authored part of a campaign document, as strictly as protocols/document/schema.py reads it: what is asked about,
// with which privacy settings. Every number that is written as an integer may be written 1, 1.0 or 1e0.
import { checkModel } from "./classifier.mjs";
import { composed } from "./record.mjs";
import { Refusal } from "./refusal.mjs";

export const MOST_WEIGHT = 65536;
export const MOST_CELLS = 65536;
const MOST_RELEASE = 2 ** 40;
const MOST_CAMPAIGN_CELLS = 2 ** 18;
const MOST_FEATURES = 1000;
const MOST_VALUES = 16384;

export function must(right, problem) {
  if (!right) throw new Refusal("invalid-document", problem);
}

export const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
export const whole = (value, least, most) => Number.isInteger(value) && value >= least && value <= most;
const distinct = (values) => new Set(values).size === values.length;
const isList = (value, least, most) => Array.isArray(value) && value.length >= least && value.length <= most;
const given = (value, otherwise) => value ?? otherwise; // null and an absent key are one

// Control characters, ends of lines, marks of writing direction, and halves of a surrogate pair.
const NOT_TEXT = /[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]/u;
const isText = (value, longest = 200) =>
  typeof value === "string" && [...value].length <= longest && !NOT_TEXT.test(value);
const BLANK = /^[^\S\ufeff]*$/u; // Python's white space is JavaScript's without the byte order mark
export const isName = (value) => isText(value) && !BLANK.test(value);
const areTexts = (values, least, most) =>
  isList(values, least, most) && values.every((value) => isText(value) && value !== "") && distinct(values.map(composed));

/** The members of an object: those required, and those that may be absent or null; no other. */
export function keys(value, place, required, optional = []) {
  must(isObject(value), `${place} must be an object`);
  for (const key of Object.keys(value)) must([...required, ...optional].includes(key), `${place}.${key}: unknown key`);
  for (const key of required) must(key in value, `${place}.${key} is missing`);
}

function ulp(x) { // the distance to the next double
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, Math.abs(x));
  view.setBigUint64(0, view.getBigUint64(0) + 1n);
  return view.getFloat64(0) - Math.abs(x);
}

export const isGaussian = (feature) => feature.kind === "continuous" && feature.bins == null;
export const sizeOf = (feature) => feature.values?.length ?? feature.bins;

function checkFeature(feature, place, k) {
  if (feature?.kind === "categorical") {
    keys(feature, place, ["name", "kind", "values"], ["weight"]);
    must(areTexts(feature.values, 2, MOST_VALUES) && feature.values.length * k <= MOST_CELLS, `${place}.values`);
  } else {
    keys(feature, place, ["name", "kind", "low", "high"], ["bins", "weight"]);
    must(feature.kind === "continuous", `${place}.kind`);
    const { low, high, bins } = feature;
    must(Number.isFinite(low) && Number.isFinite(high) && low < high, `${place}.low`);
    must(high - low >= 1e-150 && high - low <= 1e150, `${place}.high`);
    must(bins == null || whole(bins, 2, MOST_VALUES), `${place}.bins`);
    must(bins == null || (high - low) / bins >= 4 * ulp(Math.max(Math.abs(low), Math.abs(high))), `${place}.bins`);
    must((bins ?? 2) * k <= MOST_CELLS, `${place}.bins`);
  }
  must(isName(feature.name) && whole(given(feature.weight, 1), 1, MOST_WEIGHT), `${place}.name or weight`);
}

function checkOrigin(projection, study) { // public data; or a private round, its study and its epsilon
  const { fitted_on: origin, fitted_study: round, fitted_epsilon: epsilon } = projection;
  must(isName(origin), "projection.fitted_on");
  if (origin === "public") return must(round == null && epsilon == null, "projection.fitted_study or fitted_epsilon");
  must(/^[A-Za-z0-9_-]{43}$/.test(origin), "projection.fitted_on");
  must(isName(round) && Number.isFinite(epsilon) && epsilon > 0, "projection.fitted_study or fitted_epsilon");
  return must(study != null, "study must be named where the projection comes from a private round");
}

/** The input features of the projection, in its order. */
function checkProjection({ projection, features, label, study }, k) {
  if (projection == null) return [];
  const required = ["method", "inputs", "mean", "scale", "matrix", "outputs", "fitted_on"];
  keys(projection, "projection", required, ["fitted_study", "fitted_epsilon"]);
  const { method, mean, scale, matrix, outputs } = projection;
  must(["pca", "dca"].includes(method), "projection.method");
  must(areTexts(projection.inputs, 1, MOST_FEATURES), "projection.inputs");
  const inputs = projection.inputs.map((name) => features.find((feature) => feature.name === name));
  must(inputs.every((input) => input?.kind === "continuous"), "projection.inputs");
  const isRow = (numbers) => isList(numbers, inputs.length, inputs.length) && numbers.every(Number.isFinite);
  must(isRow(mean) && isRow(scale) && scale.every((s) => s > 0), "projection.mean or scale");
  must(isList(outputs, 1, inputs.length), "projection.outputs");
  outputs.forEach((output, i) => {
    checkFeature(output, `projection.outputs[${i}]`, k);
    must(output.kind === "continuous", `projection.outputs[${i}].kind`);
  });
  must(isList(matrix, outputs.length, outputs.length) && matrix.every(isRow), "projection.matrix");
  must(matrix.every((row) => row.some((factor) => factor !== 0)), "projection.matrix: a row of zeros");
  const largest = inputs.map(({ low, high }, i) =>
    Math.max(Math.abs(low - mean[i]), Math.abs(high - mean[i])) / scale[i]);
  const reaches = matrix.map((row) => row.reduce((sum, factor, i) => sum + Math.abs(factor) * largest[i], 0));
  must(reaches.every(Number.isFinite), "projection.matrix: beyond a double");
  must(distinct([label, ...features, ...outputs].map(({ name }) => name)), "projection.outputs: names");
  checkOrigin(projection, study);
  return inputs;
}

function isInstant(text) { // 2027-01-01T00:00:00Z, a time that exists
  if (typeof text !== "string" || !/^(?!0000)\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/.test(text)) return false;
  const time = new Date(text);
  return !Number.isNaN(time.getTime()) && time.toISOString() === text.replace("Z", ".000Z");
}

function checkPrivacy(privacy) {
  keys(privacy, "privacy", ["epsilon"], ["answers", "discrete", "continuous", "theta", "xor", "release_every"]);
  const { epsilon, theta, release_every: every } = privacy;
  must(typeof given(privacy.xor, true) === "boolean", "privacy.xor");
  must(Number.isFinite(epsilon) && epsilon > 0, "privacy.epsilon");
  must(theta == null || (Number.isFinite(theta) && theta > 0 && theta <= 1), "privacy.theta");
  must(every == null || whole(every, 2, MOST_RELEASE), "privacy.release_every");
  const choices = {
    answers: ["one", "all"],
    discrete: ["auto", "de", "sue", "oue", "she", "the", "ss"],
    continuous: ["auto", "laplace", "onebit", "sign"],
  };
  for (const [name, known] of Object.entries(choices)) {
    must(known.includes(given(privacy[name], known[0])), `privacy.${name}`);
  }
}

const described = ({ name, kind, values, low, high, bins }) =>
  JSON.stringify([name, kind === "gaussian" ? "continuous" : kind, values, low, high, bins ?? null]);

/** The models of an evaluation round: of its label, about nothing but its features. */
function checkCandidates({ candidates, features, label }) {
  must(isList(candidates, 2, 8), "candidates");
  const declared = new Set(features.map(described));
  for (const [i, candidate] of candidates.entries()) {
    const place = `candidates[${i}]`;
    keys(candidate, place, ["name", "model"]);
    must(isName(candidate.name), `${place}.name`);
    const { model } = candidate;
    checkModel(model, (problem) => new Refusal("invalid-document", `${place}.model: ${problem}`));
    const right = model.label === label.name && JSON.stringify(model.classes) === JSON.stringify(label.classes);
    must(right, `${place}.model: another label`);
    const outputs = (model.projection?.outputs ?? []).map(({ name }) => name);
    const inputs = (model.projection?.features ?? []).filter(({ name }) => model.projection.inputs.includes(name));
    const used = [...model.features.filter(({ name }) => !outputs.includes(name)), ...inputs];
    must(used.every((feature) => declared.has(described(feature))), `${place}.model: features`);
  }
  must(distinct(candidates.map(({ name }) => name)), "candidates: names");
}

/** Checks all but the questions. Returns the projection's inputs and the features that questions are about. */
export function checkAuthored(document) {
  const required = ["version", "title", "label", "features", "privacy", "questions"];
  keys(document, "document", required, ["purpose", "projection", "asks", "candidates", "study", "opens", "closes"]);
  const { label, features, privacy, study, opens, closes } = document;
  must(document.version === 1 && isName(document.title), "version or title");
  must(isText(given(document.purpose, ""), 2000), "purpose");
  keys(label, "label", ["name", "classes"], ["weight"]);
  must(isName(label.name) && areTexts(label.classes, 2, 1024), "label.name or classes");
  must(whole(given(label.weight, 1), 0, MOST_WEIGHT), "label.weight");
  const k = label.classes.length;
  must(isList(features, 1, MOST_FEATURES), "features");
  features.forEach((feature, i) => checkFeature(feature, `features[${i}]`, k));
  must(distinct([label.name, ...features.map((feature) => feature.name)]), "features: names");
  checkPrivacy(privacy);
  must(study == null || isName(study), "study");
  must([opens, closes].every((time) => time == null || isInstant(time)), "opens or closes");
  must(opens == null || closes == null || opens < closes, "closes must be later than opens");
  const inputs = checkProjection(document, k);
  const asked = [...features.filter((feature) => !inputs.includes(feature)), ...(document.projection?.outputs ?? [])];
  const values = asked.reduce((sum, feature) => sum + (isGaussian(feature) ? 4 : sizeOf(feature)), 0);
  must((values + 1) * k <= MOST_CAMPAIGN_CELLS, "features: too many cells");
  const asks = given(document.asks, "model");
  must(["model", "moments", "score"].includes(asks), "asks");
  if (asks === "score") {
    must(document.projection == null && study != null, "an evaluation round's projection or study");
    must(given(privacy.answers, "one") === "one", "an evaluation round's answers");
    must(["auto", "de"].includes(given(privacy.discrete, "auto")), "an evaluation round's mechanism");
    checkCandidates(document);
  } else must(document.candidates == null, "candidates are for evaluation rounds");
  if (asks === "moments") {
    must(features.every((feature) => feature.kind === "continuous"), "a moments round's features");
    must(document.projection == null, "a moments round's projection");
    must(given(privacy.answers, "one") === "one" && study != null, "a moments round's answers or study");
    must(privacy.release_every == null, "a moments round's releases");
  }
  return { inputs, asked };
}
