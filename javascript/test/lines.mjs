// This client as a program of lines, for an audit (docs/audit.md). It runs the bundled file that pages load:
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
  unhex,
  uploadLength,
} from "../dist/ldp-bayes-client.min.js";
import { checkCrowd } from "../dist/ldp-bayes-client.crowd.min.js";
import { fileStorage } from "../dist/node/file.js";
import { memoryStorage } from "../dist/testing/index.js";

const NOWHERE = "http://127.0.0.1:1";
const RELAY = "http://127.0.0.1:2/relay";
const STEPS = 20;
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

const latin = new TextEncoder();

/** A request as it leaves, less what every HTTP client adds. */
const textOf = (url, { method = "GET", headers = {}, body }) => {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\n`);
  return hex(latin.encode(`${method} ${url}\n${lines.join("")}\n`)) + hex(new Uint8Array(body ?? []));
};

/** One device whose requests never arrive. */
class Stranded {
  requests = [];
  now = Date.UTC(2027, 0, 15);

  constructor(name) {
    const { epsilon, crowd } = campaign.privacy;
    const storage =
      folder === undefined
        ? memoryStorage()
        : fileStorage(join(folder, createHash("sha256").update(name).digest("hex")));
    const fetch = async (url, init) => {
      this.requests.push([url, init]);
      throw new TypeError("the connection is lost");
    };
    this.device = new Device(storage, {
      maxTotalEpsilon: 100 * epsilon,
      identity: "per installation",
      fetch,
      now: () => this.now,
      relay: campaign.gateway ? RELAY : undefined,
    });
    this.campaign = this.device.campaign(NOWHERE, campaign.id, {
      maxEpsilon: epsilon,
      maxCrowdEpsilon: crowd?.epsilon,
      maxIfBothCollude: epsilon,
    });
  }

  /** What a line makes leave this device: token requests, uploads, or, `sealed`, whole requests. */
  async answer(record, { label, now, token, resend, erase, sealed }) {
    if (now !== undefined) this.now = Date.parse(now);
    if (erase) await this.device.erase();
    else if (resend !== undefined) await this.pass(1000 * resend);
    else {
      await this.campaign.load(campaign.document);
      await this.campaign.grant();
      if (token !== undefined) {
        const wanted = await this.tokenRequest(token);
        if (wanted || !token) return wanted;
      }
      await this.campaign.contribute(record, label);
      for (let attempt = 0; attempt < ATTEMPTS && !this.uploads.length; attempt++) {
        this.now += DAY; // another process of the same storage may have left a time for the next attempt
        await this.device.runOnce(0);
      }
    }
    const sent = sealed
      ? this.requests.map(([url, init]) => textOf(url, init))
      : this.uploads.map(([, { body }]) => hex(new Uint8Array(body)));
    this.requests = [];
    return sent.join(" ");
  }

  /** Those of this campaign, as far as can be seen: another one's may wait in the same storage. */
  get uploads() {
    return this.requests.filter(([url, { body }]) => body && (url === RELAY || url.includes(campaign.id)));
  }

  /** Lets time pass, a little at a time: what is due is sent. */
  async pass(milliseconds) {
    for (let step = 0; step < STEPS; step++) {
      this.now += milliseconds / STEPS;
      await this.device.runOnce(0);
    }
  }

  /** The request to the issuer that follows its answers so far; none where the token is there. */
  async tokenRequest(signed) {
    const said = signed.split(" ").filter(Boolean);
    let asked = "";
    const issue = async (request) => {
      if (said.length) return unhex(said.shift());
      asked = hex(request);
      throw new LdpError("no-answer");
    };
    await this.campaign.obtainToken(issue).catch((error) => {
      if (!asked) throw error;
    });
    return asked;
  }
}

async function answer(line) {
  const record = recordOf(line);
  if (line.device === undefined)
    return hex(encodeUpload(perturb(campaign, record, line.label), uploadLength(campaign)));
  const name = String(line.device);
  const key = `${campaign.id} ${name}`;
  if (!devices.has(key)) devices.set(key, new Stranded(name));
  return devices.get(key).answer(record, line);
}

for await (const text of createInterface({ input: process.stdin })) {
  const line = JSON.parse(text);
  if (line.storage !== undefined) folder = line.storage;
  let said;
  try {
    if (line.document !== undefined) campaign = parseCampaign(line.document, undefined, checkCrowd);
    said = await answer(line);
  } catch (error) {
    if (!(error instanceof LdpError)) throw error;
    said = `!${error.code}`;
  }
  process.stdout.write(`${said}\n`);
}
