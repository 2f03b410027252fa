// The authored part of a campaign document, as strictly as protocols/document reads it: what is asked about, with which
// privacy settings.
import { nextUp } from "../exact/rationals.js";
import {
  among,
  areDeclared,
  check,
  distinct,
  isAbsent,
  isList,
  isName,
  isPositive,
  isText,
  must,
  optional,
  whole,
  type Rule,
} from "./checks.js";
import { checkEvaluation } from "./evaluation.js";
import { checkProjection } from "./projection.js";
import type { ContinuousFeature, Feature } from "./types.js";

export const MOST_FEATURES = 1000;
export const MOST_CELLS = 65536;
export const MOST_VALUES = 16384;
export const MOST_CLASSES = 1024;
export const MOST_WEIGHT = 65536;
const MOST_CAMPAIGN_CELLS = 2 ** 18;
const MOST_RELEASE = 2 ** 40;

export const isGaussian = (feature: Feature): feature is ContinuousFeature =>
  feature.kind === "continuous" && feature.bins == null;
/** Values of a discrete feature, ends of a Gaussian one. */
export const sizeOf = (feature: any): number => feature.values?.length ?? feature.bins ?? 2;

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

/** The rule of a feature, in a campaign of `k` classes. */
export const isFeature =
  (k: number, kinds = "categorical continuous"): Rule =>
  (feature) => {
    const { kind, low, high } = feature ?? {};
    const fits = (): boolean => cellsOf(feature) * k <= MOST_CELLS;
    const largest = Math.max(Math.abs(low), Math.abs(high));
    return check(feature, {
      name: isName,
      kind: among(kinds),
      weight: optional(whole(1, MOST_WEIGHT)),
      missing: optional((missing) => missing === isOpen(feature)),
      ...(kind === "categorical"
        ? {
            values: (values) => areDeclared(values, MOST_VALUES) && fits(),
            ordered: optional(
              (ordered) => ordered === false || (ordered === true && !feature.values.includes("missing")),
            ),
          }
        : {
            ...boundsOf(feature),
            bins: optional(
              (bins) =>
                whole(2, MOST_VALUES)(bins) && fits() && span(feature) / bins >= 4 * (nextUp(largest) - largest),
            ),
          }),
    } as Record<string, Rule>);
  };

export function isInstant(text: any): boolean {
  // 2027-01-01T00:00:00Z, a time that exists
  return isText(text, 20) && !text.startsWith("0000") && new Date(text).toJSON() === text.replace("Z", ".000Z");
}

/** Checks all but the questions. Returns the features that questions are about. */
export function checkAuthored(document: any): Feature[] {
  const { label, features, asks, opens, projection } = document ?? {};
  const moments = asks === "moments";
  const score = asks === "score";
  const plain = !moments && !score;
  const k = label?.classes?.length;
  let inputs: ContinuousFeature[] | undefined;
  // In this order: what comes later looks at what came before.
  check(document, {
    version: (version) => version === 1,
    title: isName,
    purpose: optional((text) => isText(text, 2000)),
    label: (value) =>
      check(value, {
        name: isName,
        classes: (classes) => areDeclared(classes, MOST_CLASSES),
        weight: optional(whole(0, MOST_WEIGHT)),
      }),
    features: (list) =>
      isList(list, 1, MOST_FEATURES, isFeature(k, moments ? "continuous" : undefined)) &&
      distinct([label, ...list].map(nameOf)),
    privacy: (value) =>
      check(value, {
        epsilon: isPositive,
        answers: optional(among(plain ? "one all" : "one")),
        discrete: optional(among("auto de sue oue she the ss")),
        continuous: optional(among("auto laplace onebit sign")),
        theta: optional((theta) => isPositive(theta) && theta <= 1),
        release_every: moments ? isAbsent : optional(whole(2, MOST_RELEASE)),
        xor: isAbsent,
        joint: isAbsent,
      }),
    asks: optional(among("model moments score")),
    study: plain ? optional(isName) : isName,
    projection: plain ? optional((value) => (inputs = checkProjection(value, document))) : isAbsent,
    evaluation: score ? () => checkEvaluation(document) : isAbsent,
    candidates: isAbsent,
    opens: optional(isInstant),
    closes: optional((time) => isInstant(time) && (opens == null || opens < time)),
    questions: Array.isArray,
  });
  const asked: Feature[] = [
    ...features.filter((feature: any) => !inputs?.includes(feature)),
    ...(projection?.outputs ?? []),
  ];
  const values = asked.reduce((sum, feature) => sum + cellsOf(feature) * (isGaussian(feature) ? 2 : 1), 0);
  must((values + 1) * k <= MOST_CAMPAIGN_CELLS, "features");
  return asked;
}
