// The example on React, Vite and a service worker, built as an app is and driven as a person does.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { extname, join } from "node:path";
import { test } from "node:test";
import { chromium } from "playwright-core";
import { CHROMIUM, CHROMIUM_FLAGS, installed } from "./engines.mjs";
import { site } from "./site.mjs";

const here = (path) => new URL(path, import.meta.url).pathname;
const EXAMPLE = here("../../../examples/javascript/react");
const TYPES = { ".html": "text/html", ".js": "text/javascript" };

const { build } = await import(here("../../../.venv/vite/node_modules/vite/dist/node/index.js"));

/** The example as `npx vite build` makes it, on a server of static files. */
async function built(t) {
  const folder = mkdtempSync(join(tmpdir(), "react-"));
  const alias = [
    ...["browser", "react", "worker"].map((name) => ({
      find: `ldp-bayes-client/${name}`,
      replacement: here(`../../dist/${name}/index.js`),
    })),
    ...["react-dom", "react"].map((name) => ({ find: name, replacement: here(`../../node_modules/${name}`) })),
  ];
  await build({
    root: EXAMPLE,
    configFile: join(EXAMPLE, "vite.config.js"),
    logLevel: "error",
    resolve: { alias },
    build: { outDir: folder, emptyOutDir: true },
  });
  const server = createServer(({ url }, answer) => {
    const path = new URL(url, "http://page").pathname.replace(/^\/$/, "/index.html");
    try {
      const body = readFileSync(join(folder, path));
      answer.writeHead(200, { "Content-Type": TYPES[extname(path)] ?? "application/octet-stream" }).end(body);
    } catch {
      answer.writeHead(404).end();
    }
  });
  await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
  t.after(() => {
    server.close();
    rmSync(folder, { recursive: true });
  });
  return `http://localhost:${server.address().port}`;
}

test(
  "an app on React asks once, the service worker sends, and a no is remembered",
  { skip: !installed(CHROMIUM) },
  async (t) => {
    const origin = await built(t);
    const { aggregator, campaign, counted } = await site(t, { origins: [origin] });
    const browser = await chromium.launch({ executablePath: CHROMIUM, args: CHROMIUM_FLAGS });
    t.after(() => browser.close());
    const address = `${origin}/?url=${aggregator}&campaign=${campaign}`;
    const errors = [];
    const visit = async (context) => {
      const page = await context.newPage();
      page.on("pageerror", (error) => errors.push(String(error)));
      await page.goto(address);
      return page;
    };

    const agrees = await browser.newContext();
    let page = await visit(agrees);
    await page.getByRole("heading", { name: "Pages" }).waitFor();
    await page.getByRole("button", { name: "I agree" }).click();
    await page.getByText("Nothing to do.").waitFor();
    for (let tries = 0; tries < 200 && counted() === 0; tries++) await new Promise((done) => setTimeout(done, 100));
    assert.equal(counted(), 1);
    for (let start = 0; start < 2; start++) {
      page = await visit(agrees);
      await page.getByText("Nothing to do.").waitFor();
    }

    const refuses = await browser.newContext();
    page = await visit(refuses);
    await page.getByRole("button", { name: "No" }).click();
    await page.getByText("Nothing to do.").waitFor();
    for (let start = 0; start < 2; start++) {
      page = await visit(refuses);
      await page.getByText("Nothing to do.").waitFor();
    }
    assert.equal(counted(), 1);
    assert.deepEqual(errors, []);
  },
);
