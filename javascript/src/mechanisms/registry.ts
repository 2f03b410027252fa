import { de } from "./de.js";
import type { Mechanism } from "./mechanism.js";
import { ss } from "./ss.js";
import { unary } from "./unary.js";

/** The one table of mechanisms; null for those that few campaigns ask with, which `document/rare.ts` brings. */
export const MECHANISMS: Readonly<Record<string, Mechanism | null>> = {
  de,
  ss,
  oue: unary,
  sue: unary,
  the: unary,
  onebit: null,
  she: null,
  laplace: null,
};
