// Browsers of the distribution, each with a profile of its own.
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";

export const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";
export const FIREFOX = process.env.FIREFOX ?? "/usr/bin/firefox-esr";
export const CHROMIUM_FLAGS = [
  "--headless=new",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-dev-shm-usage",
  "--no-first-run",
  "--disable-background-networking",
];

/** Whether a browser is there; where it must be, its absence is an error. */
export function installed(path) {
  if (!existsSync(path) && process.env.LDP_BAYES_REQUIRED) throw new Error(`${path} is missing`);
  return existsSync(path);
}

const running = new Map(); // the browsers of each profile

/** A folder that is gone after the test, as are the browsers that write to it. */
export function profile(t) {
  const folder = mkdtempSync(join(tmpdir(), "profile-"));
  running.set(folder, []);
  t.after(async () => {
    await Promise.all(running.get(folder).map(kill));
    rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 });
  });
  return folder;
}

/** Opens an address in a browser's process group of its own. */
export function launch(path, folder, address) {
  const flags =
    path === FIREFOX
      ? ["--headless", "--no-remote", "--profile", folder]
      : [...CHROMIUM_FLAGS, `--user-data-dir=${folder}`];
  const browser = spawn(path, [...flags, address], { stdio: "ignore", detached: true });
  running.get(folder).push(browser);
  return browser;
}

/** Kills a browser with all of its processes, at once. */
export async function kill(browser) {
  if (browser.exitCode !== null || browser.signalCode !== null) return;
  const gone = once(browser, "exit");
  process.kill(-browser.pid, "SIGKILL");
  await gone;
}
