import { de } from "./de.js";
import type { Mechanism } from "./mechanism.js";
import { laplace, she } from "./noisy.js";
import { onebit } from "./onebit.js";
import { ss } from "./ss.js";
import { unary } from "./unary.js";

/** The one table of mechanisms. */
export const MECHANISMS: Readonly<Record<string, Mechanism>> = {
  de,
  ss,
  oue: unary,
  sue: unary,
  the: unary,
  onebit,
  she,
  laplace,
};
