import { isGaussian } from "../document/schema.js";
import { UNIT } from "../mechanisms/mechanism.js";
import { scaled, type Asked, type Kind } from "./kind.js";

export const centredSquare = (t: number): number => 2 * (t * t) - 1; // the square, over the whole of [-1, 1] again

/** A quantity in [-1, 1] at a cell (the class, where it is told), as it is or as one stochastic bit with the cell. */
export const moment = (cells: Kind["cells"], quantity: (asked: Asked) => number): Kind => ({
  encodings: "sign moment",
  cells,
  item(asked, label) {
    const value = BigInt(Math.trunc(quantity(asked) * UNIT));
    const cell = asked.question.other ? 0 : label;
    if (asked.question.encoding === "moment") return { cell, value };
    return 2 * cell + Number(asked.coins.bernoulli((value + BigInt(UNIT)) << 11n));
  },
});

const ofGaussian: Kind["cells"] = (feature, k) => (feature && isGaussian(feature) ? k : 0);
export const scaledFeature = (asked: Asked): number => scaled(asked, asked.question.feature!);

/** A continuous feature's value. */
export const value = moment(ofGaussian, scaledFeature);

/** Its square. */
export const square = moment(ofGaussian, (asked) => centredSquare(scaledFeature(asked)));
