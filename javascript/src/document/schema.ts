// Features, as strictly as protocols/ldp_protocols/features.py reads them.
import { names, RULES, sizeOf, type Feature } from "../features.js";
import { among, check, isName, optional, whole, type Rule } from "./checks.js";

export const MOST_FEATURES = 1000;
export const MOST_CELLS = 65536;
export const MOST_CLASSES = 1024;
export const MOST_WEIGHT = 65536;

/** Whether a record may be without a value: unless its author says no, or lists `missing` as one. */
export const isOpen = ({ missing, values }: any): boolean => missing !== false && !values?.includes?.("missing");
/** What there is to answer: the values, and after them that there is none where that may be. */
export const cellsOf = (feature: Feature): number => sizeOf(feature) + +isOpen(feature);

export const nameOf = (one: any): string => one?.name;

/** Whether the values of a feature are numbers; and whether it is asked as moments. */
export const isNumber = (feature: any): boolean => feature?.low != null;
export const isGaussian = (feature: any): boolean => isNumber(feature) && feature.bins == null;

/** The rule of a feature in a campaign of `k` classes. */
export const isFeature =
  (k: number): Rule =>
  (feature) => {
    check(feature, {
      name: isName,
      kind: among(names()),
      weight: optional(whole(1, MOST_WEIGHT)),
      missing: optional((missing) => missing === isOpen(feature)),
      ...RULES[feature?.kind]?.(feature),
    } as Record<string, Rule>);
    return cellsOf(feature) * k <= MOST_CELLS;
  };
