import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { CHROMIUM, FIREFOX, installed, kill, launch, profile } from "./engines.mjs";
import { site } from "./site.mjs";

const inNode = JSON.parse(
  execFileSync(process.execPath, [new URL("../check_vectors.mjs", import.meta.url).pathname], { encoding: "utf8" }),
);

for (const [name, path] of Object.entries({ Chromium: CHROMIUM, Firefox: FIREFOX })) {
  test(`every vector holds in ${name}, in modules and in the bundled file`, { skip: !installed(path) }, async (t) => {
    const { url, hear } = await site(t);
    const browser = launch(path, profile(t), `${url}/pages/vectors.html`);
    t.after(() => kill(browser));
    const { engine, ...told } = await hear("vectors", 600);
    assert.match(engine, name === "Firefox" ? /Firefox/ : /Chrome/);
    assert.deepEqual(told, { "/dist/core.js": inNode, "/dist/ldp-bayes-client.min.js": inNode });
  });
}
