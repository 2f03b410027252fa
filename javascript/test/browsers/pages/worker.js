// A device in a worker of any kind: agreed, answered, delivered, and told.
import { browserStorage, Device } from "/dist/ldp-bayes-client.worker.min.js";

async function work(id) {
  const device = new Device(browserStorage("worker"), {
    maxTotalEpsilon: 2,
    identity: "per installation",
    policy: { firstDelay: 0 },
  });
  const campaign = device.campaign(location.origin, id, { maxEpsilon: 2 });
  await campaign.grant();
  await campaign.contribute({ age: "old" }, "no");
  await device.runOnce(10_000);
  const { fate, sent } = await campaign.status();
  return { fate, sent };
}

addEventListener("message", (event) => {
  const answering = work(event.data).then((told) =>
    event.source ? event.source.postMessage(told) : postMessage(told),
  );
  event.waitUntil?.(answering);
});
