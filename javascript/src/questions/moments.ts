import { isGaussian } from "../document/schema.js";
import { UNIT } from "../mechanisms/mechanism.js";
import { scaled, type Asked, type Kind } from "./kind.js";

const centredSquare = (t: number): number => 2 * (t * t) - 1; // the square, over the whole of [-1, 1] again

/** A quantity in [-1, 1] at a cell (the class), as it is or as one stochastic bit with the cell. */
const moment = (
  quantity: (asked: Asked) => number,
  cells: Kind["cells"],
  cellOf: (label: number) => number,
): Kind => ({
  encodings: "sign moment",
  cells,
  item(asked, label) {
    const value = BigInt(Math.trunc(quantity(asked) * UNIT));
    const cell = cellOf(label);
    if (asked.question.encoding === "moment") return { cell, value };
    return 2 * cell + Number(asked.coins.bernoulli((value + BigInt(UNIT)) << 11n));
  },
});

const atTheClass = (label: number): number => label;

/** A continuous feature's value. */
export const value = moment(
  (asked) => scaled(asked, asked.question.feature!),
  (feature, k, moments) => (feature && (moments || isGaussian(feature)) ? k : 0),
  atTheClass,
);

/** Its square. */
export const square = moment(
  (asked) => centredSquare(scaled(asked, asked.question.feature!)),
  (feature, k) => (feature && isGaussian(feature) ? k : 0),
  atTheClass,
);

/** The product of two features in a round of moments, or the square of one. */
export const product = moment(
  (asked) => {
    const { feature, other } = asked.question;
    const t = scaled(asked, feature!);
    return other === feature ? centredSquare(t) : t * scaled(asked, other!);
  },
  () => 1,
  () => 0,
);
