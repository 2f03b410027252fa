// What is wrong with a record, told to the developer on the device and to nobody else: it shows values of the record.
import type { Campaign, Feature } from "./document/types.js";
import { isObject } from "./document/checks.js";
import { isOpen } from "./document/schema.js";
import { numberOf, position, textOf } from "./values.js";

/** One thing that is wrong; `feature` is its name in the record, empty where it is the record as a whole. */
export interface Problem {
  readonly feature: string;
  readonly wrong: string;
  readonly right: string;
}

const MOST_NAMED = 12;

const listed = (texts: readonly string[]): string =>
  texts.slice(0, MOST_NAMED).join(", ") + (texts.length > MOST_NAMED ? ", ..." : "");

function shown(value: unknown): string {
  const text =
    typeof value === "string"
      ? JSON.stringify(value)
      : ["object", "function"].includes(typeof value)
        ? `this ${typeof value}`
        : String(value);
  return text.slice(0, 60);
}

function wrongWith(feature: Feature, record: Record<string, unknown>): string | undefined {
  let value: unknown;
  try {
    value = record[feature.name];
  } catch {
    return "reading it throws";
  }
  const categorical = feature.kind === "categorical";
  if (value === undefined || value === null || Number.isNaN(value)) {
    return isOpen(feature) || (categorical && feature.values.includes("missing")) ? undefined : "it holds no value";
  }
  if (!categorical) return Number.isNaN(numberOf(value)) ? `${shown(value)} is no number` : undefined;
  if (textOf(value) === null) return `${shown(value)} is neither a text nor a number`;
  return position(value, feature.values) < 0 ? `${shown(value)} is not declared` : undefined;
}

/**
 * Whatever in `record` would not be answered as it was meant, of all features at once; then names that the campaign does
 * not know. A number beyond its bounds is none: it is clipped. Throws nothing.
 */
export function problems(campaign: Campaign<any>, record: unknown): Problem[] {
  if (!isObject(record)) return [{ feature: "", wrong: "it is no record", right: "a plain object" }];
  const found: Problem[] = [];
  for (const feature of campaign.features) {
    const wrong = wrongWith(feature, record);
    const right =
      feature.kind === "categorical"
        ? `one of ${listed(feature.values)}`
        : `a number, from ${feature.low} to ${feature.high}`;
    if (wrong) found.push({ feature: feature.name, wrong, right });
  }
  const known = campaign.features.map(({ name }) => name);
  try {
    for (const feature of Object.keys(record).filter((name) => !known.includes(name)))
      found.push({ feature, wrong: "is no feature of the campaign", right: `one of ${listed(known)}` });
  } catch {
    found.push({ feature: "", wrong: "reading its names throws", right: "a plain object" });
  }
  return found;
}
