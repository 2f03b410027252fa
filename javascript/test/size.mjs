// How many bytes each way to use the package takes, minified and compressed: `node test/size.mjs` holds it to size.json.
import { build } from "esbuild";
import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { minify } from "terser";

const here = (path) => new URL(path, import.meta.url);

/** Bytes of the module that a bundler makes of `source`, minified and compressed, without the parts that are loaded `later`. */
export async function sizeOf(source, later = []) {
  const {
    outputFiles: [bundle],
  } = await build({
    stdin: { contents: source, resolveDir: here("..").pathname },
    bundle: true,
    format: "esm",
    write: false,
    platform: "browser",
    external: later,
  });
  return gzipSync((await minify(bundle.text, { module: true, ecma: 2020, compress: { passes: 3 } })).code, { level: 9 })
    .length;
}

if (process.argv[1] === here("").pathname) {
  let failed = false;
  for (const [name, { source, bytes, later }] of Object.entries(JSON.parse(readFileSync(here("size.json"), "utf8")))) {
    const found = await sizeOf(source, later);
    failed ||= found > bytes;
    console.log(`${found > bytes ? "TOO LARGE" : "ok"}  ${name}: ${found} of at most ${bytes} bytes`);
  }
  process.exitCode = failed ? 1 : 0;
}
