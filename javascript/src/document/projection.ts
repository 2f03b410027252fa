// The check of a projection.
import { among, areTexts, check, distinct, isAbsent, isList, isName, isPositive, isRow, like } from "./checks.js";
import type { Feature } from "../features.js";
import { isFeature, isNumber, MOST_FEATURES, nameOf } from "./schema.js";

/** The input features of the projection, in its order. */
export function checkProjection(projection: any, { features, label, study }: any): Feature[] {
  const { fitted_on, inputs: names, mean, scale, outputs } = projection;
  const fitted = fitted_on !== "public";
  const m = names?.length;
  let inputs: any[] = [];
  /** What an output can be at most, which must be a double. */
  const reach = (row: number[]): number =>
    row.reduce((sum, factor, i) => {
      const { low, high } = inputs[i];
      return sum + Math.abs(factor) * (Math.max(Math.abs(low - mean[i]), Math.abs(high - mean[i])) / scale[i]);
    }, 0);
  check(projection, {
    method: among("pca dca"),
    inputs: (list) =>
      areTexts(list, 1, MOST_FEATURES) &&
      (inputs = list.map((name) => features.find((feature: Feature) => feature.name === name))).every(isNumber),
    mean: (row) => isRow(row, m),
    scale: (row) => isRow(row, m, isPositive),
    outputs: (list) =>
      isList(list, 1, m, isFeature(label.classes.length)) &&
      list.every(isNumber) &&
      distinct([label, ...features, ...list].map(nameOf)),
    matrix: (rows) =>
      isList(
        rows,
        outputs.length,
        outputs.length,
        (row) => isRow(row, m) && row.some(Number) && Number.isFinite(reach(row)),
      ),
    fitted_on: (origin) => !fitted || (like(/^[\w-]{43}$/)(origin) && study != null),
    fitted_study: fitted ? isName : isAbsent,
    fitted_epsilon: fitted ? isPositive : isAbsent,
  });
  return inputs;
}
