// Everything that a device must not lose, as one text with a checksum: a device that forgot a receipt would answer again.
import { base64url, utf8 } from "../bytes.js";
import { ensure } from "../errors.js";
import { exact, sum, within, type Ratio } from "../exact/rationals.js";
import { sha256 } from "../exact/sha256.js";

/** What became of a contribution. */
export type Fate = "waiting" | "on-its-way" | "arrived" | "refused" | "expired" | "deleted";

/** One contribution, made once and for good. `at` is the device's clock, in milliseconds since 1970. */
export interface Receipt {
  readonly campaignId: string;
  readonly title: string;
  readonly study: string | null;
  readonly epsilon: number;
  /** The questions drawn, as the reports name them: in a series window * questions + index. */
  readonly questions: readonly number[];
  readonly at: number;
  readonly url: string;
  fate: Fate;
  /** In a series, the name of the window. */
  readonly window?: string;
  /** With a crowd, what the document promises of mixed answers; `epsilon` is lost where relay and aggregator work together. */
  readonly crowdEpsilon?: number;
  readonly crowdDelta?: number;
}

/** A report: its id and its payload are hexadecimal. */
export interface Kept {
  readonly id: string;
  readonly question: number;
  readonly payload: string;
  /** When its first upload began; null: nothing of it has left. */
  at: number | null;
  /**
   * What the server replied: `arrived`, or the code with which it refused the report, which it may have counted all the same;
   * null where no answer has come.
   */
  reply: string | null;
}

/** What a person decided, with a copy of what it was about. */
export interface Consent {
  readonly url: string;
  readonly title: string;
  readonly purpose: string;
  readonly epsilon: number;
  /** The key to which uploads are sealed, where they are: the document may be gone when they leave. */
  readonly gateway?: string;
  readonly grantedAt: number | null;
  withdrawnAt: number | null;
}

/** All about one campaign. */
export interface Entry {
  consent: Consent;
  receipt?: Receipt | undefined;
  reports: Kept[];
  /** Tries of what is in front that failed in a row; when the next is due; reports in an upload at most, where it is limited. */
  attempts: number;
  due: number | null;
  most?: number;
  expires?: number;
  /** When a final word was heard first, with no other since. */
  word?: number | undefined;
  /** The token that the answer shows, in base64url, and behind it the one for relays. */
  token?: string;
  /** Bytes of an upload. */
  length?: number;
  retries: number;
  problem: string | null;
}

export interface State {
  /** Of the text; what a later one means is unknown here. */
  version?: number;
  secret: string;
  enabled: boolean;
  campaigns: Record<string, Entry>;
}

/** Of a campaign in which nothing was answered yet. */
export const NOTHING: Omit<Entry, "consent"> = {
  reports: [],
  attempts: 0,
  due: null,
  retries: 0,
  problem: null,
};

export const ARRIVED = "arrived";

/** The reports that wait for an answer, or for their first upload. */
export const queued = ({ reports, receipt }: Entry): Kept[] =>
  reports.filter(({ reply }) => !reply && /^waiting|^on/.test(receipt!.fate));

const VERSION = 1;
const CHECKSUM = 43;
const checksum = (text: string): string => base64url(sha256(utf8(text)));

export function pack(state: State): string {
  const text = JSON.stringify({ ...state, version: VERSION });
  return checksum(text) + text;
}

/** Throws LdpError `storage-corrupt`, or `storage-newer` for what a later version of this package wrote. */
export function unpack(text: string | null): State {
  if (text === null) return { secret: "", enabled: true, campaigns: {} };
  const body = text.slice(CHECKSUM);
  ensure(checksum(body) + body === text, "storage-corrupt");
  const state = JSON.parse(body);
  ensure(!(state.version > VERSION), "storage-newer");
  return state;
}

/** What was contributed to all campaigns. */
export const receiptsOf = ({ campaigns }: State): Receipt[] =>
  Object.values(campaigns).flatMap(({ receipt }) => receipt ?? []);

export const given = (entry: Entry | undefined): boolean =>
  entry?.consent.grantedAt != null && entry.consent.withdrawnAt === null;

/** What the receipts, and what comes on top, cost together, exactly. */
export const total = (receipts: readonly Pick<Receipt, "epsilon">[], loss: Ratio = [0n, 1n]): Ratio =>
  receipts.reduce((spent, one) => sum(spent, exact(one.epsilon)), loss);

/** Whether one more loss stays within the cap, exactly. */
export const fits = (receipts: readonly Receipt[], loss: Ratio, cap: number): boolean =>
  within(total(receipts, loss), cap);
