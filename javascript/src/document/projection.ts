// A projection: its check, and its outputs of a record.
import { held, numberOf, project, rowOf } from "../values.js";
import {
  among,
  areTexts,
  check,
  distinct,
  isAbsent,
  isList,
  isName,
  isPositive,
  isRow,
  isText,
  must,
} from "./checks.js";
import { checkFeatures, isOpen, MOST_FEATURES, nameOf } from "./schema.js";
import type { ContinuousFeature, Feature, Projection } from "./types.js";

/**
 * The output of this name, where there is one; NaN without any input. A missing input stands at its mean, or where it is
 * to be complete `missing` draws from [-1, 1] in its place, over its bounds.
 */
export type Projected = (name: string, record: unknown, missing: () => number) => number | undefined;

export const projected =
  (projection: Projection, inputs: readonly ContinuousFeature[]): Projected =>
  (name, record, missing) => {
    const row = rowOf(projection, name);
    if (!row) return undefined;
    const numbers = inputs.map((input) => numberOf(held(record, input.name)));
    if (numbers.every(Number.isNaN)) return NaN;
    const values = numbers.map((number, i) => {
      const { low, high } = inputs[i]!;
      if (!Number.isNaN(number)) return number;
      return isOpen(inputs[i]) ? projection.mean[i]! : low + (missing() + 1) * ((high - low) / 2);
    });
    return project(projection, row, inputs, values);
  };

/** The input features of the projection, in its order. */
export function checkProjection({ projection, features, label, study }: any): ContinuousFeature[] {
  const fitted = projection.fitted_on !== "public";
  const find = (name: string): any => features.find((feature: Feature) => feature.name === name);
  const m = projection.inputs?.length;
  check(projection, "projection", {
    method: among("pca dca"),
    inputs: (names) => areTexts(names, 1, MOST_FEATURES) && names.every((name) => find(name)?.kind === "continuous"),
    mean: (mean) => isRow(mean, m),
    scale: (scale) => isRow(scale, m) && scale.every(isPositive),
    outputs: (outputs) => isList(outputs, 1, m),
    matrix: (matrix) => isList(matrix, 1, m) && matrix.every((row) => isRow(row, m) && row.some(Number)),
    fitted_on: (origin) => !fitted || (isText(origin) && /^[\w-]{43}$/.test(origin) && study != null),
    fitted_study: fitted ? isName : isAbsent,
    fitted_epsilon: fitted ? isPositive : isAbsent,
  });
  const { outputs, matrix, mean, scale } = projection;
  checkFeatures(outputs, "projection.outputs", label.classes.length, true);
  const inputs = projection.inputs.map(find);
  const farthest = inputs.map(
    ({ low, high }: any, i: number) => Math.max(Math.abs(low - mean[i]), Math.abs(high - mean[i])) / scale[i],
  );
  const reach = (row: number[]): number => row.reduce((sum, factor, i) => sum + Math.abs(factor) * farthest[i], 0);
  must(matrix.length === outputs.length && matrix.map(reach).every(Number.isFinite), "projection.matrix");
  must(distinct([label, ...features, ...outputs].map(nameOf)), "projection.outputs.name");
  return inputs;
}
