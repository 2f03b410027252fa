// Keeps the storages of a device as this state of the code writes them, so that every later one has to read them:
//   node test/support/keep_storage.mjs ../tests/storages/NAME [dist]
// A device that has agreed and answered, and has not sent: a folder of Node's, and the texts that any other storage holds by key.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [folder, dist = new URL("../../dist", import.meta.url).pathname] = process.argv.slice(2);
const load = (path) => import(pathToFileURL(resolve(dist, path)).href);
const { Device, fileStorage } = await load("node/index.js");
const { memoryStorage } = await load("testing/index.js");
const { accepted } = JSON.parse(
  readFileSync(new URL("../../../protocols/vectors/documents.json", import.meta.url), "utf8"),
);
const { document, id } = accepted.find(({ name }) => name === "de-onebit");
const texts = new Map();
mkdirSync(folder, { recursive: true });
for (const storage of [memoryStorage(texts), fileStorage(join(folder, "file"))]) {
  const fetch = async () => {
    throw new TypeError("nobody is asked");
  };
  const options = { maxTotalEpsilon: 4, identity: "per installation", now: () => 18e11, fetch };
  const part = new Device(storage, options).campaign("https://collect.example.org", id, { maxEpsilon: 2 });
  await part.load(document);
  await part.grant();
  await part.contribute({ colour: "green", größe: 0.25, hours: 41.5 }, "yes");
}
writeFileSync(join(folder, "texts.json"), JSON.stringify(Object.fromEntries(texts), null, 1) + "\n");
