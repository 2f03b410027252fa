// Power cuts: what a disk holds of a folder when the machine stops, at every point of what a process does there. As in
// tests/support/power_cuts.py: for certain what was synced, and of the rest none, every name, or every removal.
import fs, { closeSync, mkdirSync, openSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { join, relative } from "node:path";

const WHICH = ["none of it", "every name", "every removal"];
const SYNCED = ["openSync", "fsyncSync", "linkSync", "renameSync", "rmSync", "mkdirSync"];

/** Runs `work` in the folder `root`, which exists; what the disk may hold at each point, and what `done` told by then. */
export async function powerCuts(root, done, work) {
  const real = Object.fromEntries(SYNCED.map((name) => [name, fs[name]]));
  const [folders, contents, opened, held, cuts] = [new Map(), new Map(), new Map(), new Map(), []];

  const nodeOf = (path) => {
    const { ino } = statSync(path);
    if (!held.has(ino)) held.set(ino, real.openSync(path, "r")); // no other file gets its number meanwhile
    return ino;
  };
  const look = (path) => {
    const node = nodeOf(path);
    const folder = folders.get(node) ?? { synced: {}, removed: new Set() };
    folders.set(node, folder);
    folder.live = {};
    for (const entry of readdirSync(path, { withFileTypes: true }))
      folder.live[entry.name] = entry.isDirectory() ? look(join(path, entry.name)) : nodeOf(join(path, entry.name));
    return node;
  };
  const laidOut = (node, which, path = "") => {
    const { live, synced, removed } = folders.get(node);
    const names = which === "every name" ? live : synced;
    return Object.entries(names).flatMap(([name, one]) => {
      if (which === "every removal" && removed.has(name)) return [];
      const place = join(path, name);
      return folders.has(one) ? [[place, null], ...laidOut(one, which, place)] : [[place, contents.get(one) ?? ""]];
    });
  };
  const cut = (before) => {
    look(root);
    for (const which of WHICH)
      cuts.push({ told: `${which}, before ${before}`, done: done(), files: laidOut(nodeOf(root), which) });
  };
  const below = (path) => !relative(root, path).startsWith("..");

  fs.openSync = (path, ...rest) => {
    const file = real.openSync(path, ...rest);
    opened.set(file, path);
    return file;
  };
  fs.fsyncSync = (file) => {
    const path = opened.get(file);
    if (!below(path)) return real.fsyncSync(file);
    cut(`fsync of ${relative(root, path)}`);
    real.fsyncSync(file);
    const node = nodeOf(path);
    if (statSync(path).isDirectory()) {
      look(root);
      Object.assign(folders.get(node), { synced: { ...folders.get(node).live }, removed: new Set() });
    } else contents.set(node, readFileSync(path, "utf8"));
  };
  for (const name of ["linkSync", "renameSync", "rmSync", "mkdirSync"])
    fs[name] = (path, ...rest) => {
      if (below(path)) cut(`${name} of ${relative(root, path)}`);
      if (name === "rmSync" && below(path)) folders.get(nodeOf(join(path, "..")))?.removed.add(path.split("/").pop());
      return real[name](path, ...rest);
    };
  look(root);
  syncBuiltinESMExports();
  try {
    await work();
  } finally {
    Object.assign(fs, real);
    syncBuiltinESMExports();
  }
  cut("the end");
  for (const file of held.values()) closeSync(file);
  const seen = new Set();
  const isNew = (key) => !seen.has(key) && seen.add(key);
  return cuts.filter(({ done, files }) => isNew(JSON.stringify([done, files])));
}

/** Makes a folder of what a disk holds. */
export function layOut(files, folder) {
  mkdirSync(folder, { recursive: true });
  for (const [name, text] of files)
    if (text === null) mkdirSync(join(folder, name));
    else writeFileSync(join(folder, name), text);
}
