// How many bytes each way to use the package takes, minified and compressed: `node test/size.mjs` holds it to size.json.
import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { bundled } from "../bundle.mjs";

const here = (path) => new URL(path, import.meta.url);

/** Bytes of the module that `source` makes, minified and compressed. */
export const sizeOf = async (source) => gzipSync(await bundled(source), { level: 9 }).length;

if (process.argv[1] === here("").pathname) {
  let failed = false;
  for (const [name, { source, bytes }] of Object.entries(JSON.parse(readFileSync(here("size.json"), "utf8")))) {
    const found = await sizeOf(source);
    failed ||= found > bytes;
    console.log(`${found > bytes ? "TOO LARGE" : "ok"}  ${name}: ${found} of at most ${bytes} bytes`);
  }
  process.exitCode = failed ? 1 : 0;
}
