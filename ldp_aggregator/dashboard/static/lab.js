// The noise lab: what a device with a made-up record would send, by the client's own code. Nothing is sent from here.
import { drawQuestions, encodeUpload, hex, parseCampaign, perturb, randomBytes, uploadLength } from "/assets/ldp-bayes-client.min.js";
import { checkCrowd } from "/assets/ldp-bayes-client.crowd.min.js";

const MANY = 1000;
const lab = document.querySelector("#lab");
const form = lab.querySelector("[data-lab]");
const result = lab.querySelector("[data-result]");

const element = (name, text, ...children) => {
  const made = document.createElement(name);
  if (text !== null) made.textContent = text;
  made.append(...children);
  return made;
};
const rowOf = (cell, texts) => element("tr", null, ...texts.map((text) => element(cell, text)));

function tableOf(heads, rows) {
  const head = rowOf("th", heads);
  for (const cell of head.children) cell.scope = "col";
  const table = element("table", null, element("thead", null, head), element("tbody", null, ...rows.map((row) => rowOf("td", row))));
  const box = element("div", null, table);
  box.className = "scroll";
  box.tabIndex = 0;
  box.setAttribute("role", "region");
  box.setAttribute("aria-label", "Answers");
  return box;
}

/** The texts that say something, one after another; without a label the class says nothing. */
const listed = (...texts) => texts.filter(Boolean).join(", ");

/** The names of a question's cells, in their order. */
function cellsOf(campaign, question) {
  const classes = campaign.label.classes;
  const places = question.domain_size / classes.length;
  if (question.kind === "signs") {
    const sides = ["low", "high"].flatMap((side) => ["low", "high"].map((square) => `${side} side, square on its ${square} side`));
    return classes.flatMap((name) => [...sides, "missing"].slice(0, places).map((side) => listed(side, name)));
  }
  if (question.encoding === "sign") {
    return classes.flatMap((name) => ["low side", "high side", "missing"].slice(0, places).map((end) => listed(end, name)));
  }
  if (!["pair", "triple", "joint"].includes(question.kind)) return [...classes];
  const valuesOf = (asked) => {
    const { values, bins } = campaign.asked.find(({ name }) => name === asked);
    return values ?? Array.from({ length: bins }, (_, bin) => `step ${bin + 1} of ${bins}`);
  };
  if (question.kind === "joint") {
    const open = (asked) => {
      const { missing, values } = campaign.asked.find(({ name }) => name === asked);
      return [...valuesOf(asked), ...(missing === false || values?.includes("missing") ? [] : ["missing"])];
    };
    return open(question.feature).flatMap((value) => open(question.other).map((other) => listed(value, other)));
  }
  let values = valuesOf(question.feature);
  if (question.kind === "triple") {
    const others = valuesOf(question.other);
    values = values.flatMap((value) => others.map((other) => `${value}, ${other}`));
  }
  const all = places > values.length ? [...values, "missing"] : values;
  return all.flatMap((value) => classes.map((name) => listed(value, name)));
}

const about = (campaign, { kind, feature, other }) => {
  const subject = { square: `${feature}, squared,`, signs: `${feature}, its square`, triple: `${feature}, ${other}` };
  const { name } = campaign.label;
  if (kind === "label") return name;
  const beside = kind === "joint" ? other : name;
  return beside ? `${subject[kind] ?? feature} and ${beside}` : (subject[kind] ?? feature);
};

/** The cells that a payload speaks for, with the number that it says of each. */
function said({ mechanism, domain_size: size }, payload) {
  const view = new DataView(payload.buffer, payload.byteOffset, payload.byteLength);
  const width = size <= 256 ? 1 : size <= 65536 ? 2 : 4;
  const index = () => (width === 1 ? view.getUint8(0) : width === 2 ? view.getUint16(0, true) : view.getUint32(0, true));
  if (mechanism === "de") return [[index(), 1]];
  if (mechanism === "onebit") return [[index(), view.getUint8(width) ? 1 : -1]];
  if (mechanism === "she" || mechanism === "laplace") {
    return Array.from({ length: size }, (_, cell) => [cell, view.getInt32(4 * cell, true)]);
  }
  return Array.from({ length: size }, (_, cell) => cell).flatMap((cell) => ((payload[cell >> 3] >> (cell & 7)) & 1 ? [[cell, 1]] : []));
}

const inWords = (campaign, question, payload) => {
  const [names, cells] = [cellsOf(campaign, question), said(question, payload)];
  if (["she", "laplace"].includes(question.mechanism)) return cells.map(([cell, n]) => `${names[cell]}: ${n}`).join("; ");
  if (question.mechanism === "onebit") return cells.map(([cell, n]) => `${names[cell]}: ${n > 0 ? "high" : "low"}`).join("");
  return cells.map(([cell]) => names[cell]).join("; ") || "none of all possible answers";
};

function filled() {
  const record = {};
  for (const input of form.querySelectorAll("[data-feature]")) {
    if (input.value !== "") record[input.dataset.feature] = "number" in input.dataset ? Number(input.value) : input.value;
  }
  return [record, form.querySelector("[data-label]")?.value];
}

/** The question that a report answers; in a series it is one of its window's. */
const askedIn = ({ questions }, { question }) => questions[question % questions.length];

function once(campaign) {
  const answers = perturb(campaign, ...filled());
  const bytes = encodeUpload(answers, uploadLength(campaign));
  const drew = campaign.windows ? `its window (${Math.floor(answers[0].question / campaign.questions.length) + 1} of ${campaign.windows.count}) and its question` : "its question";
  result.replaceChildren(
    element("p", `This device drew ${drew} by lot and would send this. Press again: another device, another lot, other noise.`),
    tableOf(["It was asked about", "It says", "Bytes of the answer"], answers.map((answer) => {
      const asked = askedIn(campaign, answer);
      return [about(campaign, asked), inWords(campaign, asked, answer.payload), hex(answer.payload)];
    })),
    element("p", `The whole upload has ${bytes.length} bytes, as every device's has, so that its length tells no question:`),
    element("code", hex(bytes)),
  );
}

/** Many devices that all hold this one record, and how often each possible answer to one question is heard. */
function often(campaign) {
  const filledIn = filled();
  const counts = campaign.questions.map(({ domain_size: size }) => ({ answers: 0, cells: Array(size).fill(0) }));
  for (let number = 0; number < MANY; number++) {
    for (const answer of perturb(campaign, ...filledIn)) {
      const asked = askedIn(campaign, answer);
      counts[asked.index].answers += 1;
      for (const [cell, value] of said(asked, answer.payload)) counts[asked.index].cells[cell] += value;
    }
  }
  const shown = campaign.questions.filter(({ index }) => counts[index].answers > 0);
  result.replaceChildren(
    element("p", `${MANY.toLocaleString("en")} devices that all hold this one record. What is true stands out of the crowd, and out of no single answer.`),
    ...shown.flatMap((question) => [
      element("h3", `${about(campaign, question)}: ${counts[question.index].answers} answers`),
      tableOf(["Possible answer", "Sum of what was said"], cellsOf(campaign, question).map((name, cell) => [name, String(counts[question.index].cells[cell])])),
    ]),
  );
}

const failed = (error) => {
  const line = element("p", `The lab cannot do this: ${error.message}`);
  line.className = "problem";
  result.replaceChildren(line);
};

try {
  const answer = await fetch(`/v1/campaigns/${lab.dataset.campaign}`);
  if (!answer.ok) throw new Error(`the campaign’s document was answered with ${answer.status}`);
  const campaign = parseCampaign(await answer.text(), lab.dataset.campaign, checkCrowd);
  drawQuestions(campaign, randomBytes(32));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    try {
      (event.submitter?.value === "again" ? often : once)(campaign);
    } catch (error) {
      failed(error);
    }
  });
  for (const button of form.querySelectorAll("button")) button.disabled = false;
} catch (error) {
  failed(error);
}
