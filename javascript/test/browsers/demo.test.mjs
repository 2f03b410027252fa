// `make demo KEEP=1` stays with a campaign and its model: the example's page answers it, as a reader would.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { test } from "node:test";
import { chromium } from "playwright-core";
import { CHROMIUM, CHROMIUM_FLAGS, installed } from "./engines.mjs";

const ROOT = new URL("../../..", import.meta.url).pathname;
const SERVE = `${ROOT}examples/javascript/serve.mjs`;
const PATIENCE = 600_000; // milliseconds, on a busy machine

test(
  "the demo that stays prints the address of a page that agrees, answers, shows the ledger and classifies",
  { skip: !installed(CHROMIUM), timeout: PATIENCE },
  async (t) => {
    const server = spawn(process.execPath, [SERVE, "0"], { stdio: ["ignore", "pipe", "inherit"] });
    t.after(() => server.kill());
    const origin = String((await once(server.stdout, "data"))[0]).trim();
    const options = ["demo", "--devices", "40", "--json", "--keep", "--page", origin];
    const demo = spawn(`${ROOT}.venv/bin/python`, ["-m", "ldp_simulations", ...options], { cwd: ROOT });
    t.after(async () => {
      demo.kill("SIGTERM");
      if (demo.exitCode === null) await once(demo, "exit");
    });
    let said = "";
    demo.stderr.on("data", (chunk) => (said += chunk));
    demo.stdout.resume();
    while (!/A device +(\S+)/.test(said)) {
      await Promise.race([once(demo.stderr, "data"), once(demo, "exit")]);
      assert.equal(demo.exitCode, null, said);
    }

    const browser = await chromium.launch({ executablePath: CHROMIUM, args: CHROMIUM_FLAGS, timeout: PATIENCE });
    t.after(() => browser.close());
    const page = await browser.newPage();
    page.setDefaultTimeout(PATIENCE);
    const errors = [];
    page.on("pageerror", (error) => errors.push(String(error)));
    await page.goto(/A device +(\S+)/.exec(said)[1]);
    await page.getByRole("heading", { name: "Is a lump malignant?" }).waitFor();
    await page.getByText("It costs epsilon 2.00.").waitFor();
    const label = page.locator("#record label").last().locator("select");
    await label.selectOption({ index: 1 });
    await page.getByRole("button", { name: "I agree" }).click();
    await page.getByText("Your answer: arrived.").waitFor();
    assert.match(
      await page.locator("#ledger").textContent(),
      /"Is a lump malignant\?" on .*: 1 answer, with noise added on this device; epsilon 2/,
    );
    assert.equal(await page.locator("#sent li").count(), 1);
    await page.getByRole("button", { name: "What would the model say?" }).click();
    await page.getByText(/The model says: \S+ \d+ %, \S+ \d+ %/).waitFor();
    assert.deepEqual(errors, []);
  },
);
