import { marginal, pair, xor } from "./discrete.js";
import type { Kind } from "./kind.js";
import { label } from "./label.js";
import { square, value } from "./moments.js";

/** The one table of kinds that a model is mostly learned with; joint.ts has further ones, which few campaigns ask and
 * `document/rare.ts` brings, and rounds.ts those of other rounds. */
export const KINDS: Readonly<Record<string, Kind>> = { label, pair, xor, marginal, value, square };
