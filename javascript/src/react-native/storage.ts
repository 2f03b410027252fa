import { LdpError } from "../errors.js";
import { inTurn, type Storage } from "../device/storage.js";

/**
 * What @react-native-async-storage/async-storage and others like it have. `setItem` must be atomic, and on disk when it
 * resolves.
 */
export interface KeyValueStore {
  getItem(key: string): Promise<string | null>;
  setItem(key: string, value: string): Promise<void>;
  removeItem(key: string): Promise<void>;
  getAllKeys(): Promise<readonly string[]>;
}

const ROOM = "-".repeat(1 << 14);

const made = new WeakMap<KeyValueStore, Map<string, Storage>>();

/**
 * A storage on a key-value store: one for a store and a prefix, however often it is asked for, because changes take turns in
 * it. An app is one process. Throws LdpError `storage-unavailable`.
 */
export function keyValueStorage(store: KeyValueStore, prefix = "ldp-bayes/"): Storage {
  const of = made.get(store) ?? new Map<string, Storage>();
  made.set(store, of);
  const storage = of.get(prefix) ?? storageOn(store, prefix);
  of.set(prefix, storage);
  return storage;
}

function storageOn(store: KeyValueStore, prefix: string): Storage {
  const [changes, uploads] = [inTurn(), inTurn()];
  const done = async <T>(work: Promise<T>): Promise<T> => {
    try {
      return await work;
    } catch (error) {
      throw new LdpError("storage-unavailable", String(error));
    }
  };
  return {
    read: (key) => done(store.getItem(prefix + key)),
    change: (key, change) =>
      changes(async () => {
        const before = await done(store.getItem(prefix + key));
        const after = change(before);
        if (after === null) await done(store.removeItem(prefix + key));
        else if (after !== before) await done(store.setItem(prefix + key, after));
      }),
    check: () =>
      changes(async () => {
        await done(store.setItem(`${prefix}room`, ROOM));
        await done(store.removeItem(`${prefix}room`));
      }),
    clear: () =>
      changes(async () => {
        for (const key of await done(store.getAllKeys())) if (key.startsWith(prefix)) await done(store.removeItem(key));
      }),
    exclusive: uploads,
  };
}
