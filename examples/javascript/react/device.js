// The page's and the worker's device: one storage, one ledger.
import { browserStorage, Device } from "ldp-bayes-client/browser";

export const device = new Device(browserStorage(), {
  maxTotalEpsilon: 4,
  identity: "per installation",
});
