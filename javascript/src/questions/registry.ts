import type { Kind } from "./kind.js";
import { label } from "./label.js";
import { product, square, value } from "./moments.js";
import { pair } from "./pair.js";

/** The one table of kinds. */
export const KINDS: Readonly<Record<string, Kind>> = { label, pair, value, square, product };
