import { floatUp } from "../exact/rationals.js";
import { stateOf, type Install } from "./install.js";
import { receiptsOf, total, type Fate, type Kept, type Receipt, type State } from "./state.js";

const FATES: Readonly<Record<Fate, string>> = {
  waiting: "not sent yet",
  "on-its-way": "being sent, may have arrived",
  arrived: "handed over",
  refused: "the server says that it refused it",
  expired: "given up, may have arrived",
  deleted: "deleted, may have arrived",
};

/** What the loss is of: one installation, which can be lost with its ledger, or an account. */
export type Per = "installation" | "account";

const written = (epsilon: number): number => Math.ceil(epsilon * 1e4) / 1e4;

/** The receipts, and the cap that their sum is held to. As a text it tells a person in plain words. */
export class Ledger {
  constructor(
    readonly receipts: readonly Receipt[],
    readonly maxTotalEpsilon: number,
    readonly per: Per,
  ) {}

  /** Privacy loss so far, rounded up. */
  get totalEpsilon(): number {
    return floatUp(total(this.receipts));
  }

  toString(): string {
    const { receipts, per, maxTotalEpsilon } = this;
    const lines = receipts.map(
      ({ title, at, epsilon, fate, questions, window }) =>
        `* "${title.replace(/"/g, "'")}" on ${new Date(at).toJSON()?.slice(0, 10)}${window ? ", in " + window : ""}: ` +
        `noisy answers: ${questions.length}; ` +
        `epsilon ${written(epsilon)}; ${FATES[fate]}.`,
    );
    return [
      `Privacy loss of this ${per}: epsilon ${written(this.totalEpsilon)} of at most ${maxTotalEpsilon}; ` +
        `campaigns answered: ${receipts.length}.`,
      ...lines,
      per === "account"
        ? "Your other devices give the same answer to the same data; different data gets another answer."
        : "If the storage of this installation is cleared, this count is lost and begins anew.",
    ].join("\n");
  }
}

export async function ledgerOf(install: Install): Promise<Ledger> {
  const receipts = receiptsOf(await stateOf(install));
  return new Ledger(receipts, install.maxTotalEpsilon, install.identity ? "account" : "installation");
}

/** A report that left: what was asked, what was said (hexadecimal), when first, to whom, and what the server replied. */
export interface SentReport extends Readonly<Kept> {
  readonly campaignId: string;
  readonly title: string;
  readonly url: string;
  /** How it went, for people. */
  readonly way: string;
}

/** By a relay, sealed to the campaign's gateway: true unless these two collude. */
const SEALED = "sent so that nobody saw both who and what";
const DIRECT = "sent to the server";

export const sentReports = ({ campaigns }: State): SentReport[] =>
  Object.entries(campaigns).flatMap(
    ([
      campaignId,
      {
        consent: { title, url, gateway },
        reports,
      },
    ]) =>
      reports
        .filter(({ at }) => at !== null)
        .map((report) => ({ campaignId, title, url, way: gateway ? SEALED : DIRECT, ...report })),
  );
