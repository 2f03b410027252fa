// The client for Node.
export * from "../device/index.js";
export { fileStorage } from "./file.js";
