// This client as a program of lines, for an audit (see docs/privacy.md):
//   ldp-aggregator audit --command "node examples/javascript/lines.mjs"
import { randomBytes } from "node:crypto";
import { createInterface } from "node:readline";
import { parseDocument } from "./document.mjs";
import { encodeUpload, perturb } from "./encoder.mjs";

let campaign;
const sent = new Map(); // what a device has contributed: it sends these bytes again, and nothing else
for await (const line of createInterface({ input: process.stdin })) {
  const { document, record, label, device } = JSON.parse(line);
  if (document !== undefined) campaign = parseDocument(Buffer.from(document));
  const key = device === undefined ? undefined : `${campaign.id} ${device}`;
  const upload = sent.get(key) ?? encodeUpload(perturb(campaign, record, label, randomBytes(32))).toString("hex");
  if (key !== undefined) sent.set(key, upload);
  process.stdout.write(`${upload}\n`);
}
