// Two questions in one answer, as campaigns of large epsilon ask them.
import { cellsOf, isGaussian, isOpen } from "../document/schema.js";
import type { Feature } from "../document/types.js";
import { indexOf } from "./discrete.js";
import type { Kind } from "./kind.js";
import { bit, centredSquare, fixed, ofGaussian, scaledFeature } from "./moments.js";

/**
 * A continuous feature's value and its square, each as one stochastic bit: 4 * class + 2 * bit + bit; or, where it may be
 * missing, 5 * class and both, or 4 for a missing one. As a sign these are twice 2 k, and three times 5 k / 3, which
 * doubles give exactly (Goldberg 1991, theorem 7).
 */
export const signs: Kind = {
  encodings: "sign",
  cells: (feature, k) => (feature ? ofGaussian(feature, (6 - +isOpen(feature)) * k) / 3 : 0),
  item(asked, label) {
    const t = scaledFeature(asked);
    const first = (asked.question.domain_size / asked.campaign.label.classes.length) * label;
    return first + (Number.isNaN(t) ? 4 : 2 * bit(asked, fixed(t)) + bit(asked, fixed(centredSquare(t))));
  },
};

const isBinary = (feature?: Feature): boolean => !!feature && !isGaussian(feature) && cellsOf(feature) === 2;

/** Two features of two values each, with the class: (2 * value + other value) * k + class. */
export const triple: Kind = {
  encodings: "index",
  cells: (feature, k, other) => (isBinary(feature) && isBinary(other) && feature !== other ? 4 * k : 0),
  item(asked, label) {
    const { campaign, question } = asked;
    const values = 2 * indexOf(asked, question.feature!) + indexOf(asked, question.other!);
    return values * campaign.label.classes.length + label;
  },
};
