// The client for React Native. `crypto.getRandomValues` must be there, from a native module; without it nothing is drawn.
export * from "../device/index.js";
export { keyValueStorage, type KeyValueStore } from "./storage.js";
