import { marginal, pair, xor } from "./discrete.js";
import type { Kind } from "./kind.js";
import { label } from "./label.js";
import { product, square, value } from "./moments.js";
import { score } from "./score.js";

/** The one table of kinds. */
export const KINDS: Readonly<Record<string, Kind>> = { label, pair, xor, marginal, value, square, product, score };

/** The kinds of what a campaign `asks`, with spaces between. */
export const ASKED: Readonly<Record<string, string>> = {
  model: "label pair xor marginal value square",
  moments: "label value product",
  score: "score",
};
