// How a folder that was copied or put back is told from the one that it was copied from, as far as a file can tell.
import { createHash } from "node:crypto";
import { closeSync, fstatSync, openSync, readFileSync, statSync } from "node:fs";
import { dirname } from "node:path";

const MACHINE_IDS = ["/etc/machine-id", "/var/lib/dbus/machine-id"];

type Place = Readonly<Record<"inode" | "born" | "machine", string>>;

/** A digest of the machine's id, which is not for others to read; empty where it has none. */
function machine(): string {
  for (const path of MACHINE_IDS)
    try {
      return createHash("sha256")
        .update(`machine ${readFileSync(path, "utf8").trim()}`)
        .digest("hex")
        .slice(0, 32);
    } catch {
      // There is none, or none to be read.
    }
  return "";
}

/** Where an open file of a folder is, and since when, which no copy keeps; only what can be told. */
export function placeOf(file: number, folder: string): Place {
  const { ino, birthtimeNs } = fstatSync(file, { bigint: true });
  const around = statSync(folder, { bigint: true });
  // Where a platform does not know when a file was made, it gives none, or the time of its last change.
  const knows = birthtimeNs > 0n && around.birthtimeNs !== around.ctimeNs;
  return { inode: String(ino), born: knows ? String(birthtimeNs) : "", machine: machine() };
}

/** Whether a file is where it was written, and says that a state of this mark is not older than the last that answered. */
export function isHere(path: string, mark: number): boolean {
  let file: number | undefined;
  try {
    file = openSync(path, "r");
    const { number, ...then } = JSON.parse(readFileSync(file, "utf8"));
    const now = placeOf(file, dirname(path));
    const same = (Object.keys(now) as (keyof Place)[]).every(
      (fact) => !then[fact] || !now[fact] || then[fact] === now[fact],
    );
    return same && number <= mark;
  } catch {
    return false;
  } finally {
    if (file !== undefined) closeSync(file);
  }
}
