import { marginal, pair, xor } from "./discrete.js";
import type { Kind } from "./kind.js";
import { label } from "./label.js";
import { square, value } from "./moments.js";

/** The one table of kinds, of a campaign that learns a model; null for those of joint.ts, which few campaigns
 * ask and `document/rare.ts` brings. Those of other rounds are in rounds.ts. */
export const KINDS: Readonly<Record<string, Kind | null>> = {
  label,
  pair,
  xor,
  marginal,
  value,
  square,
  signs: null,
  triple: null,
};
