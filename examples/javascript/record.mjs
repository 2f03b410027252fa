// What a record holds, as numbers and indices: read alike by the encoder and by the classifier, by the rules of
// docs/values.md. Numbers are doubles, in the order of operations written here. Nothing throws: what cannot be read is missing.

const NUMERAL = /^[ \t]*[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?[ \t]*$/i;
const LONGEST_TEXT = 200; // of a declared one
const TRUTH_VALUES = { 1: ["true", "True"], 0: ["false", "False"] }; // other names, where the digit is not declared
export const clip = (x, low, high) => Math.min(Math.max(x, low), high);
export const composed = (text) => text.normalize("NFC");

/** What a record holds under a name. */
export function held(record, name) {
  try {
    return record[name];
  } catch {
    return undefined;
  }
}

/** The number of a value, infinities included; NaN for anything else. */
export function numberOf(value) {
  if (["number", "bigint", "boolean"].includes(typeof value)) return Number(value);
  if (typeof value !== "string" || value.length > LONGEST_TEXT) return NaN;
  return NUMERAL.test(value) ? Number(value.trim()) : NaN;
}

function plain(text) { // a double below 1 may be written 1.5e-7
  const [, sign, whole, fraction = "", zeros] = text.match(/^(-?)(\d)(?:\.(\d+))?e-(\d+)$/) ?? [];
  return zeros === undefined ? text : `${sign}0.${"0".repeat(zeros - 1)}${whole}${fraction}`;
}

/** The text that a value is compared by; null where it has none. */
export function textOf(value) {
  if (typeof value === "string") return composed(value);
  if (typeof value === "boolean") return String(Number(value));
  const whole = typeof value === "bigint" || Number.isInteger(value);
  if (!whole && !Number.isFinite(value)) return null;
  const text = whole ? String(BigInt(value)) : plain(String(value));
  return text.replace(whole ? "-" : "", "").length > LONGEST_TEXT ? null : text;
}

/** The position of the declared text that a value means; -1 for anything else. */
export function position(value, texts) {
  const text = textOf(value);
  const found = [text, ...(TRUTH_VALUES[text] ?? [])].map((name) => texts.findIndex((declared) => composed(declared) === name));
  return found.find((index) => index >= 0) ?? -1;
}

/** The index of a discrete feature's value: null where the record holds none and `missing` is not declared. */
export function valueIndex(feature, value) {
  if (feature.kind === "categorical") {
    const found = position(value, feature.values);
    const index = found < 0 ? feature.values.indexOf("missing") : found;
    return index < 0 ? null : index;
  }
  const number = numberOf(value);
  if (Number.isNaN(number)) return null;
  let bin = 0; // equal widths, half-open
  while (bin + 1 < feature.bins && number >= feature.low + ((feature.high - feature.low) * (bin + 1)) / feature.bins) bin++;
  return bin;
}

/** Output `row` of a projection: (x - mean) / scale of the clipped inputs, added from left to right. */
export function project({ matrix, mean, scale }, inputs, row, values) {
  return inputs.reduce(
    (total, { low, high }, i) => total + matrix[row][i] * ((clip(values[i], low, high) - mean[i]) / scale[i]), 0);
}
