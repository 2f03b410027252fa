// The pure core: no storage, no network, nothing at import.
export { keyedSource } from "./account.js";
export { hex, unhex, utf8 } from "./bytes.js";
export { Classifier } from "./classifier/classifier.js";
export { parseModel, type Model, type ModelFeature } from "./classifier/model.js";
export { parseCampaign } from "./document/campaign.js";
export type {
  Campaign,
  CampaignDocument,
  Evaluation,
  Gateway,
  Issuer,
  LabelOf,
  Projection,
  Question,
  RecordOf,
  ValueOf,
  Windows,
} from "./document/types.js";
export { LdpError } from "./errors.js";
export { valueIndex } from "./features.js";
export type * from "./features.js";
export { Coins, randomBytes, systemCoins, type Words } from "./exact/coins.js";
export { readDirectory, type Directory } from "./publisher/directory.js";
export { drawQuestions, drawWindow, oneStream, perturb, type Answer, type CoinSource } from "./perturb.js";
export { held, numberOf, position, textOf } from "./values.js";
export { encodeUpload, MEDIA_TYPE, uploadLength, type Report } from "./wire.js";
