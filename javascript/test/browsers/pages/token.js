// An app without a bundler: its one file loads what obtains a token from beside it.
import { browserStorage, Device } from "/dist/ldp-bayes-client.min.js";
import { visit } from "./visit.js";

await visit(browserStorage, Device);
