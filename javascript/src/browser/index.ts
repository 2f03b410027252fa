// The client for pages, workers and service workers.
export * from "../device/index.js";
export { browserStorage } from "./indexeddb.js";
