import type { CampaignDocument } from "../document/types.js";
import { ensure } from "../errors.js";
import { codeOf, type Logger, type Tell } from "../log.js";
import { DeviceCampaign } from "./campaign.js";
import { step, type Answering } from "./answering.js";
import { changeState, checkCap, keyOf, landed, stateOf, type Install } from "./install.js";
import { parseCampaign } from "../document/campaign.js";
import { crowds, words } from "./later.js";
import type { Ledger, SentReport } from "./ledger.js";
import { checkRelay, checkUrl, publicBase, pause, type Fetch } from "./network.js";
import { IDLE_CHECK, POLICY, RELAYED, type Caps, type Policy } from "./policy.js";
import type { Signer } from "./signer.js";
import type { State } from "./state.js";
import { inTurn, type Storage } from "./storage.js";

const LEAST_IDENTITY = 32; // bytes

export interface DeviceOptions {
  /** Hard cap on the privacy loss over all campaigns. */
  readonly maxTotalEpsilon: number;
  /**
   * Whose loss that is. `"per installation"`: of this storage. A browser may delete it, and then a new device begins; a backup
   * may put it back to before an answer, and then it answers again, which only the folder in Node notices. Or 32 or more secret random
   * bytes of an account, the same on all of its devices and unknown to the aggregator: all are then asked the same question and answer
   * under the same ids, of which one answer is counted. The noise is each device's own, so that whoever sees the answers of two has
   * twice the loss. Whoever knows the bytes, such as the backend that hands them out, can tell which answers are the account's;
   * a campaign with an issuer, which shall not tell that, is refused with `bad-identity`.
   */
  readonly identity: Uint8Array | "per installation";
  readonly fetch?: Fetch;
  /**
   * The address of a relay (RFC 9458), on another host than any aggregator's. Documents, models, directories and standings
   * are fetched from it, beside that address, and uploads to campaigns with a gateway go by it, sealed by the package
   * `@hpke/core`; it sees who sends and nothing of what. Without one such a campaign is refused.
   */
  readonly relay?: string | undefined;
  /** Where each step and each failure is told with its cause, such as `logTo()`, the console; nothing of a person is. */
  readonly log?: Logger;
  /** Milliseconds since 1970. */
  readonly now?: () => number;
  readonly policy?: Partial<Policy>;
}

/** One install of an app. Making one touches neither network nor storage; nothing is written before somebody decides. */
export class Device {
  private readonly install: Install;
  private stop: AbortController | undefined;

  /** Throws LdpError `bad-cap`, `bad-identity` or `bad-relay`. `parts`: what is loaded else once somebody has agreed. */
  constructor(
    storage: Storage,
    { maxTotalEpsilon, identity, fetch, relay, log, now = Date.now, policy }: DeviceOptions,
    parts?: Answering,
  ) {
    const account = identity instanceof Uint8Array ? identity : undefined;
    ensure(account ? account.length >= LEAST_IDENTITY : identity === "per installation", "bad-identity");
    const tell: Tell = (...step) => log?.tell(now(), ...step);
    const plain: Fetch = fetch ?? ((url, init) => globalThis.fetch(url, init));
    this.install = {
      storage,
      maxTotalEpsilon: checkCap(maxTotalEpsilon),
      identity: account,
      fetch: log?.told(plain, tell) ?? plain,
      relay: relay === undefined ? relay : checkRelay(relay),
      now,
      policy: { ...POLICY, ...(relay && { firstDelay: RELAYED }), ...policy },
      key: keyOf(account),
      tell,
      parts,
      revoked: new Map(),
    };
  }

  /**
   * A campaign, as this device sees it; touches neither network nor storage. `publisher` (`signedBy` a key) has to have
   * signed campaign and model; without one the aggregator is believed. Throws LdpError `bad-url`, `bad-cap`,
   * `bad-campaign-id`, or `bad-relay` where the device's relay is on the aggregator's host.
   */
  campaign<D extends CampaignDocument = CampaignDocument>(
    url: string,
    id: string,
    { publisher, ...caps }: Caps & { readonly publisher?: Signer | undefined },
  ): DeviceCampaign<D> {
    ensure(/^[\w-]{43}$/.test(id), "bad-campaign-id");
    url = checkUrl(url);
    publicBase(url, this.install.relay);
    for (const cap of [caps.maxEpsilon, caps.maxCrowdEpsilon ?? 1, caps.maxIfBothCollude ?? 1]) checkCap(cap);
    return new DeviceCampaign<D>(this.install, url, id, caps, publisher);
  }

  /** What was spent in all campaigns; its text is for the person. Throws what the storage throws, as `sent` does. */
  async ledger(): Promise<Ledger> {
    return (await words()).ledgerOf(this.install, await stateOf(this.install));
  }

  /** Every report whose upload began, whatever the server said of it. */
  async sent(): Promise<SentReport[]> {
    return (await words()).sentReports(this.install, await stateOf(this.install), parseCampaign, crowds);
  }

  /** The person's switch, on unless it was turned off. */
  async enabled(): Promise<boolean> {
    return (await stateOf(this.install)).enabled;
  }

  /** Off, nothing is answered and nothing is sent, now or after a restart; what is queued waits. */
  async enable(enabled: boolean): Promise<void> {
    await changeState(this.install, (state) => (state.enabled = enabled));
    this.install.wake?.();
  }

  /** A copy of everything that is kept about the person, except the secret. */
  async export(): Promise<Omit<State, "secret">> {
    const { secret, ...rest } = await stateOf(this.install);
    return rest;
  }

  /**
   * Deletes what is kept about the person, damaged or not: of an account its own, else everything in the storage, which
   * `storage.clear()` does in any case. What follows is a new device; what was sent stays sent: an answer that was counted is a
   * number in a sum, and nobody can take it out. How long a server keeps what it could be found by is with the operator (`keep_days` of
   * the campaign, where it promises that).
   */
  async erase(): Promise<void> {
    const { storage, identity, key } = this.install;
    await (identity ? storage.change(key, () => null) : storage.clear());
    await landed(this.install);
  }

  /**
   * Delivers what is due within `timeout` milliseconds; true when nothing is left to send. For hosts with a schedule of
   * their own, such as service workers. Never throws.
   */
  async runOnce(timeout: number, firstDelay = 0): Promise<boolean> {
    const until = Date.now() + timeout;
    for (;;) {
      const wait = await this.step(firstDelay);
      if (wait === undefined) return true;
      if (Date.now() + wait > until) return false;
      await pause(wait);
    }
  }

  /** One step of the delivery; what fails is left alone for a while. */
  private step(firstDelay: number): Promise<number | undefined> {
    return step(this.install, firstDelay).catch((error) => {
      this.install.tell("delivery", "", codeOf(error), error);
      return Infinity;
    });
  }

  /** Delivers in the background until `close`: when it is due, and when the page is seen or the network is back. */
  start(firstDelay = this.install.policy.firstDelay): void {
    if (this.stop) return;
    const { signal } = (this.stop = new AbortController());
    const turn = inTurn();
    let timer: any;
    const look = (): Promise<void> =>
      turn(async () => {
        clearTimeout(timer);
        let wait: number | undefined;
        while (!signal.aborted && (wait = await this.step(firstDelay)) === 0) continue;
        if (signal.aborted) return;
        timer = setTimeout(look, Math.min(wait ?? Infinity, IDLE_CHECK));
        timer.unref?.();
      });
    for (const name of ["online", "visibilitychange"]) globalThis.addEventListener?.(name, look, { signal });
    this.install.wake = look;
    void look();
  }

  /** Stops the background delivery; unsent reports stay queued. */
  close(): void {
    this.stop?.abort();
    this.stop = this.install.wake = undefined;
  }
}
