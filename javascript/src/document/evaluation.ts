// The model that an evaluation round asks about, and the bins of its score, as strictly as protocols/ldp_protocols/document/authored.py
// and protocols/ldp_protocols/document/model.py read them.
import { adds, type Model } from "../classifier/model.js";
import { LdpError } from "../errors.js";
import {
  among,
  areTexts,
  check,
  distinct,
  isAbsent,
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
import { boundsOf, described, names, RULES, sizeOf } from "../features.js";
import { isFeature, MOST_CELLS, MOST_CLASSES, MOST_FEATURES, MOST_WEIGHT, nameOf } from "./schema.js";
import { strictJson } from "./json.js";
import { checkProjection } from "./projection.js";
import type { Campaign, Evaluation, Label } from "./types.js";

const MOST_EDGES = 7;
const LARGEST_VARIANCE = 1e300;

const isShares = (row: number[]): boolean => row.every((share) => share >= 0) && adds(row);

/** The rule of a feature of a model of `k` classes. */
const isLikelihood =
  (k: number): Rule =>
  (feature) => {
    return check(feature, {
      name: isName,
      kind: among(`${names()} gaussian`),
      ...(feature?.kind === "gaussian"
        ? {
            ...boundsOf(feature),
            mean: (row) => isRow(row, k),
            variance: (row) => isRow(row, k, (v) => v > 0 && v <= LARGEST_VARIANCE),
          }
        : {
            ...RULES[feature?.kind]?.(feature, true),
            likelihood: (rows) =>
              isList(rows, sizeOf(feature), sizeOf(feature), (row) => isRow(row, k)) &&
              rows[0]?.every((_: number, c: number) => isShares(rows.map((row) => row[c]))),
          }),
    } as Record<string, Rule>);
  };

/**
 * Checks a model, as it was read from JSON: of the campaign's label, where that is known, and about nothing but its features, where
 * they are.
 */
function isModel(model: any, label?: Label, declared?: readonly unknown[]): true {
  const k = model?.classes?.length;
  const { features: inputs, ...projection } = model?.projection ?? {};
  return check(model, {
    version: (version) => version === 1,
    kind: among("naive-bayes"),
    label: (name) => isName(name) && name === (label?.name ?? name),
    classes: (names) =>
      areTexts(names, 2, MOST_CLASSES) && JSON.stringify(names) === JSON.stringify(label?.classes ?? names),
    prior: (row) => isRow(row, k) && isShares(row),
    training: (told) => !told || isObject(told) || isList(told, 0, 0),
    projection: optional(isObject),
    features(list) {
      must(isList(list, 0, MOST_FEATURES, isLikelihood(k)) && distinct([model.label, ...list].map(nameOf)), "features");
      let used = list;
      if (model.projection) {
        must(isList(inputs, 1, MOST_FEATURES, isFeature(k)), "projection");
        const { label: name, classes } = model;
        const read = checkProjection(projection, { features: inputs, label: { name, classes }, study: "" });
        const outputs = projection.outputs.map(nameOf);
        used = [...list.filter(({ name }) => !outputs.includes(name)), ...read];
      }
      return !declared || used.every((one) => declared.map(described as any).includes(described(one)));
    },
  });
}

export function checkEvaluation({ evaluation, label, features }: Campaign): true {
  const k = label.classes.length;
  return check(evaluation, {
    model: (model) => isModel(model, label, features),
    edges:
      k > 2
        ? (edges) => isAbsent(edges) && k * k <= MOST_CELLS
        : (edges) =>
            isList(edges, 1, MOST_EDGES, Number.isFinite) &&
            edges.includes(0) &&
            edges.every((edge, i) => !i || edge > edges[i - 1]),
    weights: optional((row) => isRow(row, 2, whole(0, MOST_WEIGHT)) && row.some(isPositive)),
  });
}

/** Places of a score: bins of the log odds, or the classes that the model can say. */
export const placesOf = ({ edges, model }: Evaluation): number => (edges ? edges.length + 1 : model.classes.length);

/**
 * A model document's text, read as strictly as Python reads it; of the campaign's `label`, where that is known. Throws LdpError
 * `invalid-model`.
 */
export function readModel(text: string, label?: Label): Model {
  try {
    const model = strictJson(text);
    isModel(model, label);
    return model;
  } catch {
    throw new LdpError("invalid-model");
  }
}
