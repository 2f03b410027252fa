// One device, as a process, for tests against programs of others: agrees, has its token signed, answers, delivers, and tells.
//   node test/deliver.mjs '{"url", "id", "relay", "document", "storage", "record", "label", "seconds", "stop"}'
// A request for a token is a line `token HEX`, which a line of HEX answers; the last line is JSON. `stop` ends it before a step.
import { createInterface } from "node:readline";
import { hex, unhex } from "../dist/core.js";
import { Device, fileStorage } from "../dist/node/index.js";
import { memoryStorage } from "../dist/testing/index.js";

const { url, id, relay, document, storage, record, label, seconds = 20, stop } = JSON.parse(process.argv[2]);
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const device = new Device(storage ? fileStorage(storage) : memoryStorage(), {
  maxTotalEpsilon: 10,
  identity: "per installation",
  relay,
});
const campaign = device.campaign(url, id, { maxEpsilon: 10 });
if (document) await campaign.load(document); // as an app ships it
const steps = [];
const next = async () => (
  steps.push((await campaign.nextStep()).step),
  steps.at(-1) === stop ? "nothing" : steps.at(-1)
);
let refused = null;
try {
  if ((await next()) === "ask") await campaign.grant();
  if ((await next()) === "token")
    await campaign.obtainToken(async (request) => {
      process.stdout.write(`token ${hex(request)}\n`);
      return unhex((await lines.next()).value);
    });
  if ((await next()) === "contribute") await campaign.contribute(record, label);
  await device.runOnce(1000 * seconds);
} catch (error) {
  refused = error.code ?? String(error);
}
const { fate, problem, dropped } = await campaign.status();
const token = (await device.export()).campaigns[id]?.token;
process.stdout.write(
  `${JSON.stringify({ steps, refused, fate, problem, dropped, token, sent: await device.sent() })}\n`,
);
process.exit();
