// What the campaigns of a device share: its storage, its state in it, and one sender for all of them.
import { hex, utf8 } from "../bytes.js";
import { ensure } from "../errors.js";
import { randomBytes } from "../exact/coins.js";
import { hmac } from "../exact/sha256.js";
import type { Tell } from "../log.js";
import { pause, type Fetch } from "./network.js";
import { CLOSE_TIMEOUT, type Policy } from "./policy.js";
import { given, pack, queued, unpack, type Entry, type State } from "./state.js";
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
  /** What answers, where it came with the device. */
  readonly parts: object | undefined;
  /** Withdrawals that could not be stored, by campaign and moment: they hold in this process until a later consent. */
  readonly revoked: Map<string, number>;
  wake?: (() => void) | undefined;
}

export const keyOf = (identity: Uint8Array | undefined): string =>
  identity ? `account ${hex(hmac(identity, utf8("storage")))}` : "device";

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

/** What may leave, of every campaign in which something waits. */
export const waits = ({ enabled, campaigns }: State): [string, Entry][] =>
  Object.entries(campaigns).filter(([, entry]) => enabled && given(entry) && queued(entry).length);

export function checkCap(cap: number): number {
  ensure(cap > 0 && cap < Infinity, "bad-cap");
  return cap;
}
