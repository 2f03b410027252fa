// An app that is bundled, with what it loads later and what seals: its person's token, its answer, by a relay.
import { browserStorage, Device } from "../../../dist/browser/index.js";
import { visit } from "./visit.js";

await visit(browserStorage, Device, { relay: `${location.origin}/v1/ohttp` });
