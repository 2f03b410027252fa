// What is wrong with a record, told to the developer on the device and to nobody else: it shows values of the record.
import type { Campaign } from "./document/types.js";
import { isObject } from "./document/checks.js";
import { isOpen } from "./document/schema.js";
import { position } from "./values.js";
import { listed, valueIndex, WORDS, type Feature } from "./features.js";

/** One thing that is wrong; `feature` is its name in the record, empty where it is the record as a whole. */
export interface Problem {
  readonly feature: string;
  readonly wrong: string;
  readonly right: string;
}

function shown(value: unknown): string {
  const text =
    typeof value === "string"
      ? JSON.stringify(value)
      : ["object", "function"].includes(typeof value)
        ? `this ${typeof value}`
        : String(value);
  return text.slice(0, 60);
}

function wrongWith(feature: Feature, record: Record<string, unknown>): string | undefined | false {
  let value: unknown;
  try {
    value = record[feature.name];
  } catch {
    return "reading it throws";
  }
  if (value === undefined || value === null || Number.isNaN(value))
    return !isOpen(feature) && Number.isNaN(valueIndex(feature, null)) && "it holds no value";
  const wrong = WORDS[feature.kind]!.wrong(feature, value);
  return wrong && `${shown(value)} ${wrong}`;
}

/**
 * Whatever in `record` would not be answered as it was meant, of all features at once; then names that the campaign does
 * not know, and a `label` that is not declared. A number beyond its bounds is none: it is clipped. Throws nothing.
 */
export function problems(campaign: Campaign<any>, record: unknown, label?: unknown): Problem[] {
  if (!isObject(record)) return [{ feature: "", wrong: "it is no record", right: "a plain object" }];
  const found: Problem[] = [];
  for (const feature of campaign.features) {
    const wrong = wrongWith(feature, record);
    if (wrong) found.push({ feature: feature.name, wrong, right: WORDS[feature.kind]!.wanted(feature) });
  }
  const known = campaign.features.map(({ name }) => name);
  try {
    for (const feature of Object.keys(record).filter((name) => !known.includes(name)))
      found.push({ feature, wrong: "is no feature of the campaign", right: `one of ${listed(known)}` });
  } catch {
    found.push({ feature: "", wrong: "reading its names throws", right: "a plain object" });
  }
  const { name, classes } = campaign.label;
  if (label != null && position(label, classes) < 0)
    found.push({
      feature: name,
      wrong: `${shown(label)} is not declared`,
      right: name ? `one of ${listed(classes)}` : "no label",
    });
  return found;
}
