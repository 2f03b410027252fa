import { isGaussian } from "../document/schema.js";
import { UNIT } from "../mechanisms/mechanism.js";
import { scaled, type Asked, type Kind } from "./kind.js";

export const centredSquare = (t: number): number => 2 * (t * t) - 1; // the square, over the whole of [-1, 1] again

/** 1 with probability (1 + v) / 2, v being a quantity in units of 2^-52. */
export const bit = ({ coins }: Asked, value: bigint): number => Number(coins.bernoulli((value + BigInt(UNIT)) << 11n));
export const fixed = (quantity: number): bigint => BigInt(Math.trunc(quantity * UNIT));

/** A quantity in [-1, 1] at a cell (the class, where it is told), as it is or as one stochastic bit with the cell; 2 for a missing one. */
export const moment = (cells: Kind["cells"], quantity: (asked: Asked) => number): Kind => ({
  encodings: "sign moment",
  cells,
  item(asked, label) {
    const { campaign, question } = asked;
    const t = quantity(asked);
    const value = fixed(t || 0);
    const [cell, cells] = question.other ? [0, 1] : [label, campaign.label.classes.length];
    if (question.encoding === "moment") return { cell, value };
    return (question.domain_size / cells) * cell + (Number.isNaN(t) ? 2 : bit(asked, value));
  },
});

export const ofGaussian: Kind["cells"] = (feature, k) => (feature && isGaussian(feature) ? k : 0);
export const scaledFeature = (asked: Asked): number => scaled(asked, asked.question.feature!);

/** A continuous feature's value. */
export const value = moment(ofGaussian, scaledFeature);

/** Its square. */
export const square = moment(ofGaussian, (asked) => centredSquare(scaledFeature(asked)));
