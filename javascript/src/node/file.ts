import {
  closeSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { LdpError } from "../errors.js";
import { inTurn, type Storage } from "../device/storage.js";

/**
 * A folder of files, safe with several processes. Every change is a new file `KEY.NUMBER`, written whole and given its name
 * by a link, which fails where another process was faster: then the change is made again on what that one wrote. The
 * file of the highest number holds; it is never deleted, so that a number is never given twice. Nothing locks, and nothing is
 * left locked by a process that was killed. Throws LdpError `storage-unavailable`.
 */
export function fileStorage(folder: string): Storage {
  const mine = inTurn();

  const guarded = async <T>(work: () => T): Promise<T> => {
    try {
      return work();
    } catch (error) {
      throw (error as NodeJS.ErrnoException).syscall ? new LdpError("storage-unavailable", String(error)) : error;
    }
  };

  const place = (key: string, number: number): string => join(folder, `${encodeURIComponent(key)}.${number}`);

  const sync = (path: string, flags: string, text?: string): void => {
    const file = openSync(path, flags, 0o600);
    try {
      if (text !== undefined) writeFileSync(file, text);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
  };

  const numbers = (key: string): number[] => {
    const prefix = `${encodeURIComponent(key)}.`;
    try {
      return readdirSync(folder)
        .filter((name) => name.startsWith(prefix))
        .map((name) => Number(name.slice(prefix.length)))
        .filter(Number.isInteger)
        .sort((a, b) => a - b);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
      throw error;
    }
  };

  /** The newest number and its text; an empty file says that the text was deleted. */
  const newest = (key: string): [number, string | null] => {
    for (;;) {
      const number = numbers(key).pop();
      if (number === undefined) return [0, null];
      try {
        return [number, readFileSync(place(key, number), "utf8") || null];
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error; // newer ones have replaced it
      }
    }
  };

  const tryChange = (key: string, change: (before: string | null) => string | null): boolean => {
    const [number, before] = newest(key);
    const after = change(before);
    if (after === before) return true;
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const [draft, name] = [join(folder, `draft-${randomBytes(8).toString("hex")}`), place(key, number + 1)];
    try {
      sync(draft, "wx", after ?? "");
      linkSync(draft, name);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
      throw error;
    } finally {
      rmSync(draft, { force: true });
    }
    sync(folder, "r");
    const all = numbers(key);
    if (all[all.length - 1] !== number + 1) {
      // a name that others had used and left behind, or they were faster still
      rmSync(name, { force: true });
      return false;
    }
    for (const old of all.slice(0, -1)) rmSync(place(key, old), { force: true });
    return true;
  };

  return {
    read: (key) => guarded(() => newest(key)[1]),
    change: (key, change) =>
      guarded(() => {
        while (!tryChange(key, change)) continue;
      }),
    clear: () => guarded(() => rmSync(folder, { recursive: true, force: true })),
    exclusive: mine,
  };
}
