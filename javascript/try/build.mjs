// The page that explains local privacy, as three files that open from a folder: no module, and nothing that is fetched.
import { build } from "esbuild";
import { minify } from "terser";
import { readFileSync } from "node:fs";
import { parseCampaign } from "../dist/document/campaign.js";
import { accuracy, lawOf, learned } from "./estimation.js";
import * as render from "./render.js";
import { alwaysTheSame, dialWords, EPSILONS, limitRows, limitWords, ME, peopleIn, START, truthIn } from "./start.js";

const here = (path) => new URL(path, import.meta.url).pathname;
const read = (path) => readFileSync(here(path), "utf8");

/** What the page shows before anything was pressed: its script changes none of it. */
function parts() {
  const tables = JSON.parse(read("tables.json"));
  const [table] = tables;
  const { label, features } = table;
  const epsilon = EPSILONS[START.epsilon];
  const [id, text] = table.documents[`local ${epsilon}`];
  const { questions } = parseCampaign(text, id);
  const question = questions[1];
  const names = render.answersTo(table, question);
  const truth = truthIn(table, question);
  const strangers = peopleIn(table.held_out);
  const sizes = features.map(({ values }) => values.length);
  const best = accuracy(learned(peopleIn(table.people), sizes, label.values.length), strangers);
  const base = accuracy(alwaysTheSame(table), strangers);
  const choice = ({ name, title }, i) =>
    `<label><input type="radio" autocomplete="off" name="table" value="${name}"${i ? "" : " checked"} disabled><span>${title}</span></label>`;
  return {
    moon: render.moon(),
    tables: tables.map(choice).join(""),
    origin: table.origin,
    record: render.recordForm(table, ME),
    questions: questions.length,
    coin: render.coin(lawOf(question), question.domain_size, null),
    beliefs: render.beliefs(names, truth, null, null, null),
    last: label.values.at(-1),
    pick: questions
      .map((one, i) => `<option value="${i}"${i === 1 ? " selected" : ""}>${render.subject(table, one)}</option>`)
      .join(""),
    shares: render.shares(names, truth, null),
    plot: render.accuracyPlot([], base, best),
    best: render.inHundred(best),
    base: render.inHundred(base),
    limit: limitWords(epsilon),
    limits: render.limits(limitRows(epsilon)),
    dial: dialWords(epsilon),
  };
}

const quoted = (text) => `'${text.trim().replace(/[\\']/g, "\\$&").replaceAll("\n", "")}'`;

/** The files of the page, by name. */
export async function page() {
  const {
    outputFiles: [{ text }],
  } = await build({
    entryPoints: [here("page.js")],
    bundle: true,
    format: "iife",
    write: false,
    platform: "browser",
    minifySyntax: true,
    minifyWhitespace: true,
    external: ["@hpke/*"],
  });
  const { code } = await minify(text, { ecma: 2020, compress: { passes: 3, inline: 1 } });
  const css = await build({ entryPoints: [here("try.css")], minify: true, write: false });
  const known = parts();
  return {
    "index.html": read("index.html").replace(/<!--(\w+)-->/g, (_, name) => known[name]),
    "try.css": css.outputFiles[0].text,
    // A worker runs the same text: from a folder no other could be loaded.
    "try.js": `(function page(){const SOURCE="("+page+")()",TABLES=${quoted(read("tables.json"))};${code}})();\n`,
  };
}
