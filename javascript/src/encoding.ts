// What a question may look like, and what a record answers: ldp_client/answering.py.
import { best, scoresOf } from "./classifier/scores.js";
import type { Campaign, Question } from "./document/types.js";
import { placesOf } from "./document/evaluation.js";
import { cellsOf, isGaussian, isOpen } from "./document/schema.js";
import type { Coins } from "./exact/coins.js";
import { sizeOf, span, valueIndex, type Feature } from "./features.js";
import { UNIT, type Moment } from "./mechanisms/mechanism.js";
import { clip, numberOf, valueOf, type Bounds } from "./values.js";

export const featureOf = ({ asked }: Pick<Campaign, "asked">, name: string | null | undefined): Feature | undefined =>
  asked.find((feature) => feature.name === name);

/** The cells of a question of this shape; nothing that a document could say for a shape that does not exist. */
export function domainOf(campaign: Pick<Campaign, "asked" | "label" | "asks" | "evaluation">, question: any): unknown {
  const { encoding } = question;
  const [feature, other] = [question.feature, question.other].map((name) => featureOf(campaign, name));
  const cells = shapesOf(campaign, encoding, feature, other)[question.kind]!;
  const open = [feature, other].some((one) => one && isOpen(one));
  if (encoding === "sign") return cells * (open ? 3 : 2); // a third place where something may be missing
  return open && encoding === "moment" ? NaN : cells; // a moment has none, and is not asked for then
}

/** The cells of each kind of question that asks for these features in this encoding. */
function shapesOf(
  { label, asks, evaluation }: Pick<Campaign, "label" | "asks" | "evaluation">,
  encoding: string,
  feature?: Feature,
  other?: Feature,
): Record<string, number> {
  const k = label.classes.length;
  const moments = asks === "moments";
  const number = feature && (moments || isGaussian(feature));
  if (encoding !== "index") {
    if (!number) return {};
    return other ? { product: moments ? 1 : NaN } : { value: k, square: moments ? NaN : k };
  }
  if (evaluation) return { right: 2, score: placesOf(evaluation) * k };
  if (other) return { joint: number || isGaussian(other) || k > 1 ? NaN : cellsOf(feature!) * cellsOf(other) }; // without a label alone
  if (feature) return { pair: number ? NaN : cellsOf(feature) * k };
  return { label: k > 1 ? k : NaN };
}

/** What a record of class `label` answers, before the mechanism. */
export function itemOf(
  campaign: Campaign,
  { kind, encoding, feature, other, domain_size: d }: Question,
  record: unknown,
  label: number,
  coins: Coins,
): number | Moment {
  const { evaluation } = campaign;
  const k = campaign.label.classes.length;
  /** A uniformly random multiple of 2^-52 in [-1, 1], in place of a missing number. */
  const randomT = (): number => (Number(coins.below(2n ** 53n + 1n)) - UNIT) / UNIT;
  const read = (name: string): unknown =>
    valueOf(record, name, campaign.projection, campaign.features, (input) =>
      isOpen(input) ? undefined : input.low + (randomT() + 1) * (span(input) / 2),
    );
  /** T = 2 (x - low) / (high - low) - 1 of a number, x clipped; where it is missing NaN, or random if none may be. */
  const scaled = (name: string): number => {
    const found = featureOf(campaign, name) as Feature & Bounds;
    const { low, high } = found;
    const number = numberOf(read(name));
    if (isNaN(number)) return isOpen(found) ? NaN : randomT();
    return clip(2 * ((clip(number, low, high) - low) / (high - low)) - 1, -1, 1);
  };

  if (evaluation) {
    // Where the score lies, with the class; a missing value takes no part, as whenever the model is used.
    const scores = scoresOf(evaluation.model, record);
    const said = best(scores);
    if (kind === "right") return Number(said === label);
    const odds = scores[1]! - scores[0]!;
    return (evaluation.edges ? evaluation.edges.filter((edge) => odds > edge).length : said) * k + label;
  }
  if (!feature) return label;
  if (encoding === "index") {
    // The index of a missing value comes last, or is random where none may be.
    const indexOf = (name: string): number => {
      const found = featureOf(campaign, name)!;
      const index = valueIndex(found, read(name));
      return index >= 0 ? index : isOpen(found) ? sizeOf(found) : coins.index(sizeOf(found));
    };
    const index = indexOf(feature);
    return other ? index * cellsOf(featureOf(campaign, other)!) + indexOf(other) : index * k + label;
  }
  let t = scaled(feature);
  if (other && other !== feature) t *= scaled(other);
  else if (kind !== "value") t = 2 * (t * t) - 1; // the square, over the whole of [-1, 1] again
  const value = BigInt(Math.trunc((t || 0) * UNIT));
  const [cell, cells] = other ? [0, 1] : [label, k];
  if (encoding === "moment") return { cell, value };
  // A stochastic bit: 1 with probability (1 + v) / 2, v in units of 2^-52; 2 for what is missing.
  return (d / cells) * cell + (isNaN(t) ? 2 : Number(coins.bernoulli((value + BigInt(UNIT)) << 11n)));
}
