import { cellsOf, isGaussian, isOpen, sizeOf } from "../document/schema.js";
import { valueIndex, type Discrete } from "../values.js";
import { featureOf, valueOf, type Asked, type Kind } from "./kind.js";

/** The index of a discrete feature's value; that of a missing one comes last, or is random where none may be. */
export function indexOf(asked: Asked, name: string): number {
  const feature = featureOf(asked.campaign, name);
  const index = valueIndex(feature as Discrete, valueOf(asked, name));
  if (index >= 0) return index;
  const size = sizeOf(feature);
  return isOpen(feature) ? size : asked.coins.index(size);
}

/** About a discrete feature's value, with the class or without it. */
export const discrete = (
  cells: (size: number, k: number) => number,
  combine: (index: number, label: number, k: number) => number,
): Kind => ({
  encodings: "index",
  cells: (feature, k) => (feature && !isGaussian(feature) ? cells(cellsOf(feature), k) : 0),
  item: (asked, label) => combine(indexOf(asked, asked.question.feature!), label, asked.campaign.label.classes.length),
});

/** The value with the class: value * k + class. */
export const pair = discrete(
  (size, k) => size * k,
  (index, label, k) => index * k + label,
);
