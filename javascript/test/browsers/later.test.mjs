// What some campaigns need and is loaded when they do, in each browser's own WebCrypto.
import assert from "node:assert/strict";
import { test } from "node:test";
import { build } from "esbuild";
import { issuer } from "../support/campaigns.mjs";
import { CHROMIUM, FIREFOX, installed, kill, launch, profile } from "./engines.mjs";
import { site } from "./site.mjs";

const {
  outputFiles: [{ text: sealed }],
} = await build({
  entryPoints: [new URL("pages/sealed.js", import.meta.url).pathname],
  bundle: true,
  format: "esm",
  write: false,
  target: "es2022",
});

for (const [name, path] of Object.entries({ Chromium: CHROMIUM, Firefox: FIREFOX })) {
  for (const [page, way] of [
    ["token", "sent to the server"],
    ["sealed", "it saw no answer, and the server no address"],
  ]) {
    test(`a device with a token delivers from ${name}, on the page ${page}`, { skip: !installed(path) }, async (t) => {
      const here = await site(t, { members: { issuer }, gateway: page === "sealed", built: { "sealed.js": sealed } });
      const browser = launch(path, profile(t), `${here.url}/pages/${page}.html?id=${here.campaign}`);
      t.after(() => kill(browser));
      const { engine, way: went, ...told } = await here.hear("visit", 120);
      assert.match(engine, name === "Firefox" ? /Firefox/ : /Chrome/);
      assert.deepEqual(told, { steps: ["ask", "token", "contribute"], fate: "arrived", problem: null });
      assert.ok(went.endsWith(way), went);
      assert.equal(here.uploads.length, 1);
      assert.equal(here.uploads[0].startsWith("92"), page === "token");
      assert.equal(here.counted(), 1);
    });
  }
}
