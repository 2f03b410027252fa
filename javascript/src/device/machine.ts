// What an answer means for a queue: the upload state machine, without I/O. A report that has left once may arrive once
// only, so a doubtful answer always means: the same bytes again, later.
import { CLOSING_GRACE, EXPIRY_TRIES, FINAL_AFTER, RETRY_AFTER_LONGEST, type Policy } from "./policy.js";
import { ARRIVED, queued, type Entry } from "./state.js";

// "Later", whatever their status.
const LATER = /^((campaign|window)-not-open|not-found|campaign-closing|clock-unsettled|unknown-campaign)$/;
// A final word, unless a clock is wrong: it counts when it is heard again, a day later.
const FINAL = /^(campaign-(closed|full)|window-over)$/; // as the code of a single report
const TERMINAL = [404, 409, 410, 451];
const GONE = 410; // at once, like what is wrong with the bytes
const TOO_LARGE = 413;
const POISON = [400, 415, 422];

/** An answer of HTTP, or null where there was none. */
export interface Answer {
  readonly status: number;
  readonly body: string;
  readonly headers: Headers;
}

/** What stands for an answer where nobody's word counts: the upload is tried again, and `code` says why. */
export const failed = (code: string): Answer => ({
  status: 0,
  body: JSON.stringify({ code }),
  headers: new Headers({ "Content-Type": "application/problem+json" }),
});

/** A server's code as far as it is one: it is kept, and shown. */
const clean = (code: unknown): string => (/^[\w.-]{1,64}$/.test(code as string) ? `${code}` : "unreadable-code");

/** The stable code of a problem document (RFC 9457); undefined for anything else, such as a proxy's error page. */
export function problemCode({ body, headers }: Answer): string | undefined {
  try {
    return /^application\/problem\+json/i.test(headers.get("content-type")!) ? clean(JSON.parse(body).code) : undefined;
  } catch {
    return undefined;
  }
}

/** Why an answer is not what was asked for: its code, or its status. */
export const reasonOf = (answer: Answer | null): string =>
  answer ? (problemCode(answer) ?? `http-${answer.status}`) : "unreachable";

/** Milliseconds that the server asks to wait, 0 where it does not; by its own clock where it tells it. */
export function retryAfter({ headers }: Answer, now: number): number {
  const text = headers.get("retry-after") ?? "";
  return /^\d{1,9}$/.test(text)
    ? Number(text) * 1e3
    : Math.max(0, Date.parse(text) - (Date.parse(headers.get("date")!) || now)) || 0;
}

/** `{id: code}` of what a success refuses; undefined for a body that no aggregator sent. */
function rejections({ body }: Answer): Map<string, string> | undefined {
  try {
    const { rejected } = JSON.parse(body);
    return new Map(rejected.map(([id, code]: string[]) => [id, clean(code!.slice())]));
  } catch {
    return undefined;
  }
}

/** Whether what is queued is given up now; where a final word was heard, there is a week to hear it again. */
export const hasExpired = ({ expires, word, attempts }: Entry, now: number): boolean =>
  now > Math.max(expires!, (word ?? -Infinity) + CLOSING_GRACE) && attempts >= EXPIRY_TRIES;

/** Takes note in `entry` of the answer to an upload of the reports with these ids; `jitter` is from [0, 1). */
export function judge(
  entry: Entry,
  ids: readonly string[],
  answer: Answer | null,
  now: number,
  jitter: number,
  policy: Policy,
): void {
  const code = answer ? problemCode(answer) : undefined;
  const reason = reasonOf(answer);
  const status = answer?.status ?? 0;
  const later = LATER.test(code!);
  const poison = !later && (status === TOO_LARGE || (code && POISON.includes(status)));
  const rejected = status === 200 ? rejections(answer!) : undefined;
  const final = rejected
    ? ids.every((id) => FINAL.test(rejected.get(id)!))
    : code && !later && TERMINAL.includes(status);
  if (status) entry.word = final ? Math.min(entry.word ?? now, now) : undefined;
  const heard = final && (status === GONE || now - entry.word! >= FINAL_AFTER);
  const settles = (told: string): unknown => heard || !(LATER.test(told) || FINAL.test(told));
  entry.attempts++;
  entry.problem = rejected?.get(ids[0]!) ?? reason;
  if (ids.length > 1 && poison && !entry.token) {
    entry.most = 1; // a token is of all of them; else from now on one at a time: the one that cannot be taken is then alone
  } else {
    const settled = ids.filter((id) => (rejected ? settles(rejected.get(id)!) : code && (poison || heard)));
    if (!settled.length) {
      // exponential backoff with full jitter; Retry-After is the floor, up to its cap, for which a final word is left alone
      const window = Math.min(policy.backoffLongest, policy.backoffBase * 2 ** (entry.attempts - 1));
      const asked = final ? Infinity : answer ? retryAfter(answer, now) : 0;
      entry.due = now + Math.max(jitter * window, Math.min(asked, RETRY_AFTER_LONGEST));
      entry.retries++;
      return;
    }
    const { reports, receipt } = entry;
    for (const one of reports)
      if (settled.includes(one.id)) one.reply = (rejected ? rejected.get(one.id) : reason) ?? ARRIVED;
    if (rejected) entry.problem = null;
    const arrived = reports.some(({ reply }) => reply === ARRIVED); // also where it was deleted on its way
    if (receipt && !queued(entry).length && (arrived || receipt.fate !== "deleted"))
      receipt.fate = arrived ? ARRIVED : "refused";
  }
  entry.attempts = 0;
  entry.due = now;
}
