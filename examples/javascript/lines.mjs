// This client as a program of lines, for an audit (see docs/privacy.md):
//   ldp-aggregator audit --command "node examples/javascript/lines.mjs"
import { createHash, randomBytes } from "node:crypto";
import { linkSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { parseDocument } from "./document.mjs";
import { encodeUpload, perturb } from "./encoder.mjs";
import { Refusal } from "./refusal.mjs";

let campaign, storage;
const memory = new Map(); // what devices keep that have no storage
const words = { nan: NaN, infinity: Infinity, "-infinity": -Infinity }; // values that JSON cannot say

/** What is kept under a name: the first text that any process kept there, whoever wins. */
function keep(name, make) {
  if (storage === undefined) {
    if (!memory.has(name)) memory.set(name, make());
    return memory.get(name);
  }
  const path = join(storage, createHash("sha256").update(name).digest("hex"));
  const draft = `${path}.${randomBytes(8).toString("hex")}`;
  try {
    return readFileSync(path, "utf8");
  } catch {
    writeFileSync(draft, make(), { flush: true });
    try {
      linkSync(draft, path); // all of it or nothing, and only if nobody was faster
    } catch (error) {
      if (error.code !== "EEXIST") throw error;
    } finally {
      rmSync(draft);
    }
    return readFileSync(path, "utf8");
  }
}

function recordOf({ record, odd = {} }) {
  if (Array.isArray(record) || Object(record) !== record) return record; // no record, and refused as such
  const whole = { ...record };
  for (const [name, word] of Object.entries(odd)) {
    if (word in words) whole[name] = words[word];
    else Object.defineProperty(whole, name, { get() { throw new Error(`${name} cannot be read`); } });
  }
  return whole;
}

function answer(line) {
  const record = recordOf(line);
  const upload = (secret) => encodeUpload(perturb(campaign, record, line.label, secret)).toString("hex");
  if (line.device === undefined) return upload(randomBytes(32));
  const secret = keep(`secret ${line.device}`, () => randomBytes(32).toString("hex"));
  return keep(`sent ${campaign.id} ${line.device}`, () => upload(Buffer.from(secret, "hex")));
}

for await (const text of createInterface({ input: process.stdin })) {
  const line = JSON.parse(text);
  if (line.storage !== undefined) storage = line.storage;
  let said;
  try {
    if (line.document !== undefined) campaign = parseDocument(Buffer.from(line.document));
    said = answer(line);
  } catch (error) {
    said = `!${error instanceof Refusal ? error.code : "unreadable-record"}`;
  }
  process.stdout.write(`${said}\n`);
}
