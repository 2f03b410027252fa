import { de } from "./de.js";
import type { Mechanism } from "./mechanism.js";
import { ss } from "./ss.js";

/** The one table of mechanisms; null for those that only an author asks for by name, which `document/rare.ts` brings. */
export const MECHANISMS: Readonly<Record<string, Mechanism | null>> = {
  de,
  ss,
  oue: null,
  sue: null,
  the: null,
  onebit: null,
  she: null,
  laplace: null,
};
