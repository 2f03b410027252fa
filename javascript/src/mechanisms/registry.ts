import { de } from "./de.js";
import type { Mechanism } from "./mechanism.js";
import { laplace, she } from "./noisy.js";
import { onebit } from "./onebit.js";
import { ss } from "./ss.js";
import { unary } from "./unary.js";

/** The one table of mechanisms, which has no other names. */
export const MECHANISMS: Readonly<Record<string, Mechanism>> = {
  __proto__: null as never,
  de,
  ss,
  oue: unary,
  sue: unary,
  the: unary,
  onebit,
  she,
  laplace,
};
