import { exact, floatUp, sum, within, type Ratio } from "../exact/rationals.js";
import type { Fate, Receipt } from "./state.js";

export const FATES: Readonly<Record<Fate, string>> = {
  "waiting": "on this device; nothing of it has left",
  "on-its-way": "an upload has begun, and is not known to have arrived",
  "arrived": "the server has it",
  "refused": "the server refused it",
  "expired": "given up after its time; it may have arrived",
  "deleted": "deleted after an upload had begun; it may have arrived",
};

/** What the loss is of: one installation, which can be lost with its ledger, or an account. */
export type Per = "installation" | "account";

const total = (receipts: readonly Receipt[]): Ratio => receipts.reduce<Ratio>((spent, { epsilon }) => sum(spent, exact(epsilon)), [0n, 1n]);

/** Whether one more loss stays within the cap, exactly. */
export const fits = (receipts: readonly Receipt[], epsilon: number, cap: number): boolean => within(sum(total(receipts), exact(epsilon)), cap);

const written = (epsilon: number): number => Math.ceil(epsilon * 1e4) / 1e4;
const plain = (text: string): string => text.replace(/"/g, "'");

/** The receipts, and the cap that their sum is held to. As a text it tells a person in plain words. */
export class Ledger {
  constructor(readonly receipts: readonly Receipt[], readonly maxTotalEpsilon: number, readonly per: Per) {}

  /** Privacy loss so far, rounded up. */
  get totalEpsilon(): number {
    return floatUp(total(this.receipts));
  }

  toString(): string {
    const { receipts, per } = this;
    const lines = receipts.map(({ title, at, epsilon, fate, questions: { length } }) =>
      `* "${plain(title)}" on ${new Date(at).toISOString().slice(0, 10)}: ${length} answer${length > 1 ? "s" : ""}, with noise `
      + `added on this device; epsilon ${written(epsilon)}; ${FATES[fate]}.`);
    return [
      `This ${per} has contributed to ${receipts.length} campaign${receipts.length === 1 ? "" : "s"}. `
      + `Privacy loss so far: epsilon ${written(this.totalEpsilon)} of at most ${this.maxTotalEpsilon}.`,
      ...lines,
      per === "account"
        ? "Your other devices give the same answer to the same data; different data gets a second answer."
        : "This holds for this installation: if its storage is cleared, this ledger is lost and a new one begins.",
    ].join("\n");
  }
}
