// Features, as strictly as protocols/ldp_protocols/document/schema.py reads them.
import { nextUp } from "../exact/rationals.js";
import { among, areDeclared, check, isName, optional, whole, type Rule } from "./checks.js";
import type { ContinuousFeature, Feature } from "./types.js";

export const MOST_FEATURES = 1000;
export const MOST_CELLS = 65536;
export const MOST_VALUES = 16384;
export const MOST_CLASSES = 1024;
export const MOST_WEIGHT = 65536;

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
