import { logUp } from "../exact/rationals.js";
import { bitmap, bitmapWidth, ONE, type Mechanism, type Perturb } from "./mechanism.js";

/** Unary encoding (sue, oue, the): a bit per index, set with probability p for the true one, q for any other. */
export const unary: Mechanism = {
  names: "p q",
  encodings: "index sign",
  loss: ({ p, q }) => logUp(p * (ONE - q), q * (ONE - p)),
  width: bitmapWidth,
};

export const perturbUnary: Perturb<number> = ({ p, q }, d, item, coins) => {
  const set: number[] = [];
  for (let i = 0; i < d; i++) if (coins.bernoulli(i === item ? p : q)) set.push(i);
  return bitmap(set, d);
};
