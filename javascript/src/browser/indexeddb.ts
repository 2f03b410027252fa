import { LdpError } from "../errors.js";
import { inTurn, type Storage } from "../device/storage.js";

const TABLE = "texts";
const ROOM = 1 << 16; // bytes

/**
 * IndexedDB, with strict durability: a change is one transaction, which all tabs and workers of the origin take in turn.
 * Reading makes no database. Throws LdpError `storage-full` or `storage-unavailable`.
 */
export function browserStorage(name = "ldp-bayes"): Storage {
  const mine = inTurn();
  const failed = (error: unknown): LdpError =>
    new LdpError(/Quota/.test((error as Error)?.name) ? "storage-full" : "storage-unavailable", String(error), {
      cause: error,
    });
  /** What the platform gives; where site data is blocked it throws instead. */
  const tried = <T>(make: () => T): T => {
    try {
      return make();
    } catch (error) {
      throw failed(error);
    }
  };

  const resultOf = <T>(request: IDBRequest<T>): Promise<T> =>
    new Promise((done, fail) => {
      request.onsuccess = () => done(request.result);
      request.onerror = (event) => {
        event.preventDefault();
        fail(failed(request.error));
      };
    });
  /** The database; null where there is none and none is to be made. */
  const open = async (make: boolean): Promise<IDBDatabase | null> => {
    const request = tried(() => indexedDB.open(name));
    let missing = false;
    request.onupgradeneeded = () => {
      missing = !make;
      if (make) request.result.createObjectStore(TABLE);
      else request.transaction!.abort(); // there is none, and there shall be none
    };
    return resultOf(request).catch((error) => {
      if (missing) return null;
      throw error;
    });
  };

  const transact = async (
    mode: IDBTransactionMode,
    work: (table: IDBObjectStore, fail: (error: unknown) => void) => void,
  ): Promise<void> => {
    const database = await open(mode === "readwrite");
    if (!database) return;
    let thrown: unknown;
    await new Promise<void>((done, fail) => {
      const transaction = tried(() => database.transaction(TABLE, mode, { durability: "strict" }));
      transaction.oncomplete = () => done();
      transaction.onabort = () => fail(thrown ?? failed(transaction.error));
      work(transaction.objectStore(TABLE), (error) => {
        thrown = error;
        transaction.abort();
      });
    }).finally(() => database.close());
  };

  return {
    async read(key) {
      let found: string | null = null;
      await transact("readonly", (table) => {
        table.get(key).onsuccess = ({ target }) => (found = (target as IDBRequest).result ?? null);
      });
      return found;
    },
    change: (key, change) =>
      transact("readwrite", (table, fail) => {
        table.get(key).onsuccess = ({ target }) => {
          try {
            const before: string | null = (target as IDBRequest).result ?? null;
            const after = change(before);
            if (after === null) table.delete(key);
            else if (after !== before) table.put(after, key);
          } catch (error) {
            fail(error);
          }
        };
      }),
    async check() {
      const { quota = Infinity, usage = 0 } =
        (await globalThis.navigator?.storage?.estimate?.().catch(() => null)) ?? {};
      if (quota - usage < ROOM) throw new LdpError("storage-full");
    },
    async clear() {
      await resultOf(tried(() => indexedDB.deleteDatabase(name)));
    },
    exclusive: <T>(work: () => Promise<T>) =>
      (globalThis.navigator?.locks?.request(name, work) as Promise<T> | undefined) ?? mine(work),
  };
}
