// A process with a device on a folder: agrees, answers with a record of its own, sends to nobody, and says what it sent.
import { hex } from "../../dist/core.js";
import { Device, fileStorage } from "../../dist/node/index.js";
import { documents } from "./campaigns.mjs";

const { id, document } = documents.all;
let now = Date.UTC(2026, 5, 1);
const fetch = async (_, { body }) => {
  process.stdout.write(`sent ${hex(body)}\n`);
  throw new TypeError("the connection is lost");
};
const device = new Device(fileStorage(process.argv[2]), {
  maxTotalEpsilon: 10,
  identity: "per installation",
  fetch,
  now: () => now,
});
const campaign = device.campaign("http://127.0.0.1:1", id, { maxEpsilon: 5 });
await campaign.load(document);
await campaign.grant();
await campaign.contribute({ colour: Math.random() < 0.5 ? "red" : "green", hours: 100 * Math.random() }, "yes");
for (let day = 0; day < 3; day++) {
  now += 864e5 + Math.floor(Math.random() * 1e9);
  await device.runOnce(0);
}
