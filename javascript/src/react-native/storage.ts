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

/** A storage on a key-value store. An app is one process, and makes one of these for a prefix: changes take turns in it. */
export function keyValueStorage(store: KeyValueStore, prefix = "ldp-bayes/"): Storage {
  const [changes, uploads] = [inTurn(), inTurn()];
  return {
    read: (key) => store.getItem(prefix + key),
    change: (key, change) =>
      changes(async () => {
        const before = await store.getItem(prefix + key);
        const after = change(before);
        if (after === null) await store.removeItem(prefix + key);
        else if (after !== before) await store.setItem(prefix + key, after);
      }),
    clear: () =>
      changes(async () => {
        for (const key of await store.getAllKeys()) if (key.startsWith(prefix)) await store.removeItem(key);
      }),
    exclusive: uploads,
  };
}
