// The reference encoder: from a record to the bytes of an upload, in plain JavaScript without packages.
// It reproduces every test vector of protocols/vectors; README.md there says what each step must do.
// Probabilities and 64-bit words are BigInt; a value t in [-1, 1] is an integer V and means V / 2^52.
import { createHmac } from "node:crypto";
import { Coins, keyedWords } from "./coins.mjs";
import { predict } from "./classifier.mjs";
import { clip, held, numberOf, position, project, valueIndex } from "./record.mjs";
import { Refusal } from "./refusal.mjs";
import { sizeOf } from "./schema.mjs";

const UNIT = 2 ** 52;

// --- mechanisms: from an item, an index or { cell, value }, to a payload ---

export const indexWidth = (d) => (d <= 256 ? 1 : d <= 65536 ? 2 : 4);

function littleEndian(value, width) {
  return Buffer.from(Array.from({ length: width }, (_, place) => Math.floor(value / 256 ** place) % 256));
}

function bitmap(indices, d) {
  const bytes = Buffer.alloc(Math.ceil(d / 8));
  for (const index of indices) bytes[index >> 3] |= 1 << (index & 7);
  return bytes;
}

/** The largest magnitude of a noisy cell: the unit and 16 scales of noise. */
export function cellBound({ parameters: { grid = 0, scale } }) {
  return (1n << BigInt(grid)) + ((16n * BigInt(scale) + (1n << 40n) - 1n) >> 40n);
}

function noisyVector(question, item, value, coins) { // `value` in cell `item`, 0 elsewhere, and noise everywhere
  let [numerator, denominator] = [BigInt(question.parameters.scale), 1n << 40n];
  while (numerator % 2n === 0n && denominator > 1n) [numerator, denominator] = [numerator / 2n, denominator / 2n];
  const bound = cellBound(question);
  const payload = Buffer.alloc(4 * question.domain_size);
  for (let cell = 0; cell < question.domain_size; cell++) {
    const noisy = (cell === item ? value : 0n) + coins.laplace(numerator, denominator);
    payload.writeInt32LE(Number(noisy > bound ? bound : noisy < -bound ? -bound : noisy), 4 * cell);
  }
  return payload;
}

function unary({ domain_size: d, parameters: { p, q } }, item, coins) {
  const words = Array.from({ length: d }, () => coins.next());
  return bitmap(words.flatMap((word, i) => (word < BigInt(i === item ? p : q) ? [i] : [])), d);
}

const skipping = (item) => (other) => (other < item ? other : other + 1); // indices of the d - 1 others

const mechanisms = {
  sue: unary,
  oue: unary,
  the: unary,
  de({ domain_size: d, parameters: { p } }, item, coins) {
    return littleEndian(coins.bernoulli(BigInt(p)) ? item : skipping(item)(coins.index(d - 1)), indexWidth(d));
  },
  ss({ domain_size: d, parameters: { p, w } }, item, coins) {
    const included = coins.bernoulli(BigInt(p));
    const others = coins.subset(d - 1, w - included).map(skipping(item));
    return bitmap(included ? [...others, item] : others, d);
  },
  she: (question, item, coins) => noisyVector(question, item, 1n, coins),
  laplace(question, { cell, value }, coins) {
    const cut = BigInt(52 - question.parameters.grid);
    const roundsUp = coins.bernoulli(BigInt.asUintN(Number(cut), value) << (64n - cut));
    return noisyVector(question, cell, (value >> cut) + BigInt(roundsUp), coins);
  },
  onebit({ domain_size: d, parameters }, { cell, value }, coins) {
    const highest = BigInt(parameters.p);
    const lowest = (1n << 64n) - highest;
    const drawn = coins.index(d);
    const rise = ((highest - lowest) * ((drawn === cell ? value : 0n) + BigInt(UNIT))) >> 53n;
    return Buffer.concat([littleEndian(drawn, indexWidth(d)), Buffer.from([coins.bernoulli(lowest + rise)])]);
  },
};

// --- encoding: from a record to an item ---

const randomT = (coins) => (Number(coins.below(2n ** 53n + 1n)) - UNIT) / UNIT; // in place of a missing number
const featureOf = (campaign, name) => campaign.asked.find((feature) => feature.name === name);

function valueOf(campaign, name, record, coins) { // the record's own, or the output of a projection
  const row = campaign.projection?.outputs.findIndex((output) => output.name === name) ?? -1;
  if (row < 0) return held(record, name);
  const values = campaign.inputs.map(({ name: input, low, high }) => {
    const number = numberOf(held(record, input));
    return Number.isNaN(number) ? low + (randomT(coins) + 1) * ((high - low) / 2) : number;
  });
  return project(campaign.projection, campaign.inputs, row, values);
}

function scaled(campaign, name, record, coins) { // to [-1, 1]
  const { low, high } = featureOf(campaign, name);
  const number = numberOf(valueOf(campaign, name, record, coins));
  return Number.isNaN(number) ? randomT(coins) : clip(2 * ((clip(number, low, high) - low) / (high - low)) - 1, -1, 1);
}

function encode(campaign, question, record, classIndex, coins) {
  const [{ kind, feature: name, other }, { classes }] = [question, campaign.label];
  if (kind === "label") return classIndex;
  if (kind === "score") return +(predict(campaign.candidates[question.group].model, record) === classes[classIndex]);
  if (question.encoding === "index") {
    const feature = featureOf(campaign, name);
    const index = valueIndex(feature, valueOf(campaign, name, record, coins)) ?? coins.index(sizeOf(feature));
    if (kind === "pair") return index * classes.length + classIndex;
    return kind === "xor" ? index ^ classIndex : index;
  }
  let t = scaled(campaign, name, record, coins);
  if (kind === "square" || other === name) t = 2 * (t * t) - 1;
  else if (kind === "product") t *= scaled(campaign, other, record, coins);
  const cell = kind === "product" ? 0 : classIndex;
  const value = BigInt(Math.trunc(t * UNIT));
  return question.encoding === "moment" ? { cell, value } : 2 * cell + coins.bernoulli((value + BigInt(UNIT)) << 11n);
}

// --- the device ---

const slotOf = (campaign, group) => littleEndian(campaign.privacy.answers === "all" ? group : 0, 4);

function draw(questions, coins) {
  let ticket = coins.index(questions.reduce((sum, question) => sum + question.weight, 0));
  return questions.find((question) => (ticket -= question.weight) < 0);
}

/** The questions of the device with this secret: the same at every call, whatever failed after the last one. */
export function drawQuestions(campaign, secret) {
  if (secret?.length !== 32) throw new Refusal("invalid-secret", "a device secret is 32 random bytes");
  const pools = campaign.privacy.answers === "all" ? campaign.groups : [campaign.questions];
  return pools.map((questions) =>
    draw(questions, new Coins(keyedWords(secret, "question", campaign.id, slotOf(campaign, questions[0].group)))));
}

/** The reports of one device: what it is asked is its secret's, and the record is read only where it is asked about. */
export function perturb(campaign, record, label, secret, coins = new Coins()) {
  const classIndex = position(label, campaign.label.classes);
  if (classIndex < 0) throw new Refusal("undeclared-label");
  if (typeof record !== "object" || record === null || Array.isArray(record)) throw new Refusal("not-a-record");
  return drawQuestions(campaign, secret).map((question) => {
    const item = encode(campaign, question, record, classIndex, coins);
    const message = [campaign.id, slotOf(campaign, question.group)];
    const id = message.reduce((hash, part) => hash.update(part), createHmac("sha256", secret)).digest().subarray(0, 16);
    return { question: question.index, item, id, payload: mechanisms[question.mechanism](question, item, coins) };
  });
}

// --- the upload: canonical msgpack ---

function head(value, short, codes) { // one byte, or a code and a big-endian number of 1, 2 or 4 bytes: the least
  if (value < short.below) return Buffer.from([short.code + value]);
  const size = [1, 2, 4].find((width, i) => codes[i] && value < 256 ** width);
  const bytes = Buffer.alloc(1 + size, codes[size >> 1]);
  bytes.writeUIntBE(value, 1, size);
  return bytes;
}
const integer = (value) => head(value, { below: 128, code: 0 }, [0xcc, 0xcd, 0xce]);
const binary = (bytes) => Buffer.concat([head(bytes.length, { below: 0 }, [0xc4, 0xc5, 0xc6]), bytes]);
const array = (members) =>
  Buffer.concat([head(members.length, { below: 16, code: 0x90 }, [0, 0xdc, 0xdd]), ...members]);

/** [1, [[question, ids, payloads], ...]] in increasing order of the questions. */
export function encodeUpload(reports) {
  const numbers = [...new Set(reports.map((report) => report.question))].sort((a, b) => a - b);
  const blocks = numbers.map((number) => {
    const members = reports.filter((report) => report.question === number);
    const joined = (name) => binary(Buffer.concat(members.map((report) => report[name])));
    return array([integer(number), joined("id"), joined("payload")]);
  });
  return array([integer(1), array(blocks)]);
}
