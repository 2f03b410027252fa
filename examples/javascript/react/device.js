// The page's and the service worker's device: one storage, one ledger; of the entry that loads nothing later.
import { browserStorage, Device } from "ldp-bayes-client/worker";

export const device = new Device(browserStorage(), {
  maxTotalEpsilon: 4,
  identity: "per installation",
});
