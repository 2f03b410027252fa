// Sends what the page has queued, when the browser says that there is a network.
import { device } from "./device.js";

addEventListener("sync", (event) => event.waitUntil(device.runOnce(20_000, 0)));
