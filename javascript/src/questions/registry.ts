import type { CampaignDocument } from "../document/types.js";
import { marginal, pair, xor } from "./discrete.js";
import type { Kind } from "./kind.js";
import { label } from "./label.js";
import { product, square, value, valueOfMoments } from "./moments.js";
import { score } from "./score.js";

const KINDS: Readonly<Record<string, Readonly<Record<string, Kind>>>> = {
  model: { label, pair, xor, marginal, value, square },
  moments: { label, value: valueOfMoments, product },
  score: { score },
};

/** The one table of kinds: those of what a campaign asks. */
export const kindsOf = ({ asks }: Pick<CampaignDocument, "asks">): Readonly<Record<string, Kind>> =>
  KINDS[asks ?? "model"]!;
