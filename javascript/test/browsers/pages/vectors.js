import { checkVectors, FILES, partsBeside } from "/support/vectors.mjs";

const told = {};
try {
  const files = Object.fromEntries(
    await Promise.all(FILES.map(async (name) => [name, await (await fetch(`/vectors/${name}.json`)).json()])),
  );
  for (const module of ["/dist/core.js", "/dist/ldp-bayes-client.min.js"])
    told[module] = await checkVectors(await import(module), await partsBeside(module), files);
} catch (error) {
  told.error = `${error.message} ${error.stack}`;
}
await fetch(`/told?name=vectors`, { method: "POST", body: JSON.stringify({ ...told, engine: navigator.userAgent }) });
