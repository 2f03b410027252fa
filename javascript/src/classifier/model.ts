// A published model, as strictly as its numbers need it.
import { LdpError } from "../errors.js";
import { ROWS, type Modelled } from "../features.js";
import { add, type Bounds, type Linear } from "../values.js";

interface Named {
  readonly name: string;
}
type Table = readonly (readonly number[])[]; // [value][class]
export type ModelFeature = Named &
  (
    | (Modelled & { readonly likelihood: Table })
    | (Bounds & { readonly kind: "gaussian"; readonly mean: readonly number[]; readonly variance: readonly number[] })
  );

/** The model document: prior, and tables or moments. */
export interface Model {
  readonly version: 1;
  readonly kind: "naive-bayes";
  readonly label: string;
  readonly classes: readonly string[];
  readonly prior: readonly number[];
  readonly features: readonly ModelFeature[];
  readonly projection?:
    | (Linear & {
        readonly features: readonly (Named & Bounds)[];
      })
    | null;
  readonly training?: unknown;
}

const LEAST = 5e-324; // above 0
const LARGEST = 1e300; // squares of doubles, such as variances, are below
const isRow = (row: readonly number[], size: number, least = -LARGEST, most = LARGEST): boolean =>
  row.length === size && row.every((number) => Number.isFinite(number) && number >= least && number <= most);
export const adds = (shares: readonly number[]): boolean => Math.abs(shares.reduce(add) - 1) < 1e-6;
const isRange = ({ low, high }: Bounds): boolean => low < high;

function isFeature(feature: ModelFeature, k: number): boolean {
  if (feature.kind === "gaussian") {
    const { mean, variance } = feature;
    return isRange(feature) && isRow(mean, k) && isRow(variance, k, LEAST);
  }
  const { likelihood } = feature;
  return (
    likelihood.length === ROWS[feature.kind]!(feature) &&
    likelihood.every((row) => isRow(row, k, 0)) &&
    likelihood[0]!.every((_, c) => adds(likelihood.map((row) => row[c]!)))
  );
}

function isModel({ version, kind, classes, prior, features, projection }: Model): boolean {
  const k = classes.length;
  const find = (name: string) => projection!.features.find((feature) => feature.name === name)!;
  return (
    version === 1 &&
    kind === "naive-bayes" &&
    k > 1 &&
    isRow(prior, k, 0) &&
    adds(prior) &&
    features.every((feature) => isFeature(feature, k)) &&
    (projection == null ||
      (projection.inputs.map(find).every(isRange) &&
        isRow(projection.scale, projection.inputs.length, LEAST) &&
        projection.matrix.length === projection.outputs.length &&
        [projection.mean, ...projection.matrix].every((row) => isRow(row, projection.inputs.length))))
  );
}

/** A model document's text. Throws LdpError `invalid-model`. */
export function parseModel(text: string): Model {
  try {
    const model = JSON.parse(text) as Model;
    if (isModel(model)) return model;
  } catch {
    // No JSON, or a member of another type than it must have: no model either.
  }
  throw new LdpError("invalid-model");
}
