// The authored part of a campaign document, as strictly as protocols/document/schema.py reads it: what is asked about, with
// which privacy settings.
import { nextUp } from "../exact/rationals.js";
import {
  among,
  areDeclared,
  check,
  distinct,
  isList,
  isAbsent,
  isName,
  isObject,
  isPositive,
  isText,
  must,
  optional,
  whole,
  type Rule,
} from "./checks.js";
import type { Rare } from "./rare.js";
import type { ContinuousFeature, Feature } from "./types.js";

export const MOST_FEATURES = 1000;
export const MOST_CELLS = 65536;
export const MOST_VALUES = 16384;
export const MOST_CLASSES = 1024;
const MOST_CAMPAIGN_CELLS = 2 ** 18;
const MOST_CANDIDATES = 8;
const MOST_RELEASE = 2 ** 40;

const isSwitch: Rule = (value) => typeof value === "boolean";
const isWeight = whole(1, 65536);
export const isGaussian = (feature: Feature): feature is ContinuousFeature =>
  feature.kind === "continuous" && feature.bins == null;
/** Values of a discrete feature, ends of a Gaussian one. */
export const sizeOf = (feature: Feature): number =>
  feature.kind === "categorical" ? feature.values.length : (feature.bins ?? 2);

/** Whether a record may be without a value: unless its author says no, or lists `missing` as one. */
export const isOpen = ({ missing, values }: any): boolean => missing !== false && !values?.includes?.("missing");
/** What there is to answer: the values, and after them that there is none where that may be. */
export const cellsOf = (feature: Feature): number => sizeOf(feature) + +isOpen(feature);

export const nameOf = ({ name }: any): string => name;
export const span = ({ low, high }: any): number => high - low;

/** The rules of `low` and `high`: squares of their distance are still doubles. */
export const boundsOf = (feature: any): Record<string, Rule> => ({
  low: Number.isFinite,
  high: (high) => Number.isFinite(high) && span(feature) >= 1e-150 && span(feature) <= 1e150,
});

function checkFeature(feature: any, place: string, k: number): void {
  const named = {
    name: isName,
    weight: optional(isWeight),
    missing: optional((missing) => missing === isOpen(feature)),
  };
  if (feature?.kind === "categorical") {
    return check(feature, place, {
      ...named,
      kind: () => true,
      values: (values) => areDeclared(values, MOST_VALUES) && cellsOf(feature) * k <= MOST_CELLS,
      ordered: optional((ordered) => isSwitch(ordered) && !(ordered && feature.values.includes("missing"))),
    });
  }
  const largest = Math.max(Math.abs(feature?.low), Math.abs(feature?.high));
  check(feature, place, {
    ...named,
    kind: among("continuous"),
    ...boundsOf(feature),
    bins: optional(
      (bins) =>
        whole(2, MOST_VALUES)(bins) &&
        cellsOf(feature) * k <= MOST_CELLS &&
        span(feature) / bins >= 4 * (nextUp(largest) - largest),
    ),
  });
}

export function checkFeatures(features: any[], place: string, k: number, continuous: boolean): void {
  features.forEach((feature, i) => {
    checkFeature(feature, `${place}[${i}]`, k);
    must(!continuous || feature.kind === "continuous", `${place}[${i}].kind`);
  });
}

export function isInstant(text: any): boolean {
  // 2027-01-01T00:00:00Z, a time that exists
  return isText(text, 20) && !text.startsWith("0000") && new Date(text).toJSON() === text.replace("Z", ".000Z");
}

/** Checks all but the questions. Returns a projection's inputs and the features that questions are about. */
export function checkAuthored(
  document: any,
  rare?: Rare,
): { inputs: ContinuousFeature[] | undefined; asked: Feature[] } {
  const { label, features, privacy, asks, opens } = document ?? {};
  const moments = asks === "moments";
  const score = asks === "score";
  check(document, "document", {
    version: (version) => version === 1,
    title: isName,
    purpose: optional((text) => isText(text, 2000)),
    label: () => true,
    features: (list) => isList(list, 1, MOST_FEATURES),
    privacy: () => true,
    questions: Array.isArray,
    asks: optional(among("model moments score")),
    study: moments || score ? isName : optional(isName),
    projection: moments || score ? isAbsent : optional(isObject),
    candidates: score ? (list) => isList(list, 2, MOST_CANDIDATES) : isAbsent,
    opens: optional(isInstant),
    closes: optional((time) => isInstant(time) && (opens == null || opens < time)),
  });
  check(label, "label", {
    name: isName,
    classes: (classes) => areDeclared(classes, MOST_CLASSES),
    weight: optional(whole(0, 65536)),
  });
  const k = label.classes.length;
  checkFeatures(features, "features", k, moments);
  must(distinct([label, ...features].map(nameOf)), "features.name");
  check(privacy, "privacy", {
    epsilon: isPositive,
    answers: optional(among(moments || score ? "one" : "one all")),
    discrete: optional(among(score ? "auto de" : "auto de sue oue she the ss")),
    continuous: optional(among("auto laplace onebit sign")),
    theta: optional((theta) => isPositive(theta) && theta <= 1),
    xor: optional(isSwitch),
    joint: optional(isSwitch),
    release_every: optional((every) => whole(2, MOST_RELEASE)(every) && !moments),
  });
  const inputs = document.projection ? rare!.checkProjection(document) : undefined;
  const asked = [
    ...features.filter((feature: any) => !inputs?.includes(feature)),
    ...(document.projection?.outputs ?? []),
  ];
  const values = asked.reduce((sum, feature) => sum + cellsOf(feature) * (isGaussian(feature) ? 2 : 1), 0);
  must((values + 1) * k <= MOST_CAMPAIGN_CELLS, "features");
  return { inputs, asked };
}
