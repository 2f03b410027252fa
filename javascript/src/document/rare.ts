// What few documents have: a device loads it for them alone.
export { readCandidates } from "./candidates.js";
export { laplace, she } from "../mechanisms/noisy.js";
export { onebit } from "../mechanisms/onebit.js";
export { unary as oue, unary as sue, unary as the } from "../mechanisms/unary.js";
export { checkProjection, projected } from "./projection.js";
export { ROUNDS } from "../questions/rounds.js";
export type Rare = typeof import("./rare.js");
