// The candidate models of an evaluation round, as strictly as protocols/model.py reads them.
import type { Model } from "../classifier/model.js";
import { predict } from "../classifier/scores.js";
import { LdpError } from "../errors.js";
import { add } from "../values.js";
import type { Verdict } from "./campaign.js";
import {
  among,
  areTexts,
  check,
  distinct,
  isList,
  isName,
  isObject,
  isPositive,
  isRow,
  must,
  optional,
  whole,
  type Rule,
} from "./checks.js";
import { boundsOf, checkFeatures, MOST_CLASSES, MOST_FEATURES, MOST_VALUES, nameOf, sizeOf } from "./schema.js";
import { strictJson } from "./json.js";
import { checkProjection } from "./projection.js";
import type { CampaignDocument } from "./types.js";

type Label = CampaignDocument["label"];

const LARGEST_VARIANCE = 1e300;

const isShares = (row: number[]): boolean =>
  row.every((share) => share >= 0) && Math.abs(row.reduce(add, 0) - 1) <= 1e-6;

function checkLikelihood(feature: any, place: string, k: number): void {
  const { kind } = feature ?? {};
  const gaussian = kind === "gaussian";
  const table: Rule = (rows) =>
    isList(rows, 0, MOST_VALUES) &&
    rows.length === sizeOf(feature) &&
    rows.every((row) => isRow(row, k)) &&
    rows[0].every((_: number, c: number) => isShares(rows.map((row) => row[c])));
  check(feature, place, {
    name: isName,
    kind: among("categorical continuous gaussian"),
    weight: (weight) => weight === undefined || (isPositive(weight) && weight <= 1),
    ...(kind === "categorical" ? { values: (values) => areTexts(values, 1, MOST_VALUES) } : boundsOf(feature)),
    ...(gaussian
      ? {
          mean: (mean) => isRow(mean, k),
          variance: (row) => isRow(row, k) && row.every((v: number) => v > 0 && v <= LARGEST_VARIANCE),
        }
      : { ...(kind === "continuous" && { bins: whole(2, MOST_VALUES) }), likelihood: table }),
  } as Record<string, Rule>);
}

/** What two features with one name must have in common. */
const described = ({ name, kind, values, low, high, bins }: any): string =>
  JSON.stringify([name, kind === "gaussian" ? "continuous" : kind, values, low, high, bins]);

/** The features of a record that a model, as it was read from JSON, looks at. Throws LdpError for what is no model. */
export function featuresOf(model: any, place: string): any[] {
  const k = model?.classes?.length;
  const { features: inputs, ...projection } = model?.projection ?? {};
  check(model, place, {
    version: (version) => version === 1,
    kind: among("naive-bayes"),
    label: isName,
    classes: (names) => areTexts(names, 2, MOST_CLASSES),
    prior: (row) => isRow(row, k) && isShares(row as number[]),
    features: (list) => isList(list, 0, MOST_FEATURES),
    projection: optional(isObject),
    training: (told) => !told || isObject(told) || isList(told, 0, 0),
  });
  const { label, features } = model;
  features.forEach((feature: any, j: number) => checkLikelihood(feature, `${place}.features[${j}]`, k));
  must(distinct([label, ...features.map(nameOf)]), `${place}.features`);
  if (!model.projection) return features;
  must(isList(inputs, 1, MOST_FEATURES), `${place}.projection.features`);
  checkFeatures(inputs, `${place}.projection.features`, k, false);
  const authored = { projection, features: inputs, label: { name: label, classes: model.classes }, study: place };
  const projected = checkProjection(authored);
  const outputs = projection.outputs.map(nameOf);
  return [...features.filter(({ name }: any) => !outputs.includes(name)), ...projected];
}

const isAbout = ({ label, classes }: Model, { name, classes: declared }: Label): boolean =>
  label === name && JSON.stringify(classes) === JSON.stringify(declared);

/** What each candidate says of a record. They are models of the campaign's label, about nothing but its features, each with a name of its own. */
export function readCandidates({ candidates, label, features }: CampaignDocument): Verdict[] {
  const declared = features.map(described);
  candidates!.forEach((candidate, i) => {
    const place = `candidates[${i}]`;
    check(candidate, place, { name: isName, model: isObject });
    const { model } = candidate;
    const used = featuresOf(model, `${place}.model`);
    must(isAbout(model, label) && used.every((feature) => declared.includes(described(feature))), `${place}.model`);
  });
  must(distinct(candidates!.map(nameOf)), "candidates.name");
  return candidates!.map(
    ({ model }) =>
      (record) =>
        predict(model, record),
  );
}

/**
 * A model document's text, read as strictly as Python reads it; of the campaign's `label`, where that is known. Throws LdpError
 * `invalid-model`.
 */
export function readModel(text: string, label?: Label): Model {
  try {
    const model = strictJson(text);
    featuresOf(model, "model");
    if (!label || isAbout(model, label)) return model;
  } catch {
    // No JSON, or no model.
  }
  throw new LdpError("invalid-model");
}
