import {
  closeSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { randomBytes } from "node:crypto";
import { basename, dirname, join, resolve } from "node:path";
import { LdpError } from "../errors.js";
import { unpack } from "../device/state.js";
import { inTurn, type Storage } from "../device/storage.js";
import { isHere, placeOf } from "./place.js";

const LEDGER = /^(device$|account )/; // the keys of what must not be answered from twice
const ERASED = ""; // of no key: whatever has the number of its newest file, or a lower one, is gone
const DELETED = "deleted";
const DRAFT = /^draft-\w+$/;
const ROOM = 1 << 16; // bytes
const LEFT_AFTER = 864e5; // milliseconds; a draft is written and named at once

/** What a key holds: the newest number, the number under which its receipts changed last, and the text. */
interface Held {
  readonly number: number;
  readonly mark: number;
  readonly text: string | null;
}

const codeOf = (error: unknown): string | undefined => (error as NodeJS.ErrnoException).code;

const problemOf = (error: unknown): string =>
  /^(ENOSPC|EDQUOT|EFBIG)$/.test(codeOf(error)!)
    ? "storage-full"
    : /^(EROFS|EACCES|EPERM)$/.test(codeOf(error)!)
      ? "storage-read-only"
      : "storage-unavailable";

/** The number of a file of a key, NaN for any other. */
const numberOf = (name: string, key: string): number => {
  const prefix = `${encodeURIComponent(key)}.`;
  return name.startsWith(prefix) ? Number(name.slice(prefix.length)) : NaN;
};

const keyOf = (name: string): string => decodeURIComponent(name.slice(0, Math.max(0, name.lastIndexOf("."))));

/** The answers that a ledger has receipts of. */
function receiptsOf(text: string | null): string[] {
  try {
    const { campaigns } = unpack(text);
    return Object.values(campaigns).flatMap(({ receipt }) => (receipt ? `${receipt.campaignId} ${receipt.at}` : []));
  } catch {
    return []; // nothing, or damaged, which whoever reads it says
  }
}

/**
 * A folder of files, safe with several processes. Every change is a new file `KEY.NUMBER`, written whole and given its name
 * by a link, which fails where another process was faster: then the change is made again on what that one wrote. The
 * file of the highest number holds; a number is never given twice, also not after an erasure, which is a file of a number of
 * its own. Nothing locks, and nothing is left locked by a process that was killed.
 *
 * `KEY.here` says which state of a ledger was the last to answer, and where: one that was copied, or put back, answers nothing
 * further (`copied-storage`). `adopt` is for a folder that was moved: the app vouches that nothing else answers from it, and
 * that no later state of it ever did. Throws LdpError `storage-full`,
 * `storage-read-only` or `storage-unavailable` for what the file system refuses: try again.
 */
export function fileStorage(path: string): Storage & { adopt(): Promise<void> } {
  const folder = resolve(path);
  const mine = inTurn();

  const guarded = async <T>(work: () => T): Promise<T> => {
    try {
      return work();
    } catch (error) {
      throw (error as NodeJS.ErrnoException).syscall ? new LdpError(problemOf(error), String(error)) : error;
    }
  };

  const place = (key: string, suffix: number | "here"): string => join(folder, `${encodeURIComponent(key)}.${suffix}`);
  const draft = (): string => join(folder, `draft-${randomBytes(8).toString("hex")}`);
  /** Whether a draft was left by a process that was killed. */
  const isLeft = (name: string): boolean =>
    DRAFT.test(name) &&
    Date.now() - (statSync(join(folder, name), { throwIfNoEntry: false })?.mtimeMs ?? Infinity) > LEFT_AFTER;

  const sync = (name: string, flags: string, text?: (file: number) => string): void => {
    const file = openSync(name, flags, 0o600);
    try {
      if (text) writeFileSync(file, text(file));
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
  };

  /** Makes the folder where there is none, so that a loss of power does not unmake it. */
  const makeFolder = (): void => {
    const first = mkdirSync(folder, { recursive: true, mode: 0o700 });
    for (let made = folder; first && made.length >= first.length; made = dirname(made)) sync(dirname(made), "r");
  };

  const names = (): string[] => {
    try {
      return readdirSync(folder);
    } catch (error) {
      if (codeOf(error) === "ENOENT") return [];
      throw error;
    }
  };

  /** The highest number of a key's files, and that of the last erasure. */
  const highest = (key: string): { own: number; erased: number } => {
    const all = names();
    const of = (one: string): number => Math.max(0, ...all.map((name) => numberOf(name, one) || 0));
    return { own: of(key), erased: of(ERASED) };
  };

  const newest = (key: string): Held => {
    for (;;) {
      const { own, erased } = highest(key);
      if (own <= erased) return { number: erased, mark: 0, text: null };
      try {
        const content = readFileSync(place(key, own), "utf8");
        if (content === DELETED) return { number: own, mark: 0, text: null };
        const end = content.indexOf(" ");
        return { number: own, mark: Number(content.slice(0, end)), text: content.slice(end + 1) };
      } catch (error) {
        if (codeOf(error) !== "ENOENT") throw error; // newer ones have replaced it
      }
    }
  };

  /** From now on no state of a ledger from before this number answers, nor any copy. */
  const settle = (key: string, number: number): void => {
    const name = draft();
    try {
      sync(name, "wx", (file) => JSON.stringify({ number, ...placeOf(file, folder) }));
      renameSync(name, place(key, "here"));
    } catch (error) {
      if (codeOf(error) !== "ENOENT") throw error; // erased meanwhile
    }
  };

  const copied = (key: string, { mark, text }: Held): LdpError | null =>
    text === null || isHere(place(key, "here"), mark)
      ? null
      : new LdpError(
          "copied-storage",
          "the folder is a copy, or was put back; adopt() it if it was moved and is the only one",
        );

  const tryChange = (key: string, change: (before: string | null) => string | null): boolean => {
    const held = newest(key);
    const next = held.number + 1;
    let [after, moved]: [string | null, boolean] = [null, false];
    try {
      after = change(held.text);
      if (after === held.text) return true;
      if (LEDGER.test(key)) {
        const [known, now] = [receiptsOf(held.text), receiptsOf(after)];
        const wrong = now.some((one) => !known.includes(one)) ? copied(key, held) : null;
        if (wrong) throw wrong;
        moved = held.text === null || known.join() !== now.join();
      }
    } catch (error) {
      if (newest(key).number !== held.number) return false; // it was about what holds no longer
      throw error;
    }
    makeFolder();
    // Before the first state of a ledger: a process that is killed in between must not leave one that looks like a copy.
    if (moved && held.text === null) settle(key, next);
    const [written, name] = [draft(), place(key, next)];
    try {
      sync(written, "wx", () => (after === null ? DELETED : `${moved ? next : held.mark} ${after}`));
      linkSync(written, name);
    } catch (error) {
      if (["EEXIST", "ENOENT"].includes(codeOf(error)!)) return false; // others were faster, or have erased it
      throw error;
    } finally {
      rmSync(written, { force: true });
    }
    sync(folder, "r");
    const { own, erased } = highest(key);
    if (own !== next || erased >= next) {
      // a name that others had used and left behind, or they were faster still, or have erased it
      rmSync(name, { force: true });
      return false;
    }
    for (const old of names()) {
      const isGone = numberOf(old, keyOf(old)) <= erased && numberOf(old, ERASED) !== erased;
      if (isGone || numberOf(old, key) < next || isLeft(old)) rmSync(join(folder, old), { force: true });
    }
    if (moved && held.text !== null) settle(key, next);
    return true;
  };

  /** Writes, and deletes, where the folder is or would be made. */
  const check = (): void => {
    let made = folder;
    while (!statSync(made, { throwIfNoEntry: false }) && dirname(made) !== made) made = dirname(made);
    const name = join(made, basename(draft()));
    try {
      sync(name, "wx", () => "-".repeat(ROOM));
    } finally {
      rmSync(name, { force: true });
    }
  };

  const clear = (): void => {
    let erased = 0;
    const highestOfAll = (): number => Math.max(0, ...names().map((name) => numberOf(name, keyOf(name)) || 0));
    if (!names().length) return;
    do {
      erased = highestOfAll() + 1;
      try {
        sync(place(ERASED, erased), "wx", () => "");
        sync(folder, "r");
      } catch (error) {
        if (codeOf(error) !== "EEXIST") throw error;
        erased = 0; // somebody took the number
      }
    } while (highestOfAll() > erased); // they were faster: theirs is to be erased too
    for (const name of names()) if (numberOf(name, ERASED) !== erased) rmSync(join(folder, name), { force: true });
    sync(folder, "r");
  };

  return {
    read: (key) => guarded(() => newest(key).text),
    change: (key, change) =>
      guarded(() => {
        while (!tryChange(key, change)) continue;
      }),
    refusal: (key) => guarded(() => copied(key, newest(key))),
    check: () => guarded(check),
    clear: () => guarded(clear),
    adopt: () =>
      guarded(() => {
        for (const name of names()) {
          const key = keyOf(name);
          if (LEDGER.test(key) && newest(key).text !== null) settle(key, newest(key).mark);
        }
      }),
    exclusive: mine,
  };
}
