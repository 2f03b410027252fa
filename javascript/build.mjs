// Builds what is published: modules with their types, and one file for pages without a bundler, beside which stand what it loads later.
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { beside, bundled, LATER } from "./bundle.mjs";

const here = (path) => new URL(path, import.meta.url).pathname;

rmSync(here("dist"), { recursive: true, force: true });
execFileSync(here("node_modules/.bin/tsc"), ["--project", here(".")], { stdio: "inherit" });
const { version } = JSON.parse(readFileSync(here("package.json"), "utf8"));
const source = ["core", "browser/index", "classifier/index", "publisher/index"]
  .map((name) => `export * from "./dist/${name}.js";`)
  .join("\n");
const code = await bundled(source);
const write = (name, text) =>
  writeFileSync(here(`dist/ldp-bayes-client.${name}.js`), `// ldp-bayes-client ${version}, Apache-2.0\n${text}\n`);
write("min", code);
for (const part of LATER) write(`${part}.min`, await bundled(`export * from "./dist/later/${part}.js";`, beside));
for (const part of ["debug", "worker"]) write(`${part}.min`, await bundled(`export * from "./dist/${part}/index.js";`));
writeFileSync(here("dist/ldp-bayes-client.min.d.ts"), `${source.replaceAll("./dist/", "./")}\n`);

const { page } = await import("./try/build.mjs"); // It takes the modules that were just made.
mkdirSync(here("dist/try"));
for (const [name, text] of Object.entries(await page())) writeFileSync(here(`dist/try/${name}`), text);
