// This client as a program of lines, for an audit (docs/privacy.md). It runs the bundled file that pages load:
//   ldp-aggregator audit --command "node javascript/test/lines.mjs"
import { createHash } from "node:crypto";
import { join } from "node:path";
import { createInterface } from "node:readline";
import {
  Device,
  encodeUpload,
  hex,
  LdpError,
  parseCampaign,
  perturb,
  uploadLength,
} from "../dist/ldp-bayes-client.min.js";
import { fileStorage } from "../dist/node/file.js";
import { memoryStorage } from "../dist/testing/index.js";

const NOWHERE = "http://127.0.0.1:1";
const DAY = 864e5;
const ATTEMPTS = 100;
const words = { nan: NaN, infinity: Infinity, "-infinity": -Infinity }; // values that JSON cannot say
const devices = new Map();
let campaign, folder;

function recordOf({ record, odd = {} }) {
  if (Array.isArray(record) || Object(record) !== record) return record; // no record, and refused as such
  const whole = { ...record };
  for (const [name, word] of Object.entries(odd)) {
    if (word in words) whole[name] = words[word];
    else
      Object.defineProperty(whole, name, {
        get() {
          throw new Error(`${name} cannot be read`);
        },
      });
  }
  return whole;
}

/** One device whose uploads never arrive. */
class Stranded {
  sent = "";
  now = Date.UTC(2027, 0, 15);

  constructor(name) {
    const { epsilon } = campaign.privacy;
    const storage =
      folder === undefined
        ? memoryStorage()
        : fileStorage(join(folder, createHash("sha256").update(name).digest("hex")));
    const fetch = async (_, { body }) => {
      this.sent = hex(new Uint8Array(body));
      throw new TypeError("the connection is lost");
    };
    this.device = new Device(storage, {
      maxTotalEpsilon: 100 * epsilon,
      identity: "per installation",
      fetch,
      now: () => this.now,
    });
    this.campaign = this.device.campaign(NOWHERE, campaign.id, { maxEpsilon: epsilon });
  }

  /** What it sends for the record, now or again; `now` is the time on its clock, where a line says it. */
  async send(record, label, now) {
    if (now !== undefined) this.now = Date.parse(now);
    await this.campaign.load(campaign.document);
    await this.campaign.grant();
    await this.campaign.contribute(record, label);
    this.sent = "";
    for (let attempt = 0; attempt < ATTEMPTS && !this.sent; attempt++) {
      this.now += DAY; // another process of the same storage may have left a time for the next attempt
      await this.device.runOnce(0);
    }
    return this.sent;
  }
}

async function answer(line) {
  const record = recordOf(line);
  if (line.device === undefined)
    return hex(encodeUpload(perturb(campaign, record, line.label), uploadLength(campaign)));
  const name = String(line.device);
  const key = `${campaign.id} ${name}`;
  if (!devices.has(key)) devices.set(key, new Stranded(name));
  return devices.get(key).send(record, line.label, line.now);
}

for await (const text of createInterface({ input: process.stdin })) {
  const line = JSON.parse(text);
  if (line.storage !== undefined) folder = line.storage;
  let said;
  try {
    if (line.document !== undefined) campaign = parseCampaign(line.document);
    said = await answer(line);
  } catch (error) {
    if (!(error instanceof LdpError)) throw error;
    said = `!${error.code}`;
  }
  process.stdout.write(`${said}\n`);
}
