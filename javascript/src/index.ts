// The pure core: no storage, no network, nothing at import.
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
  Labelled,
  Projection,
  Question,
  RecordOf,
  ValueOf,
  Windows,
} from "./document/types.js";
export { LdpError } from "./errors.js";
export type * from "./features.js";
export { perturb, type Answer } from "./perturb.js";
export { encodeUpload, MEDIA_TYPE, uploadLength, type Report } from "./wire.js";
