import type { Kind } from "./kind.js";

/** The class alone. */
export const label: Kind = {
  cells: (encoding, feature, k) => (!feature && encoding === "index" ? k : undefined),
  item: (_, label) => label,
};
