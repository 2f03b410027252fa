// Kinds of features, in one place: nobody else knows one by its name. A new one is a row of each table: KINDS and ROWS, which are all
// that classifying loads, RULES of documents, and WORDS for developers.
import { areDeclared, areTexts, isRow, optional, whole, type Rule } from "./document/checks.js";
import { nextUp } from "./exact/rationals.js";
import { numberOf, position, short, textOf, type Bounds } from "./values.js";

export const MOST_VALUES = 16384;

export interface CategoricalFeature {
  readonly name: string;
  readonly kind: "categorical";
  readonly values: readonly string[];
  readonly weight?: number | null;
  readonly missing?: boolean | null;
  /** Whether the values are listed in their order. No answer depends on it. */
  readonly ordered?: boolean | null;
}

export interface ContinuousFeature {
  readonly name: string;
  readonly kind: "continuous";
  readonly low: number;
  readonly high: number;
  readonly bins?: number | null;
  /** Those of the bins, the ends among them; without them bins are of equal width. */
  readonly edges?: readonly number[] | null;
  readonly weight?: number | null;
  readonly missing?: boolean | null;
}

export type Feature = CategoricalFeature | ContinuousFeature;
/** One whose values are numbers, such as a projection's outputs. */
export type Numeric = ContinuousFeature;

/** What a model with a table says of a feature, beside its name. */
export type Modelled =
  | Pick<CategoricalFeature, "kind" | "values">
  | (Pick<ContinuousFeature, "kind" | "low" | "high" | "edges"> & { readonly bins: number });

interface Kind {
  /** Values; 2, the ends, of what is asked as moments. */
  readonly size: (feature: any) => number;
  /** The index of what a record holds; NaN where that is no value. */
  readonly index: (feature: any, value: unknown) => number;
}

/** An edge between two bins. */
const edge = ({ low, high, bins, edges }: any, place: number): number =>
  edges?.[place] ?? low + ((high - low) * place) / bins;

export const KINDS: Readonly<Record<string, Kind>> = {
  categorical: {
    size: ({ values }) => values.length,
    index: ({ values }, value) =>
      [position(value, values), values.indexOf("missing")].find((index) => index >= 0) ?? NaN,
  },
  continuous: {
    size: ({ bins }) => bins ?? 2,
    index(feature, value) {
      const number = numberOf(value);
      let place = 1; // half-open
      while (place < feature.bins && number >= edge(feature, place)) place++;
      return isNaN(number) ? number : place - 1;
    },
  },
};

/** Rows of a model's table, as strictly as its numbers need it: NaN where there can be none. */
export const ROWS: Readonly<Record<string, (feature: any) => number>> = {
  categorical: ({ values }) => new Set(values).size,
  continuous: ({ low, high, bins }) => (low < high ? bins : NaN),
};

export const names = (): string => Object.keys(KINDS).join(" ");

export const sizeOf = (feature: { readonly kind: string }): number => KINDS[feature.kind]!.size(feature);

/** The index of what a record holds; NaN where that is no value. */
export const valueIndex = (feature: { readonly kind: string }, value: unknown): number =>
  KINDS[feature.kind]!.index(feature, value);

/** What a feature of a model, and the one of its name in a document, must have in common. */
export const described = ({ name, values, low, high, bins, edges }: any): string =>
  JSON.stringify([name, values, low, high, bins, edges ?? 0]);

export const span = ({ low, high }: Bounds): number => high - low;

/** The rules of `low` and `high`: squares of their distance are still doubles. */
export const boundsOf = (feature: any): Record<string, Rule> => ({
  low: Number.isFinite,
  high: (high) => Number.isFinite(high) && span(feature) >= 1e-150 && span(feature) <= 1e150,
});

/** What a document says of a feature beside what it says of all; or a model that has a table of it. */
export const RULES: Readonly<Record<string, (feature: any, modelled?: boolean) => object>> = {
  __proto__: null as never,
  categorical: (feature, modelled) =>
    modelled
      ? { values: (values: unknown) => areTexts(values, 1, MOST_VALUES) }
      : {
          values: (values: unknown) => areDeclared(values, MOST_VALUES),
          ordered: optional((ordered) => [false, !feature.values.includes("missing")].includes(ordered)),
        },
  continuous(feature, modelled) {
    const largest = Math.max(Math.abs(feature.low), Math.abs(feature.high));
    const bins = whole(2, MOST_VALUES);
    return {
      ...boundsOf(feature),
      bins: modelled
        ? bins
        : optional((number) => bins(number) && span(feature) / number >= 4 * (nextUp(largest) - largest)),
      edges: optional(
        (edges) =>
          isRow(edges, feature.bins + 1) &&
          edges.every((edge, place) => (place ? edge > edges[place - 1]! : edge === feature.low)) &&
          edges[feature.bins] === feature.high,
      ),
    };
  },
};

const MOST_NAMED = 12;

export const listed = (texts: readonly string[]): string =>
  texts.slice(0, MOST_NAMED).join(", ") + (texts.length > MOST_NAMED ? ", ..." : "");

interface Words {
  /** What a value is. */
  readonly wanted: (feature: any) => string;
  /** The value of an index: itself, or the range of its numbers. */
  readonly named: (feature: any, index: number) => string;
  /** What is wrong with a value that is there, if anything is. */
  readonly wrong: (feature: any, value: unknown) => string | undefined | false;
}

export const WORDS: Readonly<Record<string, Words>> = {
  categorical: {
    wanted: ({ values }) => `one of ${listed(values)}`,
    named: ({ values }, index) => values[index],
    wrong: ({ values }, value) =>
      textOf(value) === null ? "is neither a text nor a number" : position(value, values) < 0 && "is not declared",
  },
  continuous: {
    wanted: ({ low, high }) => `a number from ${low} to ${high}`,
    named(feature, index) {
      const { high, bins } = feature;
      const [from, to] = [index, index + 1].map((i) => short(i < bins ? edge(feature, i) : high));
      return `[${from}, ${to}${index + 1 < bins ? ")" : "]"}`;
    },
    wrong: (_, value) => Number.isNaN(numberOf(value)) && "is no number",
  },
};
