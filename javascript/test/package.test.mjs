import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { build } from "esbuild";
import { sizeOf } from "./size.mjs";

const ROOT = new URL("..", import.meta.url).pathname;
const ENTRIES = [
  "index",
  "browser/index",
  "classifier/index",
  "react-native/index",
  "testing/index",
  "debug/index",
  "worker/index",
  "publisher/index",
  "crowd/index",
];
const read = (path) => readFileSync(join(ROOT, path), "utf8");
const files = (folder) =>
  readdirSync(join(ROOT, folder)).flatMap((name) =>
    statSync(join(ROOT, folder, name)).isDirectory() ? files(join(folder, name)) : [join(folder, name)],
  );

/** What is published; the page to try is none of it. */
const modules = () => files("dist").filter((name) => name.endsWith(".js") && !name.startsWith("dist/try/"));

test("what is imported and not used leaves nothing in a bundle", async () => {
  for (const entry of [...ENTRIES, "node/index"]) {
    const { outputFiles } = await build({
      stdin: { contents: `import * as everything from "./dist/${entry}.js";`, resolveDir: ROOT },
      bundle: true,
      format: "esm",
      write: false,
      platform: "node",
    });
    assert.equal(outputFiles[0].text.replace(/^\/\/.*$/gm, "").trim(), "", entry);
  }
});

test("one part does not bring the others along", async () => {
  const [classifier, core] = [
    await sizeOf("export * from './dist/classifier/index.js'"),
    await sizeOf("export * from './dist/index.js'"),
  ];
  assert.ok((await sizeOf("export { Classifier } from './dist/index.js'")) < 1.05 * classifier);
  assert.ok(classifier < core / 3);
});

test("importing touches no storage, no network, no clock and no coin, as on a server that renders pages", () => {
  const guard = `
    const forbidden = ["indexedDB", "fetch", "crypto", "navigator", "localStorage", "setTimeout", "addEventListener", "document", "window"];
    for (const name of forbidden) Object.defineProperty(globalThis, name, { get() { throw new Error(name + " was touched"); } });
    await import(process.argv[1]);`;
  for (const entry of [...ENTRIES.map((name) => `dist/${name}.js`), "dist/ldp-bayes-client.min.js"]) {
    execFileSync(process.execPath, ["--input-type=module", "--eval", guard, join(ROOT, entry)], { stdio: "pipe" });
  }
});

test("everything in one module is imported by the package's name, and has the others' names and types", async () => {
  const found = Object.keys(await import("ldp-bayes-client/min"));
  for (const name of ["index", "browser/index", "classifier/index", "publisher/index"])
    assert.deepEqual(
      Object.keys(await import(`../dist/${name}.js`)).filter((one) => !found.includes(one)),
      [],
      name,
    );
  assert.match(read("dist/ldp-bayes-client.min.d.ts"), /export \* from "\.\/browser\/index\.js";/);
});

test("no module for browsers needs Node, and none a package but the hook, whose app has React, and sealing, where it may be missing", () => {
  for (const path of modules()) {
    for (const [, from] of read(path).matchAll(/(?:from|import)\s*\(?"([^"]+)"/g)) {
      assert.ok(
        from.startsWith(".") ||
          (from.startsWith("node:") && path.startsWith("dist/node/")) ||
          (from === "react" && path.startsWith("dist/react/")) ||
          (from === "@hpke/core" && /sealing/.test(path)),
        `${path} imports ${from}`,
      );
    }
  }
  assert.equal(JSON.parse(read("package.json")).dependencies, undefined);
});

test("what not every visit needs is loaded later, by the modules and by the one file, which stands beside what it loads", async () => {
  const apart = ["dist/ldp-bayes-client.min.js", "dist/ldp-bayes-client.answering.min.js"];
  for (const [path, ...parts] of [["dist/device/later.js", "dist/device/answering.js"], apart]) {
    const texts = [path, ...parts].map(read).join("\n");
    const found = [...new Set([...texts.matchAll(/import\("(\.[^"]+)"\)/g)].map(([, from]) => from))];
    assert.equal(found.length, 5, path);
    for (const from of found) assert.ok(Object.keys(await import(join(ROOT, path, "..", from))).length, from);
  }
});

test("an app that has not installed what seals is bundled all the same", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "app-"));
  t.after(() => rmSync(folder, { recursive: true }));
  cpSync(join(ROOT, "dist"), join(folder, "dist"), { recursive: true });
  const { errors, warnings } = await build({
    stdin: { contents: `export * from "./dist/browser/index.js";`, resolveDir: folder },
    bundle: true,
    format: "esm",
    write: false,
    platform: "browser",
  });
  assert.deepEqual([errors, warnings], [[], []]);
});

test("no code is made of texts, and nothing is sent that cannot be answered", () => {
  for (const path of modules()) {
    assert.doesNotMatch(read(path), /\beval\(|new Function\(|innerHTML|sendBeacon|unload|Math\.random/, path);
  }
});

test("the types tell what a record of a document may hold, and what is wrong", () => {
  execFileSync(join(ROOT, "node_modules/.bin/tsc"), ["--project", join(ROOT, "test/types")], { stdio: "inherit" });
});

test("where the platform has no generator of random numbers, nothing is drawn", () => {
  const program = `
    Object.defineProperty(globalThis, "crypto", { value: process.argv[2] === "none" ? undefined : {} });
    const { systemCoins } = await import(process.argv[1]);
    try { systemCoins().next(); } catch (error) { console.log(error.code); }`;
  for (const kind of ["none", "empty"]) {
    const said = execFileSync(
      process.execPath,
      ["--input-type=module", "--eval", program, join(ROOT, "dist/core.js"), kind],
      { encoding: "utf8" },
    );
    assert.equal(said.trim(), "no-randomness");
  }
});
