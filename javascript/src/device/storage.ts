import type { LdpError } from "../errors.js";

/**
 * What a device needs of a storage: four methods on texts. Whatever fails throws; nothing is changed then.
 *
 * A device keeps one text with everything that it must not lose (secret, ledger, consents, drawn answers, queue), so that
 * one atomic change debits the ledger and queues the report.
 */
export interface Storage {
  /** The text under a key, null where there is none. Must not create anything. */
  read(key: string): Promise<string | null>;
  /**
   * Replaces the text under a key by what `change` makes of it (null: deletes it), at once and all or nothing, one caller
   * after the other among all tabs, workers and processes on this storage. Resolved: it is on disk. `change` may be called
   * again on a newer text; where it throws, nothing is changed and its error is thrown.
   */
  change(key: string, change: (before: string | null) => string | null): Promise<void>;
  /** Why nothing may be answered from what is kept under a key, where a storage can tell that it is a copy of another. */
  refusal?(key: string): Promise<LdpError | null>;
  /** Throws where nothing could be kept now, as far as a storage can tell: nobody is then asked. It leaves nothing behind. */
  check?(): Promise<void>;
  /** Deletes everything. */
  clear(): Promise<void>;
  /** Does some work while no other tab does its own, where the platform can tell: it saves uploads, no promise needs it. */
  exclusive<T>(work: () => Promise<T>): Promise<T>;
}

/** One after the other, within this process. */
export function inTurn(): Storage["exclusive"] {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const mine = last.then(work, work);
    last = mine.catch(() => {});
    return mine;
  };
}
