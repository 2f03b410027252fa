// A campaign document as a device must read it: strictly, and with its privacy loss recomputed in integers.
import { base64url, utf8 } from "../bytes.js";
import { ensure } from "../errors.js";
import type { Coins } from "../exact/coins.js";
import { floatUp, larger, sum, within, type Ratio } from "../exact/rationals.js";
import { sha256 } from "../exact/sha256.js";
import type { Moment, Parameters } from "../mechanisms/mechanism.js";
import { distinct, isList, must } from "./checks.js";
import { strictJson } from "./json.js";
import { readQuestion, MOST_PRODUCTS } from "./questions.js";
import { checkAuthored, MOST_FEATURES } from "./schema.js";
import type { CampaignDocument, Feature } from "./types.js";

const LARGEST_DOCUMENT = 4 << 20; // bytes

export interface Question {
  readonly index: number;
  readonly kind: string;
  readonly feature?: string | null;
  readonly other?: string | null;
  readonly group: number;
  readonly encoding: string;
  readonly mechanism: string;
  readonly domain_size: number;
  readonly epsilon: number;
  readonly weight: number;
  readonly parameters: Parameters;
  readonly loss: Ratio;
  /** The payload for an item. */
  readonly perturb: (item: number | Moment, coins: Coins) => Uint8Array;
}

/** A verified campaign. */
export interface Campaign<D extends CampaignDocument = CampaignDocument> extends Omit<CampaignDocument, "questions"> {
  /** SHA-256 of the document's bytes, base64url. */
  readonly id: string;
  readonly document: string;
  /** The features that questions are about: a projection's inputs are replaced by its outputs. */
  readonly asked: readonly Feature[];
  readonly questions: readonly Question[];
  /** The questions by group: a device answers at most one of each. */
  readonly groups: readonly (readonly Question[])[];
  /** An upper bound of what one device loses, recomputed; and the same as a double, rounded up. */
  readonly loss: Ratio;
  readonly realisedEpsilon: number;
  /** The type of the document, for the compiler alone. */
  readonly typed?: D;
}

/** The campaign of a document's text; `known`, its id where it is known, must be the hash of its bytes. Throws LdpError. */
export function parseCampaign<const D extends CampaignDocument>(text: string, known?: string): Campaign<D> {
  const bytes = utf8(text);
  must(bytes.length <= LARGEST_DOCUMENT, "document"); // before the hash, which takes its time
  const id = base64url(sha256(bytes));
  ensure((known ?? id) === id, "wrong-hash");
  const document = strictJson(text);
  const authored = { ...document, id, document: text, asked: checkAuthored(document) };
  must(isList(document.questions, 1, 2 * MOST_FEATURES + 1 + MOST_PRODUCTS), "questions");
  const losses = new Map<string, Ratio>();
  const questions: Question[] = document.questions.map((one: unknown, index: number) =>
    readQuestion(one, index, authored, losses),
  );
  must(distinct(questions.map(({ kind, group }) => kind + group)), "questions");
  const members = new Map<number, Question[]>();
  for (const question of questions) {
    members.set(question.group, [...(members.get(question.group) ?? []), question]);
  }
  const groups = [...members.values()];
  const worst = groups.map((group) => group.map((question) => question.loss).reduce(larger));
  const loss = worst.reduce(document.privacy.answers === "all" ? sum : larger);
  ensure(within(loss, document.privacy.epsilon), "loss-above-epsilon");
  return { ...authored, questions, groups, loss, realisedEpsilon: floatUp(loss) };
}
