import { browserStorage, Device } from "/ldp-bayes-client/browser/index.js";
import { signedBy } from "/ldp-bayes-client/publisher/index.js";

const element = (id) => document.getElementById(id);
const asked = new URLSearchParams(location.search);

// One install: this browser's storage, and a cap on what all campaigns together may learn of the person. The promise is one for
// this installation, and the ledger says so: nobody notices a browser's profile that was put back, and that answers again.
const device = new Device(browserStorage("example"), {
  maxTotalEpsilon: 8,
  identity: "per installation",
});
const key = asked.get("publisher"); // an app is shipped with it, and takes it from no address
const campaign = device.campaign(asked.get("url"), asked.get("campaign"), {
  maxEpsilon: 4,
  publisher: key ? signedBy(key) : undefined,
});

/** A field of the form for a feature: its declared values, or a number. */
function field(name, options) {
  const label = document.createElement("label");
  const input = document.createElement(options ? "select" : "input");
  input.name = name;
  for (const option of options ? ["", ...options] : [])
    input.append(new Option(option));
  if (!options) Object.assign(input, { type: "number", step: "any" });
  label.append(name, input);
  return label;
}

/** The record and the label that the form holds; what is empty is missing. */
function filled() {
  const entries = [...new FormData(element("record"))].filter(
    ([, value]) => value !== "",
  );
  const { [labelName]: label, ...record } = Object.fromEntries(entries);
  return { record, label };
}

async function show(said = "") {
  const status = await campaign.status();
  element("said").textContent = [
    said,
    status.fate && `Your answer: ${status.fate}.`,
    status.problem,
  ]
    .filter(Boolean)
    .join(" ");
  const ledger = await device.ledger();
  element("ledger").title = ledger.note;
  element("ledger").textContent = String(ledger);
  element("sent").replaceChildren(
    ...(await device.sent()).map(({ asked, said, url, reply }) => {
      const item = document.createElement("li");
      item.textContent =
        `asked about ${asked}; said ${said}, which is noise as well as truth; sent to ${url}, ` +
        `which replied ${reply ?? "nothing yet"}`;
      return item;
    }),
  );
}

const tried = (work) => async (event) => {
  event.preventDefault();
  try {
    await show(await work());
  } catch (error) {
    await show(`${error.code ?? error.name}: ${error.message}`);
  }
};

element("answer").addEventListener(
  "click",
  tried(async () => {
    const { record, label } = filled();
    await campaign.grant(); // the person has just agreed, to this campaign and this address
    await campaign.contribute(record, label); // drawn, randomised and on disk; once, whatever happens
    await device.runOnce(10_000); // an app would leave it to device.start(), which waits a random time first
    return "Thank you.";
  }),
);
element("withdraw").addEventListener(
  "click",
  tried(async () => {
    const { deleted, onItsWay } = await campaign.withdraw();
    return `Withdrawn; ${deleted} deleted, ${onItsWay} of them may have arrived.`;
  }),
);
element("erase").addEventListener(
  "click",
  tried(async () => {
    await device.erase();
    return "This browser keeps nothing any more.";
  }),
);
element("classify").addEventListener(
  "click",
  tried(async () => {
    const probabilities = (await campaign.classifier()).predictProba(
      filled().record,
    );
    return `The model says: ${Object.entries(probabilities)
      .map(([name, share]) => `${name} ${share > 0.99 ? "> 99" : (100 * share).toFixed(0)} %`)
      .join(", ")}.`;
  }),
);

let labelName;
try {
  const { title, purpose, features, label, realisedEpsilon } =
    await campaign.fetch(); // its hash and its loss verified
  const refusal = await campaign.refusal(); // known before anybody is asked
  labelName = label.name;
  element("title").textContent = title;
  element("purpose").textContent = purpose ?? "";
  element("cost").textContent = refusal
    ? `This browser would not answer: ${refusal.code}.`
    : `One question is drawn by lot, and its answer is randomised here. It costs epsilon ${realisedEpsilon.toFixed(2)}.`;
  element("record").append(
    ...features.map(({ name, values }) => field(name, values)),
    field(label.name, label.classes),
  );
  for (const id of ["answer", "classify"]) element(id).disabled = false;
  await show();
} catch (error) {
  element("said").textContent = `No campaign: ${error.code ?? error.message}`;
}
device.start(); // delivers what an earlier visit left
