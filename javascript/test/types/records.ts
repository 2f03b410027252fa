// Compiled, never run: what follows from a document's type for the records that answer it.
import { parseCampaign, perturb, type RecordOf, type LabelOf } from "../../dist/index.js";
import { browserStorage, Device } from "../../dist/browser/index.js";

const document = {
  version: 1,
  title: "Will a customer miss a payment?",
  label: { name: "missed", classes: ["yes", "no"] },
  features: [
    { name: "age", kind: "categorical", values: ["young", "old"], ordered: true },
    { name: "flag", kind: "categorical", values: ["0", "1"] },
    { name: "income", kind: "continuous", low: 0, high: 9, bins: 3 },
  ],
  privacy: { epsilon: 1 },
} as const;
type Document = typeof document;

const right: RecordOf<Document>[] = [
  {},
  { age: "young" },
  { age: null },
  { flag: 1 },
  { flag: true },
  { flag: "0" },
  { income: 3.5 },
  { income: "3.5" },
  { income: 10n },
];
const label: LabelOf<Document> = "yes";
// @ts-expect-error an undeclared value
const undeclared: RecordOf<Document> = { age: "middle" };
// @ts-expect-error an unknown feature
const unknown: RecordOf<Document> = { agee: "young" };
// @ts-expect-error a number where no declared text reads like it
const number: RecordOf<Document> = { age: 1 };
// @ts-expect-error a text that is no number
const text: RecordOf<Document> = { income: "much" };
// @ts-expect-error an undeclared label
const perhaps: LabelOf<Document> = "perhaps";

const device = new Device(browserStorage(), { maxTotalEpsilon: 4, identity: "per installation" });
// @ts-expect-error whose loss it is has to be said
new Device(browserStorage(), { maxTotalEpsilon: 4 });
const campaign = device.campaign<Document>("https://collect.example.org", "A".repeat(43), { maxEpsilon: 1 });
void campaign.contribute({ age: "old" }, "no");
// @ts-expect-error an undeclared label
void campaign.contribute({ age: "old" }, "perhaps");
// @ts-expect-error a label that was left out
void campaign.contribute({ age: "old" });
const { label: _, ...unlabelled } = document;
const statistics = device.campaign<typeof unlabelled>("https://collect.example.org", "A".repeat(43), { maxEpsilon: 1 });
void statistics.contribute({ age: "old" });
// @ts-expect-error an unknown feature
void statistics.contribute({ agee: "old" });
// Of a document that only the server knows, anything may be a record.
void device
  .campaign("https://collect.example.org", "A".repeat(43), { maxEpsilon: 1 })
  .contribute({ anything: 1 }, "whatever");
perturb(parseCampaign("{}"), { anything: 1 }, "whatever");
perturb(parseCampaign<Document>("{}"), { age: "old" }, "no");
// @ts-expect-error an undeclared value
perturb(parseCampaign<Document>("{}"), { age: "middle" }, "no");
void [right, label, undeclared, unknown, number, text, perhaps];
