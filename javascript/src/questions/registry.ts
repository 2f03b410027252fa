import { pair } from "./discrete.js";
import type { Kind } from "./kind.js";
import { label } from "./label.js";
import { square, value } from "./moments.js";

/** The kinds that most campaigns ask with; all of them are in rounds.ts. */
export const KINDS: Readonly<Record<string, Kind>> = { label, pair, value, square };
