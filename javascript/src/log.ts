// What an app's developer sees: each step and each failure with its cause, told to one function of the app's. Never a value of a record,
// a report's id, a token or a payload: what other code throws is told by its name, or by a code, alone.
import type { Fetch } from "./device/network.js";
import { LdpError } from "./errors.js";

/**
 * `name` is what was done: a request (`document`, `state`, `model`, `directory`, `upload`), a call (`next-step`, `decide`, `grant`,
 * `obtain-token`, `contribute`, `withdraw`, `classifier`) or `delivery`. `code` is that of the failure, of a next step what it says; null
 * where all is well. `cause` begins with its kind, where the platform tells: `dns`, `tls`, `timeout`, `refused`, `reset`, `document`;
 * browsers say `network` for all of them, and for CORS. `campaignId` is empty where a step is about none, or it is not known.
 */
export interface Step {
  /** Milliseconds since 1970. */
  readonly time: number;
  readonly campaignId: string;
  readonly name: string;
  readonly code: string | null;
  readonly cause: string | null;
}

export type Log = (step: Step) => void;
export type Tell = (name: string, campaignId: string, code: string | null, error?: unknown) => void;
type TellAt = (time: number, ...told: Parameters<Tell>) => void;

/** What a device tells of what it does; `logTo` makes one. */
export interface Logger {
  readonly tell: TellAt;
  readonly told: (fetch: Fetch, tell: Tell) => Fetch;
}

/** Tells the console. */
export const toConsole: Log = (step) => console[step.cause ? "warn" : "info"]("ldp-bayes", step);

/**
 * Tells a function of the app's, the console unless told otherwise: `new Device(storage, { log: logTo(), ... })`. What it throws troubles
 * nobody.
 */
export const logTo = (log: Log = toConsole): Logger => ({
  tell(time, name, campaignId, code, error) {
    try {
      log({ time, campaignId, name, code, cause: error ? causeOf(error) : null });
    } catch {
      // The app's own trouble.
    }
  },
  told,
});

export const codeOf = (error: unknown): string => (error instanceof LdpError ? error.code : "unexpected");

const KINDS: readonly [RegExp, string][] = [
  [/^ENOTFOUND|^EAI_/, "dns"],
  [/CERT|TLS|SSL/, "tls"],
  [/timed?out|abort/i, "timeout"],
  [/REFUSED/, "refused"],
  [/RESET|EPIPE|SOCKET/, "reset"],
  [/^TypeError$/, "network"],
];

/** Why, by the error that began it; null where the code says it all. */
function causeOf(error: any): string | null {
  while (error?.cause) error = error.cause;
  if (error instanceof LdpError)
    return error.code === "invalid-document"
      ? `document: ${error.message}`
      : error.code === "timeout"
        ? "timeout"
        : null;
  const words = [error?.code, error?.name].find((one) => /^[a-z]\w+$/i.test(one ?? "")) ?? "unknown";
  const kind = KINDS.find(([pattern]) => pattern.test(words))?.[1];
  return kind ? `${kind}: ${words}` : words;
}

/** A fetch whose every exchange is told of. */
const told =
  (fetch: Fetch, tell: Tell): Fetch =>
  async (url, init) => {
    const [, id = "", rest] = /\/v1\/campaigns\/([\w-]{43})\/?(\w*)/.exec(url) ?? [];
    const name = init.method === "POST" ? "upload" : /\/directories\//.test(url) ? "directory" : rest || "document";
    try {
      const answer = await fetch(url, init);
      tell(name, id, answer.ok ? null : `http-${answer.status}`);
      return answer;
    } catch (error) {
      const late = init.signal?.aborted;
      tell(name, id, late ? "timeout" : "unreachable", late ? new LdpError("timeout") : error);
      throw error;
    }
  };
