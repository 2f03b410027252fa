// What a model says of a record: the same numbers as the aggregator's NaiveBayes.
import { clip, held, numberOf, project, rowOf, valueIndex } from "../values.js";
import type { Model } from "./model.js";

/** A projection's output is computed, a missing input standing at its mean. */
function valueOf({ projection }: Model, name: string, record: unknown): unknown {
  const row = rowOf(projection, name);
  if (!row) return held(record, name);
  const { inputs, features, mean } = projection!;
  const numbers = inputs.map((input) => numberOf(held(record, input)));
  if (numbers.every(Number.isNaN)) return undefined;
  const bounds = inputs.map((input) => features.find((feature) => feature.name === input)!);
  return project(
    projection!,
    row,
    bounds,
    numbers.map((number, i) => (Number.isNaN(number) ? mean[i]! : number)),
  );
}

/** ln P(class) + sum of weight ln P(value | class) over the features that the record has a value of, per class. */
export function scoresOf(model: Model, record: unknown): number[] {
  let sums = model.prior.map(Math.log);
  for (const feature of model.features) {
    const value = valueOf(model, feature.name, record);
    const x =
      feature.kind === "gaussian" ? clip(numberOf(value), feature.low, feature.high) : valueIndex(feature, value);
    if (Number.isNaN(x)) continue;
    sums = sums.map(
      (sum, c) =>
        sum +
        (feature.weight ?? 1) *
          (feature.kind === "gaussian"
            ? (Math.log(2 * Math.PI * feature.variance[c]!) + (x - feature.mean[c]!) ** 2 / feature.variance[c]!) / -2
            : Math.log(feature.likelihood[x]![c]!)),
    );
  }
  return sums;
}

/** The scores; where every class is impossible, those of the prior alone. */
export function possible(model: Model, record: unknown): number[] {
  const scores = scoresOf(model, record);
  return Math.max(...scores) > -Infinity ? scores : model.prior.map(Math.log);
}

/** The most probable class; of equals the first declared. */
export function predict(model: Model, record: unknown): string {
  const scores = possible(model, record);
  return model.classes[scores.indexOf(Math.max(...scores))]!;
}
