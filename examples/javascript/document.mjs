// A campaign document as a device must read it: strictly, and with its privacy loss recomputed in integers.
import { createHash } from "node:crypto";
import { cellBound, indexWidth } from "./encoder.mjs";
import { Refusal } from "./refusal.mjs";
import { checkAuthored, isGaussian, isName, isObject, keys, must, sizeOf, whole } from "./schema.mjs";
import { MOST_CELLS } from "./schema.mjs";

const LOG_UNIT = 1n << 128n; // a logarithm is an integer L and means L / 2^128
const LARGEST_DOCUMENT = 4 << 20;
const MOST_PRODUCTS = 8192; // questions about two features, in a round of moments
const MOST_DRAWN = 2 ** 30; // weight of one question
const MOST_QUESTIONS = 2 * 1000 + 1 + MOST_PRODUCTS;
const KINDS = ["label", "pair", "xor", "marginal", "value", "square", "product", "score"];
const KNOWN = {
  index: ["de", "ss", "oue", "sue", "the", "she"],
  sign: ["de", "ss", "oue", "sue", "the"],
  moment: ["onebit", "laplace"],
};
const PARAMETERS = { de: ["p"], ss: ["w", "p"], onebit: ["p"], she: ["scale"], laplace: ["grid", "scale"] };
const parametersOf = (name) => PARAMETERS[name] ?? ["p", "q"];

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

/** Cells of a question of this shape; undefined for a shape that does not exist. */
function cells({ kind, encoding }, feature, k, moments) {
  if (!feature) return kind === "label" && encoding === "index" ? k : undefined;
  const perValue = { sign: 2, moment: 1 }[encoding];
  if (moments) return { value: k, product: 1 }[kind] * perValue || undefined;
  if (isGaussian(feature)) return (kind === "value" || kind === "square") && perValue ? k * perValue : undefined;
  if (encoding !== "index") return undefined;
  if (kind === "pair") return sizeOf(feature) * k;
  return (kind === "xor" || kind === "marginal") && sizeOf(feature) === 2 && k === 2 ? 2 : undefined;
}

function checkQuestion(question, index, campaign) {
  const place = `questions[${index}]`;
  const named = ["kind", "group", "encoding", "mechanism", "domain_size", "epsilon", "weight", "parameters"];
  keys(question, place, named, ["feature", "other"]);
  const { kind, group, encoding, mechanism, feature, other } = question;
  must(KINDS.includes(kind) && Object.hasOwn(KNOWN, encoding), `${place}.kind or encoding`);
  must([feature, other].every((name) => name == null || isName(name)), `${place}.feature or other`);
  must(whole(question.weight, 1, MOST_DRAWN), `${place}.weight`);
  must(whole(group, 0, campaign.asked.length + MOST_PRODUCTS), `${place}.group`);
  must(isName(mechanism) && Number.isFinite(question.epsilon) && isObject(question.parameters), `${place}: types`);
  const find = (name) => campaign.asked.find((one) => one.name === name);
  const scores = campaign.asks === "score";
  if (scores) {
    must(kind === "score" && group < campaign.candidates.length && !feature && !other, `${place}.kind`);
  } else if (kind === "product") {
    must(find(feature) && find(other) && group > campaign.asked.length, `${place}.other`);
  } else {
    must(group <= campaign.asked.length && other == null, `${place}.group`);
    must((group ? campaign.asked[group - 1].name : null) === (feature ?? null), `${place}.feature`);
  }
  const shaped = () => cells(question, find(feature), campaign.label.classes.length, campaign.asks === "moments");
  const wanted = !scores ? shaped() : encoding === "index" ? 2 : undefined;
  must(question.domain_size === wanted && wanted <= MOST_CELLS, `${place}.domain_size`);
  if (!Object.values(KNOWN).flat().includes(mechanism)) throw new Refusal("unknown-mechanism");
  must(KNOWN[encoding].includes(mechanism), `${place}.mechanism`);
  return { ...question, index, parameters: readParameters(question) };
}

/** The numbers of a mechanism, each a text or a number in the document: probabilities and scales as BigInt. */
function readParameters({ mechanism, domain_size: d, parameters }) {
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
  for (const name of ["grid", "w"]) if (name in read) read[name] = Number(read[name]);
  return read;
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

/** The worst-case log likelihood ratio of a question, a fraction, rounded up: proved in protocols/document/verification.py. */
function loss({ mechanism, domain_size: d, parameters }) {
  const known = [mechanism, d, ...Object.entries(parameters).flat()].join();
  if (losses.has(known)) return losses.get(known);
  const { p, q } = parameters;
  const [w, others] = [BigInt(parameters.w ?? 0), BigInt(d - 1)];
  const one = 1n << 64n;
  let found;
  if (parameters.scale) {
    found = [1n << BigInt(41 + (parameters.grid ?? 0)), parameters.scale];
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
  must(bytes.length <= LARGEST_DOCUMENT, "too long");
  const document = strictJson(bytes, (problem) => new Refusal("invalid-document", problem));
  const { inputs, asked } = checkAuthored(document);
  const { epsilon } = document.privacy;
  const answers = document.privacy.answers ?? "one";
  const campaign = { ...document, id: hash, inputs, asked, privacy: { ...document.privacy, answers } };
  const { questions } = document;
  must(Array.isArray(questions) && questions.length > 0 && questions.length <= MOST_QUESTIONS, "questions");
  const groups = new Map();
  campaign.questions = questions.map((question, index) => {
    const read = checkQuestion(question, index, campaign);
    if (!(read.epsilon > 0 && within(loss(read), read.epsilon))) throw new Refusal("loss-above-epsilon");
    const members = groups.get(read.group) ?? groups.set(read.group, []).get(read.group);
    must(members.every((member) => member.kind !== read.kind), "a question stands twice");
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
