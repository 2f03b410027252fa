// How a campaign stands, as its aggregator says once a day (UTC): whom it would refuse need not be asked.
import { LdpError } from "../errors.js";
import type { Install } from "./install.js";
import { exchange } from "./network.js";
import { STATE_AGE, STATE_RETRY, STATE_WAIT } from "./policy.js";

const LARGEST_STATE = 1024; // characters
// Any other word, of a later aggregator, stops nobody.
const REFUSED = /^(not-yet|closing|closed|full|deleted)$/;

/** What an aggregator, or its relay, said of one campaign. Where that cannot be heard, or is not understood, the campaign counts as open. */
export class Standing {
  private readonly key: string;
  private state = "";
  private heard = NaN;
  private tried = NaN;
  private asking: Promise<void> | undefined;

  constructor(
    private readonly install: Install,
    id: string,
  ) {
    this.key = `state ${id}`;
  }

  /** Why no new answer is taken, as far as that was heard on this day. */
  refusal(): LdpError | null {
    const { state } = this;
    if (!this.isFresh() || !REFUSED.test(state)) return null;
    return new LdpError(`campaign-${state === "not-yet" ? "not-open" : state}`);
  }

  /** Asks at the campaign's `path` where that was not done on this day, all callers once; `keep`s what is heard. Half of the time until a moment is for it. Throws nothing. */
  hear(path: string, keep: boolean, until: number): Promise<void> {
    return (this.asking ??= this.ask(path, keep, until).finally(() => (this.asking = undefined)));
  }

  /** Has what was heard beside the document, if that can be done. */
  async keep(): Promise<void> {
    const { key, heard, state, install } = this;
    if (heard) await install.storage.change(key, () => `${heard} ${state}`).catch(() => {});
  }

  private async ask(path: string, keep: boolean, until: number): Promise<void> {
    const { storage, fetch, policy, now } = this.install;
    const kept = this.isFresh() ? null : await storage.read(this.key).catch(() => null);
    const [heard, state] = kept?.split(" ") ?? [];
    if (state) [this.heard, this.state] = [Number(heard), state];
    const at = now();
    if (this.isFresh() || (this.tried <= at && at < this.tried + STATE_RETRY)) return;
    this.tried = at;
    const requestTimeout = Math.min(policy.requestTimeout, STATE_WAIT, (until - Date.now()) / 2);
    const answer = await exchange(fetch, `${path}/state`, {}, { ...policy, requestTimeout });
    try {
      if (answer?.status !== 200 || answer.body.length > LARGEST_STATE) return;
      this.state = JSON.parse(answer.body).state.trim();
      this.heard = at;
    } catch {
      return; // not understood
    }
    if (keep) await this.keep();
  }

  private isFresh(): boolean {
    const day = (time: number): number => Math.floor(time / STATE_AGE);
    return day(this.heard) === day(this.install.now());
  }
}
