// One campaign at one aggregator, by fetch: no cookies, no referrer, no redirect, nothing kept by the browser.
import { ensure, LdpError } from "../errors.js";
import { reasonOf, type Answer } from "./machine.js";
import { ASKING_WAIT, FETCH_TRIES, type Policy } from "./policy.js";

export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

const LARGEST_ANSWER = 16 << 20; // characters
// As every platform writes it in an answer: ASCII, the host in lower case, without the standard port.
const ADDRESS =
  /^(https:\/\/([a-z\d._-]+|\[[a-f\d:]+])|http:\/\/(localhost|127(\.\d+){3}|\[::1]))(:(?!(443|80)\b)\d+)?(\/[\w./~%-]*)?$/;

/** The address of a relay as a platform writes it. Throws LdpError `bad-relay`. */
export function checkRelay(url: string): string {
  ensure(ADDRESS.test(url), "bad-relay");
  return url.replace(/^(\w+:\/\/[^/]+)$/, "$1/");
}

/**
 * Where what is public is fetched: from a relay, beside its own address, and never from the aggregator, which would see who
 * asks. Throws LdpError `bad-relay` for a relay that is the aggregator: on its host, but for loopback.
 */
export function publicBase(url: string, relay: string | undefined): string {
  if (!relay) return url;
  const [, , host] = ADDRESS.exec(url)!;
  ensure(!host || host !== ADDRESS.exec(relay)![2], "bad-relay");
  return relay.replace(/\/[^/]*$/, "");
}

/** The address without a slash at its end. Throws LdpError for one that reports must not be sent to. */
export function checkUrl(url: string): string {
  ensure(ADDRESS.test(url), "bad-url");
  return url.replace(/\/+$/, "");
}

/**
 * The text of a body, read no further than the piece that goes beyond the limit: whoever reads what was cut refuses it. Without
 * streams, as in React Native, the length that was told is all there is to look at before.
 */
async function textOf(response: Response): Promise<string> {
  const reader = response.body?.getReader?.();
  if (!reader) return response.text();
  const decoder = new TextDecoder();
  let [text, part]: [string, ReadableStreamReadResult<Uint8Array> | undefined] = ["", undefined];
  while (text.length <= LARGEST_ANSWER && !(part = await reader.read()).done)
    text += decoder.decode(part.value, { stream: true });
  return text;
}

const readPlain = async (response: Response): Promise<Answer> => {
  const { status, headers } = response;
  return { status, headers, body: await textOf(response) };
};

/** The answer as `read` reads it, null where there is none in time, or none of this address. */
export async function exchange(
  fetch: Fetch,
  url: string,
  init: RequestInit,
  { requestTimeout }: Policy,
  read = readPlain,
): Promise<Answer | null> {
  const stop = new AbortController();
  const timer = setTimeout(() => stop.abort(), requestTimeout);
  try {
    const response = await fetch(url, {
      ...init,
      signal: stop.signal,
      credentials: "omit",
      redirect: "error",
      referrerPolicy: "no-referrer",
      cache: "no-store",
    });
    // A platform's fetch may follow where it was told not to.
    const { redirected, url: from, headers } = response;
    const foreign = redirected || (from || url) !== url || Number(headers.get("content-length")) > LARGEST_ANSWER;
    return foreign ? null : await read(response);
  } catch {
    return null;
  } finally {
    clearTimeout(timer);
    stop.abort(); // what was not read shall not come
  }
}

export const pause = (milliseconds: number): Promise<unknown> => new Promise((done) => setTimeout(done, milliseconds));

/** How many milliseconds a call waits in all, five seconds unless told otherwise; at their end it throws LdpError `timeout`. */
export interface Waiting {
  readonly timeout?: number;
}

/** What `work` makes by its end, a moment of `Date.now()` that it is given. Throws LdpError `timeout` then. */
export async function inTime<T>({ timeout = ASKING_WAIT }: Waiting, work: (until: number) => Promise<T>): Promise<T> {
  let timer: any;
  const over = new Promise<never>((_, fail) => {
    timer = setTimeout(() => fail(new LdpError("timeout")), timeout);
  });
  try {
    return await Promise.race([work(Date.now() + timeout), over]);
  } finally {
    clearTimeout(timer);
  }
}

/** The text at an address, tried a few times until a moment. Throws LdpError where it cannot be had now: the server's code, `unreachable` or `timeout`. */
export async function get(fetch: Fetch, url: string, policy: Policy, until: number): Promise<string> {
  for (let tries = FETCH_TRIES; ;) {
    const left = until - Date.now();
    if (left <= 0) throw new LdpError("timeout");
    const answer = await exchange(fetch, url, {}, { ...policy, requestTimeout: Math.min(policy.requestTimeout, left) });
    if (answer?.status === 200) return answer.body;
    if (!--tries || (answer && answer.status < 500 && answer.status !== 429)) throw new LdpError(reasonOf(answer));
    await pause(policy.backoffBase);
  }
}
