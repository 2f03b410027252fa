// Runs every test vector:   node test/check_vectors.mjs [folder of vectors] [module of the client]
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { checkVectors, FILES, partsBeside } from "./support/vectors.mjs";

const here = (path) => new URL(path, import.meta.url);
const folder = process.argv[2] ? pathToFileURL(`${resolve(process.argv[2])}/`) : here("../../protocols/vectors/");
const module = process.argv[3] ? pathToFileURL(resolve(process.argv[3])).href : here("../dist/core.js").href;
const client = await import(module);
const parts = await partsBeside(module);
const read = (name) => JSON.parse(readFileSync(new URL(`${name}.json`, folder), "utf8"));
console.log(
  JSON.stringify(await checkVectors(client, parts, Object.fromEntries(FILES.map((name) => [name, read(name)])))),
);
