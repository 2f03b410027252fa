// From a record to the bytes of an upload: the device's whole job, in plain JavaScript without packages.
// It reproduces every test vector of protocols/vectors; see README.md there for what each step must do.
// Probabilities and 64-bit words are BigInt; a record's numbers are doubles, in the order of operations written here.
import { createHmac, randomFillSync } from "node:crypto";

const UNIT = 2 ** 52; // a value in [-1, 1] is an integer V and means V / 2^52

/** What a device, or a server, must not accept; `code` is the stable name of the reason. */
export class Refusal extends Error {
  constructor(code, problem = code) {
    super(problem);
    this.code = code;
  }
}

/** Random decisions out of 64-bit words; without `next` the words come from the operating system. */
export class Coins {
  constructor(next = () => randomFillSync(new BigUint64Array(1))[0]) {
    this.next = next;
  }
  bernoulli(probability) { // probability / 2^64
    return this.next() < probability;
  }
  below(bound) { // uniform in [0, bound), by rejection, never by modulo
    if (bound === 1n) return 0n;
    const bits = (bound - 1n).toString(2).length;
    for (;;) {
      let value = 0n;
      for (let shift = 0; shift < bits; shift += 64) value |= this.next() << BigInt(shift);
      value = BigInt.asUintN(bits, value);
      if (value < bound) return value;
    }
  }
  index(bound) {
    return Number(this.below(BigInt(bound)));
  }
  subset(population, size) { // Floyd's algorithm
    const chosen = new Set();
    for (let last = population - size; last < population; last++) {
      const candidate = this.index(last + 1);
      chosen.add(chosen.has(candidate) ? last : candidate);
    }
    return chosen;
  }
  laplace(numerator, denominator) { // Canonne, Kamath, Steinke 2020, Algorithm 2; the fraction in lowest terms
    for (;;) {
      const offset = this.below(numerator);
      if (!this.bernoulliExp(offset, numerator)) continue;
      let periods = 0n;
      while (this.bernoulliExp(1n, 1n)) periods++;
      const magnitude = (offset + numerator * periods) / denominator;
      const negative = this.below(2n) === 1n;
      if (!(negative && magnitude === 0n)) return negative ? -magnitude : magnitude;
    }
  }
  bernoulliExp(numerator, denominator) { // Algorithm 1
    let trials = 1n;
    while (this.below(denominator * trials) < numerator) trials++;
    return trials % 2n === 1n;
  }
}

export const indexWidth = (d) => (d <= 256 ? 1 : d <= 65536 ? 2 : 4);

function littleEndian(value, width) {
  return Buffer.from(Array.from({ length: width }, (_, place) => Math.floor(value / 256 ** place) % 256));
}

function bitmap(indices, d) {
  const bytes = Buffer.alloc(Math.ceil(d / 8));
  for (const index of indices) bytes[index >> 3] |= 1 << (index & 7);
  return bytes;
}

/** The largest magnitude of a noisy cell: the unit and 48 scales of noise. */
export function cellBound(question) {
  const { grid = 0, scale } = question.parameters;
  return (1n << BigInt(grid)) + ((48n * BigInt(scale) + (1n << 40n) - 1n) >> 40n);
}

function noisyVector(question, cells, coins) {
  let [numerator, denominator] = [BigInt(question.parameters.scale), 1n << 40n];
  while (numerator % 2n === 0n && denominator > 1n) [numerator, denominator] = [numerator / 2n, denominator / 2n];
  const bound = cellBound(question);
  const payload = Buffer.alloc(4 * cells.length);
  cells.forEach((cell, place) => {
    const noisy = cell + coins.laplace(numerator, denominator);
    payload.writeInt32LE(Number(noisy > bound ? bound : noisy < -bound ? -bound : noisy), 4 * place);
  });
  return payload;
}

function unary(question, item, coins) {
  const { p, q } = question.parameters;
  const words = Array.from({ length: question.domain_size }, () => coins.next());
  const set = words.flatMap((word, i) => (word < BigInt(i === item ? p : q) ? [i] : []));
  return bitmap(set, question.domain_size);
}

const mechanisms = {
  de({ domain_size: d, parameters }, item, coins) {
    if (coins.bernoulli(BigInt(parameters.p))) return littleEndian(item, indexWidth(d));
    const other = coins.index(d - 1);
    return littleEndian(other < item ? other : other + 1, indexWidth(d));
  },
  sue: unary,
  oue: unary,
  the: unary,
  ss({ domain_size: d, parameters }, item, coins) {
    const included = coins.bernoulli(BigInt(parameters.p));
    const others = [...coins.subset(d - 1, parameters.w - included)].map((other) => (other < item ? other : other + 1));
    return bitmap(included ? [...others, item] : others, d);
  },
  she(question, item, coins) {
    return noisyVector(question, Array.from({ length: question.domain_size }, (_, i) => BigInt(i === item)), coins);
  },
  laplace(question, { cell, value }, coins) {
    const cut = BigInt(52 - question.parameters.grid);
    const rounded = (value >> cut) + BigInt(coins.bernoulli(BigInt.asUintN(Number(cut), value) << (64n - cut)));
    const cells = Array.from({ length: question.domain_size }, (_, i) => (i === cell ? rounded : 0n));
    return noisyVector(question, cells, coins);
  },
  onebit({ domain_size: d, parameters }, { cell, value }, coins) {
    const highest = BigInt(parameters.p);
    const lowest = (1n << 64n) - highest;
    const drawn = coins.index(d);
    const rise = ((highest - lowest) * ((drawn === cell ? value : 0n) + BigInt(UNIT))) >> 53n;
    return Buffer.concat([littleEndian(drawn, indexWidth(d)), Buffer.from([coins.bernoulli(lowest + rise)])]);
  },
};

const clip = (x, { low, high }) => Math.min(Math.max(x, low), high);
const isNumber = (x) => typeof x === "number" && !Number.isNaN(x);
const randomT = (coins) => (Number(coins.below(2n ** 53n + 1n)) - UNIT) / UNIT;

/** The position of a declared text; a whole number matches its decimal digits. -1 for anything else. */
function position(value, texts) {
  return texts.indexOf(Number.isInteger(value) ? String(value) : value);
}

/** The index of a discrete feature's value: null where the record holds none and `missing` is not declared. */
export function valueIndex(feature, value) {
  if (feature.kind === "categorical") {
    const found = position(value, feature.values);
    const index = found < 0 ? feature.values.indexOf("missing") : found;
    return index < 0 ? null : index;
  }
  if (!isNumber(value)) return null;
  let bin = 0; // equal widths, half-open
  while (bin + 1 < feature.bins && value >= feature.low + ((feature.high - feature.low) * (bin + 1)) / feature.bins) bin++;
  return bin;
}

/** Output `row` of a projection: (x - mean) / scale of the clipped inputs, added from left to right. */
export function project(projection, inputs, row, values) {
  return inputs.reduce((total, input, i) =>
    total + projection.matrix[row][i] * ((clip(values[i], input) - projection.mean[i]) / projection.scale[i]), 0);
}

function asked(campaign, name, record, coins) { // the record's value of a feature that is asked about
  const row = campaign.projection?.outputs.findIndex((output) => output.name === name) ?? -1;
  if (row < 0) return record[name];
  const values = campaign.inputs.map((input) => {
    const number = record[input.name];
    return isNumber(number) ? number : input.low + (randomT(coins) + 1) * ((input.high - input.low) / 2);
  });
  return project(campaign.projection, campaign.inputs, row, values);
}

function scaled(campaign, name, record, coins) { // in [-1, 1]; uniformly random where the record holds no number
  const feature = campaign.asked.find((one) => one.name === name);
  const number = asked(campaign, name, record, coins);
  if (!isNumber(number)) return randomT(coins);
  return Math.min(Math.max(2 * ((clip(number, feature) - feature.low) / (feature.high - feature.low)) - 1, -1), 1);
}

function encode(campaign, question, record, classIndex, coins) {
  if (question.kind === "label") return classIndex;
  const k = campaign.label.classes.length;
  if (question.kind === "pair") {
    const feature = campaign.asked.find((one) => one.name === question.feature);
    const index = valueIndex(feature, asked(campaign, question.feature, record, coins));
    return (index ?? coins.index(feature.values?.length ?? feature.bins)) * k + classIndex;
  }
  let t = scaled(campaign, question.feature, record, coins);
  if (question.kind === "square" || question.other === question.feature) t = 2 * (t * t) - 1;
  else if (question.kind === "product") t *= scaled(campaign, question.other, record, coins);
  const cell = question.kind === "product" ? 0 : classIndex;
  const value = BigInt(Math.trunc(t * UNIT));
  return question.encoding === "moment" ? { cell, value } : 2 * cell + coins.bernoulli((value + BigInt(UNIT)) << 11n);
}

function draw(questions, coins) {
  let ticket = coins.index(questions.reduce((sum, question) => sum + question.weight, 0));
  return questions.find((question) => (ticket -= question.weight) < 0);
}

/** The reports of one device: questions are drawn first, and the record is read only where it is asked about. */
export function perturb(campaign, record, label, secret, coins = new Coins()) {
  const classIndex = typeof label === "boolean" ? -1 : position(label, campaign.label.classes);
  if (classIndex < 0) throw new Refusal("undeclared-label");
  const all = campaign.privacy.answers === "all";
  const drawn = (all ? campaign.groups : [campaign.questions]).map((questions) => draw(questions, coins));
  return drawn.map((question) => {
    const item = encode(campaign, question, record, classIndex, coins);
    const slot = littleEndian(all ? question.group : 0, 4);
    const id = createHmac("sha256", secret).update(campaign.id).update(slot).digest().subarray(0, 16);
    return { question: question.index, item, id, payload: mechanisms[question.mechanism](question, item, coins) };
  });
}

function packed(prefixes, value) { // the shortest msgpack head: a code byte and a big-endian number
  const width = value < 256 && prefixes[0] ? 1 : value < 65536 ? 2 : 4;
  const head = Buffer.alloc(1 + width, prefixes[width >> 1]);
  head.writeUIntBE(value, 1, width);
  return head;
}
const integer = (value) => (value < 128 ? Buffer.from([value]) : packed([0xcc, 0xcd, 0xce], value));
const binary = (bytes) => Buffer.concat([packed([0xc4, 0xc5, 0xc6], bytes.length), bytes]);
const array = (members) =>
  Buffer.concat([members.length < 16 ? Buffer.from([0x90 | members.length]) : packed([0, 0xdc, 0xdd], members.length), ...members]);

/** [1, [[question, ids, payloads], ...]] in increasing order of the questions, canonical msgpack. */
export function encodeUpload(reports) {
  const blocks = new Map();
  for (const report of [...reports].sort((a, b) => a.question - b.question)) {
    const block = blocks.get(report.question) ?? blocks.set(report.question, [[], []]).get(report.question);
    block[0].push(report.id);
    block[1].push(report.payload);
  }
  const body = [...blocks].map(([question, members]) =>
    array([integer(question), ...members.map((parts) => binary(Buffer.concat(parts)))]));
  return array([integer(1), array(body)]);
}
