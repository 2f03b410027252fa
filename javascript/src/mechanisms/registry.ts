import { de } from "./de.js";
import type { Mechanism } from "./mechanism.js";
import { onebit } from "./onebit.js";
import { ss } from "./ss.js";
import { unary } from "./unary.js";

/** The one table of mechanisms; null for those of noisy.ts, which few campaigns ask with and `document/rare.ts` brings. */
export const MECHANISMS: Readonly<Record<string, Mechanism | null>> = {
  de,
  ss,
  oue: unary,
  sue: unary,
  the: unary,
  onebit,
  she: null,
  laplace: null,
};
