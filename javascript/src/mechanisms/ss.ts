import { logUp } from "../exact/rationals.js";
import { bitmap, bitmapWidth, ONE, skipping, type Mechanism, type Perturb } from "./mechanism.js";

/** Subset selection: w random indices, the true one among them with probability p. */
export const ss: Mechanism = {
  names: "w p",
  encodings: "index sign",
  loss: ({ w, p }, d) => logUp(p * (d - w), (ONE - p) * w),
  width: bitmapWidth,
};

export const perturbSs: Perturb<number> = ({ w, p }, d, item, coins) => {
  const included = coins.bernoulli(p);
  const others = coins.subset(d - 1, Number(w) - Number(included)).map(skipping(item));
  return bitmap(included ? [...others, item] : others, d);
};
