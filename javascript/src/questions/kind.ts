// What a kind of question is: its shape in a document, and what a record answers. One file each; a new one is a row of
// registry.ts.
import type { Campaign, Question } from "../document/campaign.js";
import { isOpen } from "../document/schema.js";
import type { ContinuousFeature, Feature } from "../document/types.js";
import type { Coins } from "../exact/coins.js";
import { UNIT, type Moment } from "../mechanisms/mechanism.js";
import { clip, held, numberOf } from "../values.js";

export interface Kind {
  /** Its encodings, with spaces between. */
  readonly encodings: string;
  /** Cells, of which a sign has two each, or three where a value may be missing; 0 for a question that cannot be asked. `k` is the number of classes. */
  readonly cells: (feature: Feature | undefined, k: number, other?: Feature) => number;
  /** What a record of class `label` answers, before the mechanism. */
  readonly item: (asked: Asked, label: number) => number | Moment;
}

/** A question with the record that it is put to. */
export interface Asked {
  readonly campaign: Campaign;
  readonly question: Question;
  readonly record: unknown;
  readonly coins: Coins;
}

/** A uniformly random multiple of 2^-52 in [-1, 1], in place of a missing number. */
const randomT = (coins: Coins): number => (Number(coins.below(2n ** 53n + 1n)) - UNIT) / UNIT;

export const featureOf = ({ asked }: Pick<Campaign, "asked">, name: string | null | undefined): Feature =>
  asked.find((feature) => feature.name === name)!;

/** The record's own value, or the output of a projection. */
export const valueOf = ({ campaign, record, coins }: Asked, name: string): unknown =>
  campaign.projected?.(name, record, () => randomT(coins)) ?? held(record, name);

/** T = 2 (x - low) / (high - low) - 1 of a continuous feature, x clipped; where it is missing NaN, or random if none may be. */
export function scaled(asked: Asked, name: string): number {
  const feature = featureOf(asked.campaign, name) as ContinuousFeature;
  const { low, high } = feature;
  const number = numberOf(valueOf(asked, name));
  if (Number.isNaN(number)) return isOpen(feature) ? NaN : randomT(asked.coins);
  return clip(2 * ((clip(number, low, high) - low) / (high - low)) - 1, -1, 1);
}
