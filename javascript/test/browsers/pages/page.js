// What the tests drive from outside: one device on one database.
import { browserStorage, Classifier, Device } from "/dist/ldp-bayes-client.min.js";

const policy = { firstDelay: 0, backoffBase: 50, backoffLongest: 500, requestTimeout: 5000 };

window.violations = [];
addEventListener("securitypolicyviolation", (event) =>
  window.violations.push(`${event.violatedDirective} ${event.blockedURI}`),
);
window.make = (url, id, name = "page") => {
  const device = new Device(browserStorage(name), { maxTotalEpsilon: 2, identity: "per installation", policy });
  return { device, campaign: device.campaign(url, id, { maxEpsilon: 2 }) };
};
window.Classifier = Classifier;
window.ready = true;
