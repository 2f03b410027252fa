// An account's coins; a device that has none does not load them.
import { utf8 } from "./bytes.js";
import type { Campaign, Question } from "./document/types.js";
import { keyedCoins, type Coins } from "./exact/coins.js";
import type { CoinSource } from "./perturb.js";
import { slot } from "./wire.js";

/**
 * Coins that are a function of an account's secret, the campaign and the item: the same answer to the same record, from
 * whichever installation. Privacy is then computational. Another item has other, independent coins, so that of two
 * different records both answers are learned, each with its own noise, and that they differ.
 */
export function keyedSource(secret: Uint8Array, campaign: Campaign): CoinSource {
  const words = (question: Question, about: string): Coins =>
    keyedCoins(secret, utf8(`answer ${about} `), slot(campaign, question.group));
  return {
    encoding: (question) => words(question, ""),
    mechanism: (question, item) => words(question, typeof item === "number" ? `${item}` : `${item.cell}:${item.value}`),
  };
}
