import { marginal, pair, xor } from "./discrete.js";
import type { Kind } from "./kind.js";
import { label } from "./label.js";
import { square, value } from "./moments.js";

/** The one table of kinds, of a campaign that learns a model; those of other rounds are in rounds.ts. */
export const KINDS: Readonly<Record<string, Kind>> = { label, pair, xor, marginal, value, square };
