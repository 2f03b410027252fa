// What a record holds, as numbers and indices: read alike by the encoder and by the classifier. Numbers are doubles, in
// the order of operations written here.

export const isNumber = (x) => typeof x === "number" && !Number.isNaN(x);
export const clip = (x, low, high) => Math.min(Math.max(x, low), high);

/** The position of a declared text; a whole number matches its decimal digits. -1 for anything else. */
export function position(value, texts) {
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
export function project({ matrix, mean, scale }, inputs, row, values) {
  return inputs.reduce(
    (total, { low, high }, i) => total + matrix[row][i] * ((clip(values[i], low, high) - mean[i]) / scale[i]), 0);
}
