// The delivery of what waits, loaded where something does.
import { unhex } from "../bytes.js";
import { ensure, type LdpError } from "../errors.js";
import { randomBytes } from "../exact/coins.js";
import type { Sealed } from "../later/sealing.js";
import { encodeUpload, MEDIA_TYPE } from "../wire.js";
import { changeState, waits, type Install } from "./install.js";
import { sealing, unsealable } from "./later.js";
import { failed, hasExpired, judge, type Answer } from "./machine.js";
import { exchange, type Fetch } from "./network.js";
import { RETRY_AFTER_LONGEST, type Policy } from "./policy.js";
import { queued, type Entry, type Kept } from "./state.js";

const TOKEN = 472; // characters of a token; behind that of the answer stands the one for relays
const MOST_KEPT_ALIVE = 60_000; // bytes; browsers refuse 64 KiB of all such requests together

/** One step of the delivery, of what waits. Milliseconds until the next one is due; undefined where nothing waits any more. */
export async function deliver(
  install: Install,
  firstDelay: number,
  waiting: readonly [string, Entry][],
): Promise<number | undefined> {
  const { storage, fetch, relay, now: clock, policy } = install;
  // Before this tab's turn begins: what seals may have to be loaded, and others need not wait for that.
  const muted: Record<string, LdpError | null> = {};
  for (const [id, { consent }] of waiting) muted[id] = await unsealable(consent.gateway, relay, consent.url);
  return storage.exclusive(async () => {
    let wait: number | undefined;
    let id = "";
    let from: Entry | undefined;
    let batch: Kept[] = [];
    const jitter = () => randomBytes(4).reduce((sum, byte) => (sum + byte) / 256, 0);
    await changeState(
      install,
      (state) => {
        const now = clock();
        wait = undefined;
        batch = [];
        for (const [campaignId, entry] of waits(state)) {
          const { attempts } = entry;
          if (hasExpired(entry, now)) {
            entry.receipt!.fate = "expired";
            continue;
          }
          // No try lies further ahead than the policy allows, whatever a clock said when it was planned.
          const longest = attempts ? Math.max(policy.backoffLongest, RETRY_AFTER_LONGEST) : firstDelay;
          entry.due = Math.min(entry.due ?? now + jitter() * firstDelay, now + longest);
          // Safety: never in the clear instead. It waits for an app that can seal it.
          const mute = muted[campaignId];
          if (mute && entry.due <= now) judge(entry, [], failed(mute.code), now, jitter(), policy);
          wait = Math.min(wait ?? Infinity, Math.max(0, entry.due - now));
          if (mute || wait || batch.length) continue;
          batch = queued(entry).slice(0, entry.token ? undefined : entry.most);
          [from, id] = [entry, campaignId];
          entry.receipt!.fate = "on-its-way"; // from here on it may arrive, and is in the person's log
          for (const report of batch) report.at ??= now;
        }
      },
      false,
    );
    if (!batch.length) return wait;
    const body = encodeUpload(
      batch.map(({ question, id, payload }) => ({ question, id: unhex(id), payload: unhex(payload) })),
      from!.length ?? 0,
    );
    const answer = await post(fetch, relay, `${from!.consent.url}/v1/campaigns/${id}/reports`, body, from!, policy);
    await changeState(
      install,
      ({ campaigns }) => {
        const now = clock();
        // What is due when the upload of another ends gets a moment anew: the server chooses when it answers.
        for (const entry of Object.values(campaigns)) if (entry.due! <= now) entry.due = null;
        const entry = campaigns[id]; // gone, where it was erased
        if (entry)
          judge(
            entry,
            batch.map((report) => report.id),
            answer,
            now,
            jitter(),
            policy,
          );
      },
      false,
    );
    return 0;
  });
}

/**
 * Sends an upload with its token, sealed by a relay where it has a gateway, and the relay's own token outside; nothing
 * leaves where that cannot be done.
 */
export async function post(
  fetch: Fetch,
  relay: string | undefined,
  url: string,
  body: Uint8Array,
  { token, consent: { gateway } }: Entry,
  policy: Policy,
): Promise<Answer | null> {
  const shown = (name: string, one?: string) => one && { [name]: `PrivateToken token="${one}"` };
  const plain = {
    headers: { "Content-Type": MEDIA_TYPE, ...shown("Authorization", token?.slice(0, TOKEN)) },
    body,
    read: undefined,
  };
  let sent: typeof plain | Sealed = plain;
  if (gateway)
    try {
      ensure(relay, "not-installed");
      sent = await (await sealing()).seal(gateway, url, plain.headers, body);
    } catch {
      return failed("not-installed");
    }
  return exchange(
    fetch,
    gateway ? relay! : url,
    {
      method: "POST",
      headers: { ...sent.headers, ...(gateway && shown("LDP-Relay-Token", token?.slice(TOKEN))) },
      body: sent.body as BufferSource,
      keepalive: sent.body.length < MOST_KEPT_ALIVE,
    },
    policy,
    sent.read,
  );
}
