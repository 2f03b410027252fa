// This client as a program of lines, for an audit (see docs/privacy.md):
//   ldp-aggregator audit --command "node examples/javascript/lines.mjs"
import { randomBytes } from "node:crypto";
import { createInterface } from "node:readline";
import { parseDocument } from "./document.mjs";
import { encodeUpload, perturb } from "./encoder.mjs";
import { Refusal } from "./refusal.mjs";

let campaign;
const sent = new Map(); // what a device has contributed: it sends these bytes again, and nothing else
for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(`${answer(JSON.parse(line))}\n`);
}

function answer({ document, record, label, device }) { // an upload in hexadecimal, or ! and why there is none
  try {
    if (document !== undefined) campaign = parseDocument(Buffer.from(document));
    const key = device === undefined ? undefined : `${campaign.id} ${device}`;
    const upload = sent.get(key) ?? encodeUpload(perturb(campaign, record, label, randomBytes(32))).toString("hex");
    if (key !== undefined) sent.set(key, upload);
    return upload;
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    return `!${error.code}`;
  }
}
