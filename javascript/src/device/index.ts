export type { Classifier } from "../classifier/classifier.js";
export type { Model, ModelFeature } from "../classifier/model.js";
export type {
  Campaign,
  CampaignDocument,
  CategoricalFeature,
  ContinuousFeature,
  Feature,
  LabelOf,
  RecordOf,
  ValueOf,
} from "../document/types.js";
export { LdpError } from "../errors.js";
export type { DeviceCampaign, Status, Withdrawal } from "./campaign.js";
export { Device, type DeviceOptions } from "./device.js";
export type { Ledger, Per, SentReport } from "./ledger.js";
export type { Fetch } from "./network.js";
export type { Policy } from "./policy.js";
export type { Signer } from "./signer.js";
export type { Consent, Fate, Receipt } from "./state.js";
export type { Storage } from "./storage.js";
