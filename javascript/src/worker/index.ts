// The client for service workers, which may load nothing later: what answers, delivers and classifies comes along.
import { Device as Loading, type DeviceOptions } from "../device/device.js";
import type { Storage } from "../device/storage.js";
import { agree, answer, deliver, Models, obtain, outOfWindow } from "../later/answering.js";

export * from "../device/index.js";
export { browserStorage } from "../browser/indexeddb.js";

/** One install of an app, all of it here. */
export class Device extends Loading {
  /** As the device of `ldp-bayes-client/browser`. */
  constructor(storage: Storage, options: DeviceOptions) {
    super(storage, options, { agree, answer, deliver, Models, obtain, outOfWindow });
  }
}
