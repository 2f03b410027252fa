// Two questions in one answer, as campaigns of large epsilon ask them.
import { cellsOf, isGaussian, isOpen } from "../document/schema.js";
import type { Feature } from "../document/types.js";
import { indexOf } from "./discrete.js";
import type { Kind } from "./kind.js";
import { bit, centredSquare, fixed, ofGaussian, scaledFeature } from "./moments.js";

/** A continuous feature's value and its square, each as one stochastic bit: 4 * class + 2 * bit + bit. */
export const signs: Kind = {
  encodings: "sign",
  cells: (feature, k) => (feature && isOpen(feature) ? 0 : 2 * ofGaussian(feature, k)),
  item(asked, label) {
    const t = scaledFeature(asked);
    return 4 * label + 2 * bit(asked, fixed(t)) + bit(asked, fixed(centredSquare(t)));
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
