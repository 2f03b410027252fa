import { isGaussian, sizeOf } from "../document/schema.js";
import { valueIndex, type Discrete } from "../values.js";
import { featureOf, valueOf, type Asked, type Kind } from "./kind.js";

/** The index of a discrete feature's value; that of a missing one is random. */
export function indexOf(asked: Asked, name: string): number {
  const feature = featureOf(asked.campaign, name);
  const index = valueIndex(feature as Discrete, valueOf(asked, name));
  return index >= 0 ? index : asked.coins.index(sizeOf(feature));
}

/** About a discrete feature's value, with the class or without it. */
const discrete = (
  cells: (size: number, k: number) => number,
  combine: (index: number, label: number, k: number) => number,
): Kind => ({
  encodings: "index",
  cells: (feature, k) => (feature && !isGaussian(feature) ? cells(sizeOf(feature), k) : 0),
  item: (asked, label) => combine(indexOf(asked, asked.question.feature!), label, asked.campaign.label.classes.length),
});

const oneBit = (size: number, k: number): number => (size === 2 && k === 2 ? 2 : 0);

/** The value with the class: value * k + class. */
export const pair = discrete(
  (size, k) => size * k,
  (index, label, k) => index * k + label,
);

/** Of two values and two classes: whether just one of both indices is 1. */
export const xor = discrete(oneBit, (index, label) => index ^ label);

/** Of two values and two classes: the value alone. */
export const marginal = discrete(oneBit, (index) => index);
