import { concat, littleEndian } from "../bytes.js";
import { logUp } from "../exact/rationals.js";
import { indexWidth, ONE, UNIT, type Mechanism, type Moment, type Perturb } from "./mechanism.js";

/** P(1) of a value, over 2^64, rounded down. */
export const oneAt = ({ p }: any, value: bigint): bigint =>
  ONE - p + (((2n * p - ONE) * (value + BigInt(UNIT))) >> 53n);

/** One bit of one cell: a cell drawn at random, and a bit whose bias tells the value there. */
export const onebit: Mechanism = {
  names: "p",
  encodings: "moment",
  loss: ({ p }) => logUp(p, ONE - p),
  width: (d) => indexWidth(d) + 1,
};

export const perturbOnebit: Perturb<Moment> = (numbers, d, { cell, value }, coins) => {
  const drawn = coins.index(d);
  const bit = coins.bernoulli(oneAt(numbers, drawn === cell ? value : 0n));
  return concat(littleEndian(drawn, indexWidth(d)), [Number(bit)]);
};
