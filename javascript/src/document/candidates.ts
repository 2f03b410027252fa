// The candidate models of an evaluation round, as strictly as protocols/model.py reads them.
import { predict } from "../classifier/scores.js";
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
import { boundsOf, checkFeatures, MOST_FEATURES, MOST_VALUES, nameOf, sizeOf } from "./schema.js";
import { checkProjection } from "./projection.js";
import type { CampaignDocument } from "./types.js";

const LARGEST_VARIANCE = 1e300;

const isShares = (row: number[]): boolean =>
  row.every((share) => share >= 0) && Math.abs(row.reduce((sum, share) => sum + share, 0) - 1) <= 1e-6;

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

/** What each candidate says of a record. They are models of the campaign's label, about nothing but its features, each with a name of its own. */
export function readCandidates({ candidates, label, features }: CampaignDocument): Verdict[] {
  const declared = features.map(described);
  const k = label.classes.length;
  candidates!.forEach((candidate, i) => {
    const place = `candidates[${i}]`;
    check(candidate, place, { name: isName, model: isObject });
    const { model }: { model: any } = candidate;
    const { features: inputs, ...projection } = model.projection ?? {};
    check(model, `${place}.model`, {
      version: (version) => version === 1,
      kind: among("naive-bayes"),
      label: (name) => name === label.name,
      classes: (names) => JSON.stringify(names) === JSON.stringify(label.classes),
      prior: (row) => isRow(row, k) && isShares(row as number[]),
      features: (list) => isList(list, 0, MOST_FEATURES),
      projection: optional(isObject),
      training: (told) => !told || isObject(told) || isList(told, 0, 0),
    });
    model.features.forEach((feature: any, j: number) => checkLikelihood(feature, `${place}.features[${j}]`, k));
    must(distinct([label, ...model.features].map(nameOf)), `${place}.features`);
    let used = model.features;
    if (model.projection) {
      must(isList(inputs, 1, MOST_FEATURES), `${place}.projection.features`);
      checkFeatures(inputs, `${place}.projection.features`, k, false);
      const projected = checkProjection({ projection, features: inputs, label, study: place });
      const outputs = model.projection.outputs.map(nameOf);
      used = [...used.filter(({ name }: any) => !outputs.includes(name)), ...projected];
    }
    must(
      used.every((feature: any) => declared.includes(described(feature))),
      `${place}.model`,
    );
  });
  must(distinct(candidates!.map(nameOf)), "candidates.name");
  return candidates!.map(
    ({ model }) =>
      (record) =>
        predict(model, record),
  );
}
