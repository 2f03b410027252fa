// Builds what is published: modules with their types, and one file for pages without a bundler.
import { execFileSync } from "node:child_process";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { build } from "esbuild";
import { minify } from "terser";

const here = (path) => new URL(path, import.meta.url).pathname;

rmSync(here("dist"), { recursive: true, force: true });
execFileSync(here("node_modules/.bin/tsc"), ["--project", here(".")], { stdio: "inherit" });
const { version } = JSON.parse(readFileSync(here("package.json"), "utf8"));
const source = ["index", "browser/index", "classifier/index"]
  .map((name) => `export * from "./dist/${name}.js";`)
  .join("\n");
const {
  outputFiles: [bundle],
} = await build({
  stdin: { contents: source, resolveDir: here(".") },
  bundle: true,
  format: "esm",
  write: false,
  platform: "browser",
});
const { code } = await minify(bundle.text, { module: true, ecma: 2020, compress: { passes: 3 } });
writeFileSync(here("dist/ldp-bayes-client.min.js"), `// ldp-bayes-client ${version}, Apache-2.0\n${code}\n`);
