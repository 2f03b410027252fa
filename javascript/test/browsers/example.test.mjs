import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { chromium } from "playwright-core";
import { CHROMIUM, CHROMIUM_FLAGS, installed } from "./engines.mjs";
import { AGGREGATOR, site } from "./site.mjs";

const SERVE = new URL("../../../examples/javascript/serve.mjs", import.meta.url).pathname;

test(
  "the example's page: agree, answer, see the ledger and what left, classify, delete",
  { skip: !installed(CHROMIUM) },
  async (t) => {
    const server = spawn(process.execPath, [SERVE, "0"], { stdio: ["ignore", "pipe", "inherit"] });
    t.after(() => server.kill());
    const origin = String((await once(server.stdout, "data"))[0]).trim();
    const { aggregator, campaign, data, counted } = await site(t, { origins: [origin] });
    const browser = await chromium.launch({ executablePath: CHROMIUM, args: CHROMIUM_FLAGS });
    t.after(() => browser.close());
    const page = await browser.newPage();
    const errors = [];
    page.on("pageerror", (error) => errors.push(String(error)));
    await page.goto(`${origin}/?url=${aggregator}&campaign=${campaign}`);
    await page.getByRole("heading", { name: "Pages" }).waitFor();
    await page.getByLabel("age").selectOption("old");
    await page.getByLabel("hours").fill("30");
    await page.getByRole("button", { name: "I agree" }).click();
    await page.getByText("undeclared-label").waitFor();
    await page.getByLabel("class").selectOption("yes");
    await page.getByRole("button", { name: "I agree" }).click();
    await page.getByText("Your answer: arrived.").waitFor();
    assert.match(await page.locator("#ledger").textContent(), /contributed to 1 campaign\./);
    assert.match(await page.locator("#sent").textContent(), /which is noise as well as truth/);
    assert.equal(counted(), 1);
    await page.getByRole("button", { name: "What would the model say?" }).click();
    await page.getByText("no-model").waitFor();
    execFileSync(AGGREGATOR, ["train", campaign, "--data", data, "--anyway"], { stdio: "ignore" });
    await page.getByRole("button", { name: "What would the model say?" }).click();
    await page.getByText(/The model says: yes \d+ %, no \d+ %/).waitFor();
    await page.getByRole("button", { name: "Delete everything here" }).click();
    await page.getByText("keeps nothing any more").waitFor();
    assert.match(await page.locator("#ledger").textContent(), /contributed to no campaign/);
    assert.deepEqual(errors, []);
  },
);

test(
  "a page that pins a publisher's key answers what was signed, and classifies with nothing else",
  { skip: !installed(CHROMIUM) },
  async (t) => {
    const server = spawn(process.execPath, [SERVE, "0"], { stdio: ["ignore", "pipe", "inherit"] });
    t.after(() => server.kill());
    const origin = String((await once(server.stdout, "data"))[0]).trim();
    const { aggregator, admin, campaign, data } = await site(t, { origins: [origin] });
    const run = (...words) => execFileSync(AGGREGATOR, words, { encoding: "utf8" }).trim();
    const file = join(data, "publisher.key");
    const key = run("key", "create", file);
    const token = run("token", "create", "--scope", "admin", "--data", data);
    const publish = async (version, named) => {
      const signed = join(data, `${version}.json`);
      run(
        ..."key sign".split(" "),
        file,
        "--version",
        version,
        "--expires-in",
        "30",
        "--campaign",
        named,
        "--output",
        signed,
      );
      const headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json" };
      const answer = await fetch(`${admin}/admin/v1/directories/${key}`, {
        method: "PUT",
        headers,
        body: readFileSync(signed),
      });
      assert.equal(answer.status, 200, await answer.text());
    };
    const browser = await chromium.launch({ executablePath: CHROMIUM, args: CHROMIUM_FLAGS });
    t.after(() => browser.close());
    const page = await browser.newPage();
    page.setDefaultTimeout(300_000);
    const open = () => page.goto(`${origin}/?url=${aggregator}&campaign=${campaign}&publisher=${key}`);
    await open();
    await page.getByText("No campaign: no-directory").waitFor();
    await publish("1", campaign);
    await open();
    await page.getByLabel("class").selectOption("yes");
    await page.getByRole("button", { name: "I agree" }).click();
    await page.getByText("Your answer: arrived.").waitFor();
    run("train", campaign, "--data", data, "--anyway");
    await page.getByRole("button", { name: "What would the model say?" }).click();
    await page.getByText("invalid-model").waitFor();
    const model = join(data, "model.json");
    writeFileSync(model, await (await fetch(`${aggregator}/v1/campaigns/${campaign}/model`)).text());
    await publish("2", `${campaign}=${model}`);
    await page.getByRole("button", { name: "What would the model say?" }).click();
    await page.getByText(/The model says: yes \d+ %, no \d+ %/).waitFor();
  },
);
