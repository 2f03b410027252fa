import { floatUp } from "../exact/rationals.js";
import { total, type Fate, type Receipt } from "./state.js";

const FATES: Readonly<Record<Fate, string>> = {
  waiting: "not sent yet",
  "on-its-way": "being sent, may have arrived",
  arrived: "arrived",
  refused: "refused by the server",
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
      ({ title, at, epsilon, fate, questions }) =>
        `* "${title.replace(/"/g, "'")}" on ${new Date(at).toJSON()?.slice(0, 10)}: ${questions.length} noisy answers; ` +
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
