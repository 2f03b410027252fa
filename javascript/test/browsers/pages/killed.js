// As many devices as the address says, each with a database of its own: agreed, answered, delivered. Whatever it says
// twice, a device that was killed in between must not answer twice.
import { browserStorage, Device } from "/dist/browser/index.js";

const asked = new URLSearchParams(location.search);
const policy = { firstDelay: 0, backoffBase: 20, backoffLongest: 100 };
const identity = "per installation";
const tell = (name, told) => fetch(`/told?name=${name}`, { method: "POST", body: JSON.stringify(told) });

await tell("began", {});
try {
  const devices = await Promise.all(
    Array.from({ length: Number(asked.get("devices")) }, async (_, number) => {
      const device = new Device(browserStorage(`device ${number}`), { maxTotalEpsilon: 2, identity, policy });
      const campaign = device.campaign(location.origin, asked.get("campaign"), { maxEpsilon: 2 });
      if (!(await campaign.consented())) await campaign.grant();
      await campaign.contribute(
        { age: Math.random() < 0.5 ? "young" : "old", hours: 100 * Math.random() },
        Math.random() < 0.5 ? "yes" : "no",
      );
      await device.runOnce(asked.has("last") ? 600_000 : 5_000);
      return campaign.status();
    }),
  );
  await tell(
    "ended",
    devices.map(({ fate, queued, sent }) => ({ fate, queued, sent })),
  );
} catch (error) {
  await tell("ended", `${error.code} ${error.stack}`);
}
