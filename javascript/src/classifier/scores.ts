// What a model says of a record: the same numbers as the aggregator's NaiveBayes.
import { valueIndex } from "../features.js";
import { clip, numberOf, valueOf } from "../values.js";
import type { Model } from "./model.js";

/** ln P(class) + sum of ln P(value | class) over the features that the record has a value of, per class; where every class is impossible, ln P(class). */
export function scoresOf(model: Model, record: unknown): number[] {
  let sums = model.prior.map(Math.log);
  for (const feature of model.features) {
    const value = valueOf(record, feature.name, model.projection, model.projection?.features ?? []);
    const x = "mean" in feature ? clip(numberOf(value), feature.low, feature.high) : valueIndex(feature, value);
    if (isNaN(x)) continue;
    sums = sums.map(
      (sum, c) =>
        sum +
        ("mean" in feature
          ? (Math.log(2 * Math.PI * feature.variance[c]!) + (x - feature.mean[c]!) ** 2 / feature.variance[c]!) / -2
          : Math.log(feature.likelihood[x]![c]!)),
    );
  }
  return Math.max(...sums) > -Infinity ? sums : model.prior.map(Math.log);
}

/** The index of the largest score; of equals the first. */
export const best = (scores: readonly number[]): number => scores.indexOf(Math.max(...scores));
