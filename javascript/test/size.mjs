// How many bytes each way to use the package takes, minified and compressed: `node test/size.mjs` holds it to size.json.
import { build } from "esbuild";
import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";

const here = (path) => new URL(path, import.meta.url);
const most = JSON.parse(readFileSync(here("size.json"), "utf8"));

/** Bytes of a module that a bundler makes of `source`, after minification and gzip. */
export async function sizeOf(source) {
  const built = await build({
    stdin: { contents: source, resolveDir: here("..").pathname },
    bundle: true, minify: true, format: "esm", write: false, platform: "browser", target: "es2021",
  });
  return gzipSync(built.outputFiles[0].contents, { level: 9 }).length;
}

let failed = false;
for (const [name, { source, bytes }] of Object.entries(most)) {
  const found = await sizeOf(source);
  failed ||= found > bytes;
  console.log(`${found > bytes ? "TOO LARGE" : "ok"}  ${name}: ${found} of at most ${bytes} bytes`);
}
process.exitCode = failed ? 1 : 0;
