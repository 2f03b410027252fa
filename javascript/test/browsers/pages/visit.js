const issue = async (request) => {
  const answer = await fetch("/token-request", { method: "POST", body: request });
  return answer.arrayBuffer();
};

/** All steps of an app about the campaign that its address names; what came of them is told. */
export async function visit(browserStorage, Device, options = {}, url = location.origin) {
  const steps = [];
  const told = { steps, engine: navigator.userAgent };
  try {
    const device = new Device(browserStorage("visit"), {
      maxTotalEpsilon: 2,
      identity: "per installation",
      policy: { firstDelay: 0 },
      ...options,
    });
    const id = new URLSearchParams(location.search).get("id");
    const campaign = device.campaign(url, id, { maxEpsilon: 2 });
    const next = async () => (steps.push((await campaign.nextStep()).step), steps.at(-1));
    if ((await next()) === "ask") await campaign.grant();
    if ((await next()) === "token") await campaign.obtainToken(issue);
    if ((await next()) === "contribute") await campaign.contribute({ age: "old", hours: 30 }, "no");
    await device.runOnce(20_000);
    const { fate, problem } = await campaign.status();
    const [{ way }] = await device.sent();
    Object.assign(told, { fate, problem, way });
  } catch (error) {
    told.error = `${error.code} ${error.stack}`;
  }
  await fetch("/told?name=visit", { method: "POST", body: JSON.stringify(told) });
}
