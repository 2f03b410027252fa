// What the campaigns of a device share: its storage, its state in it, and one sender for all of them.
import { hex, unhex, utf8 } from "../bytes.js";
import { ensure, type LdpError } from "../errors.js";
import { randomBytes } from "../exact/coins.js";
import { hmac } from "../exact/sha256.js";
import type { Tell } from "../log.js";
import { encodeUpload } from "../wire.js";
import { unsealable } from "./later.js";
import { failed, hasExpired, judge } from "./machine.js";
import { pause, post, type Fetch } from "./network.js";
import { CLOSE_TIMEOUT, RETRY_AFTER_LONGEST, type Policy } from "./policy.js";
import { given, pack, queued, unpack, type Entry, type Kept, type State } from "./state.js";
import type { Storage } from "./storage.js";

/** What an app gave to its device, and where the state of it is in the storage. */
export interface Install {
  readonly storage: Storage;
  readonly maxTotalEpsilon: number;
  readonly identity: Uint8Array | undefined;
  readonly fetch: Fetch;
  readonly relay: string | undefined;
  readonly now: () => number;
  readonly policy: Policy;
  readonly key: string;
  readonly tell: Tell;
  /** Withdrawals that could not be stored, by campaign and moment: they hold in this process until a later consent. */
  readonly revoked: Map<string, number>;
  wake?: (() => void) | undefined;
}

export const keyOf = (identity: Uint8Array | undefined): string =>
  identity ? `account ${hex(hmac(identity, utf8("storage"))).slice(0, 32)}` : "device";

/** The state of a text, as far as this process knows. */
function known({ revoked }: Install, text: string | null): State {
  const state = unpack(text);
  for (const [id, at] of revoked) {
    const consent = state.campaigns[id]?.consent;
    if (consent && !(consent.grantedAt! > at)) consent.withdrawnAt ??= at;
  }
  return state;
}

export const stateOf = async (install: Install): Promise<State> =>
  known(install, await install.storage.read(install.key));

/** Whether somebody has decided anything yet. */
export const exists = async ({ storage, key }: Install): Promise<boolean> => (await storage.read(key)) !== null;

/** Changes the state in one transaction; nothing is made by a change that `makes` nothing. */
export async function changeState(install: Install, change: (state: State) => void, makes = true): Promise<void> {
  const { storage, key, identity } = install;
  if (!makes && !(await exists(install))) return;
  await storage.change(key, (before) => {
    if (before === null && !makes) return null;
    const state = known(install, before);
    // An account's secret is the same on all of its devices.
    state.secret ||= hex(identity ? hmac(identity, utf8("secret")) : randomBytes(32));
    change(state);
    return pack(state);
  });
}

/** Waits for an upload under way, in whichever tab, two seconds at most. */
export const landed = ({ storage }: Install): Promise<unknown> =>
  Promise.race([storage.exclusive(async () => {}), pause(CLOSE_TIMEOUT)]);

/** One step of the delivery. Milliseconds until the next one is due; undefined where nothing waits. */
export async function step(install: Install, firstDelay: number): Promise<number | undefined> {
  const { storage, fetch, relay, now: clock, policy } = install;
  const waits = ({ enabled, campaigns }: State) =>
    Object.entries(campaigns).filter(([, entry]) => enabled && given(entry) && queued(entry).length);
  const waiting = waits(await stateOf(install));
  if (!waiting.length) return undefined;
  // Before this tab's turn begins: what seals may have to be loaded, and others need not wait for that.
  const muted = new Map<string, LdpError | null>();
  for (const [id, { consent }] of waiting) muted.set(id, await unsealable(consent.gateway, relay));
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
          const mute = muted.get(campaignId);
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

export function checkCap(cap: number): number {
  ensure(cap > 0 && cap < Infinity, "bad-cap");
  return cap;
}
