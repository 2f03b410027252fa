// One campaign at one aggregator, by fetch: no cookies, no referrer, no redirect, nothing kept by the browser.
import { ensure, LdpError } from "../errors.js";
import { MEDIA_TYPE } from "../wire.js";
import { reasonOf, type Answer } from "./machine.js";
import type { Policy } from "./policy.js";

export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

const MOST_KEPT_ALIVE = 60_000; // bytes; browsers refuse 64 KiB of all such requests together
const ADDRESS = /^(https:\/\/[^\s/?#@]+|http:\/\/(localhost|127(\.\d+){3}|\[::1])(:\d+)?)(\/[^\s?#]*)?$/;

/** The address without a slash at its end. Throws LdpError for one that reports must not be sent to. */
export function checkUrl(url: string): string {
  ensure(ADDRESS.test(url), "bad-url");
  return url.replace(/\/+$/, "");
}

/** The answer, null where there is none in time. */
export async function exchange(
  fetch: Fetch,
  url: string,
  init: RequestInit,
  { requestTimeout }: Policy,
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
    return { status: response.status, body: await response.text(), header: (name) => response.headers.get(name) };
  } catch {
    return null;
  } finally {
    clearTimeout(timer);
  }
}

export const post = (fetch: Fetch, url: string, body: Uint8Array, policy: Policy): Promise<Answer | null> =>
  exchange(
    fetch,
    url,
    {
      method: "POST",
      headers: { "Content-Type": MEDIA_TYPE },
      body: body as BufferSource,
      keepalive: body.length < MOST_KEPT_ALIVE,
    },
    policy,
  );

export const pause = (milliseconds: number): Promise<unknown> => new Promise((done) => setTimeout(done, milliseconds));

/** The text at an address, tried a few times. Throws LdpError with the server's code, or `unreachable`. */
export async function get(fetch: Fetch, url: string, policy: Policy): Promise<string> {
  for (let tries = policy.fetchTries; ;) {
    const answer = await exchange(fetch, url, {}, policy);
    if (answer?.status === 200) return answer.body;
    if (!--tries || (answer && answer.status < 500 && answer.status !== 429)) throw new LdpError(reasonOf(answer));
    await pause(policy.backoffBase);
  }
}
