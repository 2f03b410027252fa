import { add } from "../values.js";
import type { Model } from "./model.js";
import { best, scoresOf } from "./scores.js";

/** What a model says of records. A feature without a usable value does not take part. */
export class Decisions {
  constructor(readonly model: Model) {}

  /** ln P(class) + sum of ln P(value | class) over the features, per class; ln P(class) where every class is impossible. */
  scores(record: unknown): number[] {
    return scoresOf(this.model, record);
  }

  /** The most probable class; of equals the first declared. Where every class is impossible, by the prior. */
  predict(record: unknown): string {
    return this.model.classes[best(this.scores(record))]!;
  }

  /** P(class | record), by class. Where every class is impossible, the prior. */
  predictProba(record: unknown): Record<string, number> {
    const scores = this.scores(record);
    const shares = scores.map((score) => Math.exp(score - Math.max(...scores)));
    const total = shares.reduce(add);
    return Object.fromEntries(this.model.classes.map((name, c) => [name, shares[c]! / total]));
  }
}
