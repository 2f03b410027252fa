// The core with what the vectors and the audits look into; no entry of the package, and no promise to an app.
export * from "./index.js";
export { hex, unhex, utf8 } from "./bytes.js";
export { ensure } from "./errors.js";
export { Coins, randomBytes, systemCoins, type Words } from "./exact/coins.js";
export { valueIndex } from "./features.js";
export { drawQuestions, drawWindow } from "./perturb.js";
export { readDirectory, type Directory } from "./publisher/directory.js";
export { held, numberOf, position, textOf } from "./values.js";
