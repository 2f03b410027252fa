import { littleEndian } from "../bytes.js";
import { logUp } from "../exact/rationals.js";
import { indexWidth, ONE, skipping, type Mechanism, type Perturb } from "./mechanism.js";

/** Direct encoding: the true index with probability p, else any other one. */
export const de: Mechanism = {
  names: "p",
  encodings: "index sign",
  loss: ({ p }, d) => logUp(p * (d - 1n), ONE - p),
  width: indexWidth,
};

export const perturbDe: Perturb<number> = ({ p }, d, item, coins) =>
  littleEndian(coins.bernoulli(p) ? item : skipping(item)(coins.index(d - 1)), indexWidth(d));
