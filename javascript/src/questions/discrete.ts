import { cellsOf, isGaussian, isOpen, sizeOf } from "../document/schema.js";
import { valueIndex, type Discrete } from "../values.js";
import { featureOf, valueOf, type Kind } from "./kind.js";

/** About a discrete feature's value, with the class or without it; a missing one comes last, or is random where none may be. */
export const discrete = (
  cells: (size: number, k: number) => number,
  combine: (index: number, label: number, k: number) => number,
): Kind => ({
  encodings: "index",
  cells: (feature, k) => (feature && !isGaussian(feature) ? cells(cellsOf(feature), k) : 0),
  item(asked, label) {
    const { campaign, question, coins } = asked;
    const feature = featureOf(campaign, question.feature);
    const index = valueIndex(feature as Discrete, valueOf(asked, feature.name));
    const size = sizeOf(feature);
    const missing = (): number => (isOpen(feature) ? size : coins.index(size));
    return combine(index >= 0 ? index : missing(), label, campaign.label.classes.length);
  },
});

/** The value with the class: value * k + class. */
export const pair = discrete(
  (size, k) => size * k,
  (index, label, k) => index * k + label,
);
