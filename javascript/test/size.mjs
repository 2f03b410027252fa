// How many bytes each way to use the package takes, minified and compressed: `node test/size.mjs` holds it to size.json.
import { build } from "esbuild";
import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { minify } from "terser";

const here = (path) => new URL(path, import.meta.url);

/** Bytes of the module that a bundler makes of `source`, minified and compressed; parts loaded later are left out with `first`. */
export async function sizeOf(source, first = false) {
  const { outputFiles } = await build({
    stdin: { contents: source, resolveDir: here("..").pathname, sourcefile: "first.js" },
    bundle: true, format: "esm", write: false, platform: "browser", outdir: "/", splitting: first,
  });
  const text = (name) => outputFiles.find(({ path }) => path.endsWith(name)).text;
  // With splitting, what is imported at once are the entry and the chunks that it imports statically.
  const loaded = new Set();
  const load = (name) => {
    if (loaded.has(name)) return;
    loaded.add(name);
    for (const [, found] of text(name).matchAll(/(?:from|import) ?"\.\/(chunk[^"]+)"/g)) load(found);
  };
  load(outputFiles.find(({ path }) => path.endsWith("stdin.js") || path.endsWith("first.js")).path.split("/").pop());
  let whole = "";
  for (const name of loaded) whole += (await minify(text(name), { module: true, ecma: 2020, compress: { passes: 3 } })).code;
  return gzipSync(whole, { level: 9 }).length;
}

if (process.argv[1] === here("").pathname) {
  let failed = false;
  for (const [name, { source, bytes, first }] of Object.entries(JSON.parse(readFileSync(here("size.json"), "utf8")))) {
    const found = await sizeOf(source, first);
    failed ||= found > bytes;
    console.log(`${found > bytes ? "TOO LARGE" : "ok"}  ${name}: ${found} of at most ${bytes} bytes`);
  }
  process.exitCode = failed ? 1 : 0;
}
