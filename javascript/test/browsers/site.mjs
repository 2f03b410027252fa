// A real aggregator, and in front of it a site with the package and the test pages under `default-src 'self'`. The site
// passes /v1/ on, sees every upload, and loses answers when it is told to.
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, request } from "node:http";
import { tmpdir } from "node:os";
import { extname, join, normalize } from "node:path";
import { sign } from "../support/campaigns.mjs";

const ROOT = new URL("../../..", import.meta.url).pathname;
export const AGGREGATOR = join(ROOT, ".venv/bin/ldp-aggregator");
const TYPES = {
  ".js": "text/javascript",
  ".mjs": "text/javascript",
  ".html": "text/html",
  ".json": "application/json",
};
const FOLDERS = {
  dist: "javascript/dist",
  pages: "javascript/test/browsers/pages",
  support: "javascript/test/support",
  vectors: "protocols/vectors",
};
const DRAFT = {
  version: 1,
  title: "Pages",
  label: { name: "class", classes: ["yes", "no"] },
  privacy: { epsilon: 2 },
  features: [
    { name: "age", kind: "categorical", values: ["young", "old"] },
    { name: "hours", kind: "continuous", low: 0, high: 100 },
  ],
};

/**
 * Starts everything; `t` stops it. `members` are more of the draft, `gateway` whether uploads are sealed, `built` modules by the name
 * under which pages import them from /built/.
 */
export async function site(t, { origins = [], members = {}, gateway = false, built = {} } = {}) {
  const data = mkdtempSync(join(tmpdir(), "pages-"));
  const key = join(data, "gateway.key");
  if (gateway) {
    const told = execFileSync(AGGREGATOR, ["key", "create", key, "--gateway"], { encoding: "utf8" });
    members = { ...members, gateway: { key: told.match(/key = "(.*)"/)[1] } };
  }
  const env = { ...process.env, ...(gateway && { LDP_AGGREGATOR_GATEWAY_KEY: key }) };
  writeFileSync(join(data, "draft.json"), JSON.stringify({ ...DRAFT, ...members }));
  const campaign = execFileSync(AGGREGATOR, ["campaign", "create", join(data, "draft.json"), "--data", data], {
    encoding: "utf8",
    env,
  }).trim();
  const allowed = origins.flatMap((origin) => ["--allow-origin", origin]);
  const daemon = spawn(
    AGGREGATOR,
    ["serve", "--data", data, "--listen", "127.0.0.1:0", "--listen-admin", "0", "--listen-operations", "0", ...allowed],
    {
      stdio: ["ignore", "pipe", "ignore"],
      env,
    },
  );
  let said = "";
  daemon.stdout.on("data", (chunk) => (said += chunk));
  while (!/public (\S+)/.test(said)) await once(daemon.stdout, "data");
  while (!/admin (\S+)/.test(said)) await once(daemon.stdout, "data");
  const aggregator = /public (\S+)/.exec(said)[1].replace("0.0.0.0", "127.0.0.1");
  const admin = /admin (\S+)/.exec(said)[1];

  const uploads = []; // every body that came, hexadecimal
  const told = new Map(); // what pages said, by name
  const state = { campaign, aggregator, admin, uploads, told, lose: 0, data };
  const waiting = [];
  const server = createServer((incoming, outgoing) => {
    const { pathname, searchParams } = new URL(incoming.url, "http://site");
    if (pathname === "/ohttp") incoming.url = "/v1/ohttp"; // a relay
    if (/^\/(v1\/|ohttp$)/.test(pathname)) return pass(incoming, outgoing, state);
    if (pathname === "/told")
      return bodyOf(incoming, (body) => {
        told.set(searchParams.get("name"), JSON.parse(body));
        outgoing.end();
        waiting.splice(0).forEach((wake) => wake());
      });
    if (pathname === "/favicon.ico") return outgoing.writeHead(204).end(); // browsers ask of themselves, at any time
    if (pathname === "/token-request") return bodyOf(incoming, (body) => outgoing.end(sign(body)));
    const [, top, ...rest] = normalize(pathname).split("/");
    const headers = {
      "Content-Type": TYPES[extname(pathname)] ?? "application/octet-stream",
      "Content-Security-Policy": `default-src 'self'; require-trusted-types-for 'script'${searchParams.get("connect") ? `; connect-src 'self' ${searchParams.get("connect")}` : ""}`,
      "Cache-Control": "no-store",
      "Service-Worker-Allowed": "/",
    };
    const path = FOLDERS[top] && join(ROOT, FOLDERS[top], ...rest);
    if (top === "built") outgoing.writeHead(200, headers).end(built[rest[0]]);
    else if (path && existsSync(path)) outgoing.writeHead(200, headers).end(readFileSync(path));
    else outgoing.writeHead(404).end();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  state.url = `http://127.0.0.1:${server.address().port}`;

  /** What a page says under a name. */
  state.hear = async (name, seconds = 60) => {
    const until = Date.now() + 1000 * seconds;
    while (!told.has(name)) {
      if (Date.now() > until)
        throw new Error(`no page said ${name} within ${seconds} s; said was ${JSON.stringify([...told])}`);
      await new Promise((wake) => {
        waiting.push(wake);
        setTimeout(wake, 200);
      });
    }
    const found = told.get(name);
    told.delete(name);
    return found;
  };

  /** Reports counted by the aggregator. */
  state.counted = () => {
    const estimates = JSON.parse(
      execFileSync(AGGREGATOR, ["estimates", campaign, "--data", data, "--json"], { encoding: "utf8" }),
    );
    return estimates.questions.reduce((sum, { n }) => sum + n, 0);
  };

  t.after(async () => {
    server.closeAllConnections();
    server.close();
    daemon.kill("SIGTERM");
    await once(daemon, "exit");
    rmSync(data, { recursive: true });
  });
  return state;
}

function bodyOf(incoming, use) {
  const chunks = [];
  incoming.on("data", (chunk) => chunks.push(chunk)).on("end", () => use(Buffer.concat(chunks)));
}

function pass(incoming, outgoing, state) {
  bodyOf(incoming, (body) => {
    const { hostname, port } = new URL(state.aggregator);
    const onward = request(
      { hostname, port, method: incoming.method, path: incoming.url, headers: incoming.headers },
      (answer) => {
        if (incoming.method === "POST") state.uploads.push(body.toString("hex"));
        if (incoming.method === "POST" && Math.random() < state.lose) return outgoing.destroy();
        outgoing.writeHead(answer.statusCode, answer.headers);
        answer.pipe(outgoing);
      },
    );
    onward.on("error", () => outgoing.destroy()).end(body);
  });
}

/** The ids of uploads of one report (msgpack: ..., c4 10, the id, ...), each with the different bodies that came under it. */
export function bodiesById(uploads) {
  const found = new Map();
  for (const body of uploads) {
    const id = body.slice(body.indexOf("c410") + 4, body.indexOf("c410") + 36);
    found.set(id, (found.get(id) ?? new Set()).add(body));
  }
  return found;
}
