// A campaign document as a device must read it: strictly, and with its privacy loss recomputed in integers.
import { createHash } from "node:crypto";
import { cellBound, indexWidth } from "./encoder.mjs";
import { composed } from "./record.mjs";
import { Refusal } from "./refusal.mjs";

const LOG_UNIT = 1n << 128n; // a logarithm is an integer L and means L / 2^128
const KNOWN = {
  index: ["de", "ss", "oue", "sue", "the", "she"],
  sign: ["de", "ss", "oue", "sue", "the"],
  moment: ["onebit", "laplace"],
};
const PARAMETERS = { de: ["p"], ss: ["w", "p"], onebit: ["p"], she: ["scale"], laplace: ["grid", "scale"] };
const parametersOf = (name) => PARAMETERS[name] ?? ["p", "q"];

function must(right, problem) {
  if (!right) throw new Refusal("invalid-document", problem);
}

/** JSON in UTF-8 without repeated keys and without numbers beyond a double, which JSON.parse lets pass. */
export function strictJson(bytes, refuse) {
  let value;
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    value = JSON.parse(text, (_, member) => {
      if (typeof member === "number" && !Number.isFinite(member)) throw new Error("a number beyond a double");
      return member;
    });
    const open = [];
    for (const [token, string, colon] of text.matchAll(/("(?:[^"\\]|\\.)*")(\s*:)?|[{}[\]]/g)) {
      if (token === "{" || token === "[") open.push(new Set());
      else if (token === "}" || token === "]") open.pop();
      else if (colon) {
        if (open.at(-1).has(JSON.parse(string))) throw new Error(`the key ${string} stands twice`);
        open.at(-1).add(JSON.parse(string));
      }
    }
  } catch (error) {
    throw refuse(error.message);
  }
  return value;
}

const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
const whole = (value, least, most) => Number.isInteger(value) && value >= least && value <= most;
const isText = (value) => typeof value === "string" && value.length > 0;
const distinct = (values) => new Set(values).size === values.length;

function keys(value, place, required, optional = []) {
  must(isObject(value), `${place} must be an object`);
  for (const key of Object.keys(value)) must([...required, ...optional].includes(key), `${place}.${key}: unknown key`);
  for (const key of required) must(key in value, `${place}.${key} is missing`);
}

function checkFeature(feature, place, k) {
  if (feature?.kind === "categorical") {
    keys(feature, place, ["name", "kind", "values"], ["weight"]);
    const { values } = feature;
    must(Array.isArray(values) && values.length >= 2 && values.every(isText) && distinct(values.map(composed)), `${place}.values`);
    must(values.length * k <= 65536, `${place}.values: too many`);
  } else {
    keys(feature, place, ["name", "kind", "low", "high"], ["bins", "weight"]);
    must(feature.kind === "continuous", `${place}.kind`);
    must(Number.isFinite(feature.low) && Number.isFinite(feature.high) && feature.low < feature.high, `${place}.low`);
    must(feature.bins == null || (whole(feature.bins, 2, 16384) && feature.bins * k <= 65536), `${place}.bins`);
  }
  must(isText(feature.name) && whole(feature.weight ?? 1, 1, 65536), `${place}.name or weight`);
}

function checkProjection(document, k) {
  const { projection } = document;
  if (projection == null) return [];
  keys(projection, "projection", ["method", "inputs", "mean", "scale", "matrix", "outputs", "fitted_on"]);
  const inputs = projection.inputs.map((name) => document.features.find((feature) => feature.name === name));
  must(inputs.every((input) => input?.kind === "continuous") && distinct(projection.inputs), "projection.inputs");
  const row = (numbers) => numbers.length === inputs.length && numbers.every(Number.isFinite);
  must(row(projection.mean) && row(projection.scale) && projection.scale.every((s) => s > 0), "projection.scale");
  must(projection.matrix.length === projection.outputs.length && projection.matrix.every(row), "projection.matrix");
  projection.outputs.forEach((output, i) => checkFeature(output, `projection.outputs[${i}]`, k));
  return inputs;
}

/** Cells of a question of this shape; undefined for a shape that does not exist. */
function cells({ kind, encoding }, feature, k, moments) {
  if (!feature) return kind === "label" && encoding === "index" ? k : undefined;
  const perValue = { sign: 2, moment: 1 }[encoding];
  if (moments) return { value: k, product: 1 }[kind] * perValue || undefined;
  if (feature.kind === "continuous" && feature.bins == null) return (kind === "value" || kind === "square") && perValue ? k * perValue : undefined;
  return kind === "pair" && encoding === "index" ? (feature.values?.length ?? feature.bins) * k : undefined;
}

function checkQuestion(question, index, campaign) {
  const place = `questions[${index}]`;
  const named = ["kind", "group", "encoding", "mechanism", "domain_size", "epsilon", "weight", "parameters"];
  keys(question, place, named, ["feature", "other"]);
  must(whole(question.weight, 1, 65536) && whole(question.group, 0, 65536), `${place}.weight or group`);
  must(isObject(question.parameters) && question.epsilon > 0, `${place}.parameters or epsilon`);
  const find = (name) => campaign.asked.find((feature) => feature.name === name);
  if (question.kind === "product") {
    must(find(question.feature) && find(question.other) && question.group > campaign.asked.length, `${place}.other`);
  } else {
    must(question.group <= campaign.asked.length && question.other == null, `${place}.group`);
    must((question.group ? campaign.asked[question.group - 1].name : null) === (question.feature ?? null), `${place}.feature`);
  }
  const wanted = cells(question, find(question.feature), campaign.label.classes.length, campaign.asks === "moments");
  must(question.domain_size === wanted, `${place}.domain_size`);
  if (!Object.values(KNOWN).flat().includes(question.mechanism)) throw new Refusal("unknown-mechanism");
  must(KNOWN[question.encoding].includes(question.mechanism), `${place}.mechanism`);
  checkParameters(question);
}

function checkParameters({ mechanism, domain_size: d, parameters }) {
  const right = (condition) => {
    if (!condition) throw new Refusal("invalid-parameters");
  };
  const names = parametersOf(mechanism);
  right(Object.keys(parameters).length === names.length);
  const read = Object.fromEntries(names.map((name) => {
    const value = parameters[name];
    right(typeof value === "string" ? /^[1-9][0-9]{0,39}$/.test(value) : Number.isSafeInteger(value) && value > 0);
    return [name, BigInt(value)];
  }));
  for (const name of ["p", "q"]) right(read[name] === undefined || read[name] < 1n << 64n);
  const cellsOf = BigInt(d);
  if (mechanism === "de") right(read.p * cellsOf > 1n << 64n);
  if (mechanism === "ss") right(read.w < cellsOf && read.p * cellsOf > read.w << 64n);
  if (mechanism === "onebit") right(read.p > 1n << 63n);
  if (names.includes("q")) right(read.p > read.q);
  if (names.includes("scale")) right((read.grid ?? 0n) <= 12n && cellBound({ parameters: read }) < 1n << 31n);
}

/** A lower bound of exp(x), x >= 0, as an integer over 2^128: every term of the series is rounded down. */
function expDown(x) {
  let [term, sum] = [LOG_UNIT, LOG_UNIT];
  for (let i = 1n; term > 0n; i++) sum += term = (term * x) / (LOG_UNIT * i);
  return sum;
}

/** An upper bound of ln(a / b) for a >= b: the least x whose exp certainly reaches it. */
function logUp(a, b) {
  let [low, high] = [0n, 128n * LOG_UNIT];
  while (low < high) {
    const middle = (low + high) / 2n;
    if (expDown(middle) * b >= a * LOG_UNIT) high = middle;
    else low = middle + 1n;
  }
  return low;
}

const losses = new Map();

/** The worst-case log likelihood ratio of a question as a fraction, rounded up; protocols/document/verify.py has the proofs. */
function loss({ mechanism, domain_size: d, parameters }) {
  const known = JSON.stringify([mechanism, d, parameters]);
  if (losses.has(known)) return losses.get(known);
  const [p, q, w, others] = [BigInt(parameters.p ?? 0), BigInt(parameters.q ?? 0), BigInt(parameters.w ?? 0), BigInt(d - 1)];
  const one = 1n << 64n;
  let found;
  if (parameters.scale) {
    found = [1n << BigInt(41 + (parameters.grid ?? 0)), BigInt(parameters.scale)];
  } else if (mechanism === "de") found = [logUp(p * others, one - p), LOG_UNIT];
  else if (mechanism === "ss") found = [logUp(p * (BigInt(d) - w), (one - p) * w), LOG_UNIT];
  else if (mechanism === "onebit") found = [logUp(p, one - p), LOG_UNIT];
  else found = [logUp(p * (one - q), q * (one - p)), LOG_UNIT];
  losses.set(known, found);
  return found;
}

/** Whether a loss is certainly at most epsilon: the lesser of its decimal text and its double. */
function within([numerator, denominator], epsilon) {
  const [mantissa, exponent] = epsilon.toExponential().split("e");
  const digits = mantissa.replace(".", "");
  const power = Number(exponent) - (digits.length - 1);
  const decimal = [BigInt(digits) * 10n ** BigInt(Math.max(power, 0)), 10n ** BigInt(Math.max(-power, 0))];
  let [scaled, parts] = [epsilon, 1n];
  for (; !Number.isInteger(scaled); scaled *= 2) parts *= 2n;
  return [decimal, [BigInt(scaled), parts]].every(([n, m]) => numerator * m <= n * denominator);
}

/** The campaign of these document bytes; `id`, where it is known, must be their hash. Throws Refusal. */
export function parseDocument(bytes, id = null) {
  const hash = createHash("sha256").update(bytes).digest("base64url");
  if (id !== null && id !== hash) throw new Refusal("wrong-hash");
  const document = strictJson(bytes, (problem) => new Refusal("invalid-document", problem));
  const required = ["version", "title", "label", "features", "privacy", "questions"];
  keys(document, "document", required, ["purpose", "projection", "asks", "study", "opens", "closes"]);
  must(document.version === 1 && isText(document.title), "version or title");
  keys(document.label, "label", ["name", "classes"], ["weight"]);
  const { classes } = document.label;
  must(Array.isArray(classes) && classes.length >= 2 && classes.every(isText) && distinct(classes.map(composed)), "label.classes");
  must(Array.isArray(document.features) && document.features.length > 0, "features");
  document.features.forEach((feature, i) => checkFeature(feature, `features[${i}]`, classes.length));
  keys(document.privacy, "privacy", ["epsilon"], ["answers", "discrete", "continuous", "theta"]);
  const { epsilon, answers = "one" } = document.privacy;
  must(Number.isFinite(epsilon) && epsilon > 0 && ["one", "all"].includes(answers), "privacy");
  const inputs = checkProjection(document, classes.length);
  const asked = [...document.features.filter((feature) => !inputs.includes(feature)), ...(document.projection?.outputs ?? [])];
  must(distinct([document.label.name, ...document.features.map((f) => f.name), ...(document.projection?.outputs ?? []).map((f) => f.name)]), "names");
  const campaign = { ...document, id: hash, inputs, asked, privacy: { ...document.privacy, answers } };
  must(Array.isArray(document.questions) && document.questions.length > 0, "questions");
  const groups = new Map();
  campaign.questions = document.questions.map((question, index) => {
    checkQuestion(question, index, campaign);
    if (!within(loss(question), question.epsilon)) throw new Refusal("loss-above-epsilon");
    const members = groups.get(question.group) ?? groups.set(question.group, []).get(question.group);
    must(members.every((member) => member.kind !== question.kind), "a question stands twice");
    const read = { ...question, index };
    members.push(read);
    return read;
  });
  campaign.groups = [...groups.values()];
  const larger = ([a, b], [c, d]) => (a * d > c * b ? [a, b] : [c, d]);
  const sum = ([a, b], [c, d]) => [a * d + c * b, b * d];
  const worst = campaign.groups.map((members) => members.map(loss).reduce(larger));
  const total = worst.reduce(answers === "all" ? sum : larger);
  if (!within(total, epsilon)) throw new Refusal("loss-above-epsilon");
  return campaign;
}

/** Bytes of a question's payloads. */
export function width({ mechanism, domain_size: d }) {
  if (mechanism === "de") return indexWidth(d);
  if (mechanism === "onebit") return indexWidth(d) + 1;
  return mechanism === "she" || mechanism === "laplace" ? 4 * d : Math.ceil(d / 8);
}
