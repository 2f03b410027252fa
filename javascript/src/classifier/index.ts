// Classifying alone: the smallest part.
export { Classifier } from "./classifier.js";
export type { Model, ModelFeature } from "./model.js";
