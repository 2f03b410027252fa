// Classifying alone: the smallest part.
export { LdpError } from "../errors.js";
export { Classifier } from "./classifier.js";
export type { Model, ModelFeature } from "./model.js";
