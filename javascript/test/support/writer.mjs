// A process that changes the state of any folder that it is told of, without a pause, for some hundredths of a second.
import { fileStorage } from "../../dist/node/index.js";
import { aggregator, deviceOn } from "./campaigns.mjs";

process.on("message", async (folder) => {
  const device = deviceOn(fileStorage(folder), aggregator());
  process.send("begun");
  const until = Date.now() + 40;
  for (let on = true; Date.now() < until; on = !on) {
    await device.enable(on);
    await new Promise((done) => setImmediate(done));
  }
  process.send("ended");
});
