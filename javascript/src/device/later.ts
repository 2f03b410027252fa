// What many visits do without, in one part that is loaded when it is first needed.
export { keyedSource } from "../account.js";
export { Decisions } from "../classifier/decisions.js";
export { readModel } from "../document/candidates.js";
export * from "../document/rare.js";
export { Ledger } from "./ledger.js";
