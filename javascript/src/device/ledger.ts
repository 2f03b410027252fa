import { unhex } from "../bytes.js";
import type { CheckCrowd, parseCampaign } from "../document/campaign.js";
import { floatUp } from "../exact/rationals.js";
import type { Install } from "./install.js";
import { apartOf, asked, ledgerText, said, wayOf } from "../words.js";
import { receiptsOf, total, type Kept, type Receipt, type State } from "./state.js";

/** What the loss is of: one installation, which can be lost with its ledger, or an account. */
export type Per = "installation" | "account";

const NOTES: Readonly<Record<Per, string>> = {
  account: "An answer of another of your devices has noise of its own: its loss comes on top and is not in this count.",
  installation: "If the storage of this installation is cleared, this count is lost and begins anew.",
};

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

  /** The same where every relay keeps apart from its aggregator. */
  get crowdEpsilon(): number {
    return apartOf(this.receipts)[0];
  }

  /** The probability with which `crowdEpsilon` may be exceeded then, rounded up. */
  get crowdDelta(): number {
    return apartOf(this.receipts)[1];
  }

  /** What a person has to know of a count that is an installation's, or an account's. */
  get note(): string {
    return NOTES[this.per];
  }

  toString(): string {
    return ledgerText(this.receipts, this.maxTotalEpsilon);
  }
}

export const ledgerOf = ({ identity, maxTotalEpsilon }: Install, state: State): Ledger =>
  new Ledger(receiptsOf(state), maxTotalEpsilon, identity ? "account" : "installation");

/**
 * A report that left: what was asked and what was said, in words, when first, to whom, and what the server replied. What was said is
 * noise as well as truth, and nobody can tell which; where the document is no longer at hand, it is the payload in hexadecimal.
 */
export interface SentReport extends Readonly<Kept> {
  readonly campaignId: string;
  readonly title: string;
  readonly url: string;
  readonly asked: string;
  readonly said: string;
  /** How it went, for people. */
  readonly way: string;
}

/** Loads what checks a crowd. */
type Crowds = () => Promise<{ readonly checkCrowd: CheckCrowd }>;

export async function sentReports(
  install: Install,
  { campaigns }: State,
  read: typeof parseCampaign,
  crowds: Crowds,
): Promise<SentReport[]> {
  const told: SentReport[] = [];
  for (const [campaignId, { consent, reports, receipt }] of Object.entries(campaigns)) {
    const left = reports.filter(({ at }) => at !== null);
    if (!left.length) continue;
    const { title, url, gateway } = consent;
    const campaign = await storedCampaign(install, campaignId, read, receipt?.crowdEpsilon && crowds);
    for (const report of left) {
      const { question, payload } = report;
      const about = campaign?.questions[question % campaign.questions.length];
      const inWords = about
        ? { asked: asked(campaign, about), said: said(campaign, about, unhex(payload)) }
        : { asked: "", said: payload };
      told.push({ campaignId, title, url, way: wayOf(gateway ? install.relay : ""), ...report, ...inWords });
    }
  }
  return told.sort((one, other) => one.at! - other.at!);
}

/** The campaign as it is stored, with a crowd or without. */
const storedCampaign = async ({ storage }: Install, id: string, read: typeof parseCampaign, crowds?: Crowds | 0) => {
  try {
    return read<any>((await storage.read(`campaign ${id}`))!, id, crowds ? (await crowds()).checkCrowd : undefined);
  } catch {
    return undefined; // gone, or damaged
  }
};
