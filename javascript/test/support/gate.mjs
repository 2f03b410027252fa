// A run that must be whole: fewer tests that pass than FEWEST fail it, and so does a skip where LDP_BAYES_REQUIRED is set.
export default async function* gate(events) {
  let passed = 0;
  const skipped = [];
  for await (const { type, data } of events) {
    if (type !== "test:pass" || data.details.type === "suite") continue;
    if (data.skip === undefined) passed += 1;
    else skipped.push(data.name);
  }
  const fewest = Number(process.env.FEWEST ?? 0);
  if (passed < fewest) yield failed(`${passed} tests passed, and this run has at least ${fewest} (FEWEST)`);
  if (process.env.LDP_BAYES_REQUIRED) for (const name of skipped) yield failed(`skipped: ${name}`);
}

function failed(told) {
  process.exitCode = 1;
  return `FAILED: ${told}\n`;
}
