import { concat, littleEndian } from "../bytes.js";
import { logUp } from "../exact/rationals.js";
import { indexWidth, ONE, UNIT, type Mechanism, type Moment } from "./mechanism.js";

/** One bit of one cell: a cell drawn at random, and a bit whose bias tells the value there. */
export const onebit: Mechanism<Moment> = {
  names: "p",
  encodings: "moment",
  loss: ({ p }) => logUp(p, ONE - p),
  width: (d) => indexWidth(d) + 1,
  perturb({ p }, d, { cell, value }, coins) {
    const drawn = coins.index(d);
    const rise = ((2n * p - ONE) * ((drawn === cell ? value : 0n) + BigInt(UNIT))) >> 53n;
    return concat(littleEndian(drawn, indexWidth(d)), [Number(coins.bernoulli(ONE - p + rise))]);
  },
};
