// An app that is bundled, with what it loads later and what seals: its person's token, its answer, by a relay.
import { browserStorage, Device } from "../../../dist/browser/index.js";
import { visit } from "./visit.js";

// This site is the relay; nothing is asked of the aggregator itself.
const url = location.origin.replace("127.0.0.1", "localhost");
await visit(browserStorage, Device, { relay: `${location.origin}/ohttp` }, url);
