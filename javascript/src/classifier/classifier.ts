// Classifying on the device: the same numbers as the aggregator's NaiveBayes.
import { clip, held, numberOf, project, rowOf, valueIndex } from "../values.js";
import { add, parseModel, type Model } from "./model.js";

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

/** Classifies records with a published model. A feature without a usable value does not take part. */
export class Classifier {
  constructor(readonly model: Model) {}

  /** Throws LdpError `invalid-model`. */
  static fromJson(text: string): Classifier {
    return new Classifier(parseModel(text));
  }

  /** ln P(class) + sum of w ln P(value | class) over the features, per class; w is the feature's weight. */
  scores(record: unknown): number[] {
    const { weights } = this.model;
    let sums = this.model.prior.map(Math.log);
    this.model.features.forEach((feature, j) => {
      const value = valueOf(this.model, feature.name, record);
      const weight = weights ? weights[j]! : 1;
      const x =
        feature.kind === "gaussian" ? clip(numberOf(value), feature.low, feature.high) : valueIndex(feature, value);
      if (!weight || Number.isNaN(x)) return; // 0 times a logarithm of 0 is nothing, too
      sums = sums.map(
        (sum, c) =>
          sum +
          weight *
            (feature.kind === "gaussian"
              ? (Math.log(2 * Math.PI * feature.variance[c]!) + (x - feature.mean[c]!) ** 2 / feature.variance[c]!) / -2
              : Math.log(feature.likelihood[x]![c]!)),
      );
    });
    return sums;
  }

  /** The most probable class; of equals the first declared. Where every class is impossible, by the prior. */
  predict(record: unknown): string {
    const scores = this.possible(record);
    return this.model.classes[scores.indexOf(Math.max(...scores))]!;
  }

  /** P(class | record), by class. Where every class is impossible, the prior. */
  predictProba(record: unknown): Record<string, number> {
    const scores = this.possible(record);
    const shares = scores.map((score) => Math.exp(score - Math.max(...scores)));
    const total = shares.reduce(add);
    return Object.fromEntries(this.model.classes.map((name, c) => [name, shares[c]! / total]));
  }

  private possible(record: unknown): number[] {
    const scores = this.scores(record);
    return Math.max(...scores) > -Infinity ? scores : this.model.prior.map(Math.log);
  }
}
